"""Entry point of Alembic: runs the steps on the connection that was passed."""

from alembic import context

from segue.store.migrate import VERSION_TABLE
from segue.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()

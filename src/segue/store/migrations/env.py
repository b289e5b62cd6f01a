"""Alembic's way in: run the steps on the connection that was handed over."""

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

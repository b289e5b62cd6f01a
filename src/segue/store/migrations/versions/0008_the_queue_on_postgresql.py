"""Tables of Procrastinate, which queues the runs on PostgreSQL. On SQLite the rows of `runs` are the queue.

The tables of DBOS, which queued the runs before, stay where they are: nothing reads them, and a schema of that name in
a shared PostgreSQL database may belong to another program.
"""

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create Procrastinate's tables on PostgreSQL; do nothing on SQLite."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    from procrastinate.schema import SchemaManager

    # Several statements at once, which only the driver takes; it is the connection of this same transaction.
    driver = connection.connection.driver_connection
    assert driver is not None, "a connection in use has one of the driver's"
    driver.execute(SchemaManager.get_schema())

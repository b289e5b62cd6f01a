"""Migration of a database to the present schema, or its refusal."""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from segue.model.errors import DatabaseTooNew
from segue.store.tables import metadata

if TYPE_CHECKING:
    from alembic.config import Config

VERSION_TABLE = "segue_version"
NEWEST = "0008"
"""Last step of `migrations/versions`; a test compares them."""


def migrate(engine: Engine) -> None:
    """Run the missing steps in one transaction, none for the present schema; a database from the future is refused
    untouched. Alembic is loaded for a database of an older schema alone: a server that finds the present one need
    not carry it."""
    with engine.begin() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        if is_sqlite:
            # The driver begins a transaction at a write to rows, but not at a change of the schema.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        tables = inspect(connection).get_table_names()
        if VERSION_TABLE in tables:
            revision = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one_or_none()
            if revision == NEWEST:
                return
            if revision is not None and revision > NEWEST:
                raise DatabaseTooNew(f"The database has schema {revision}, which this Segue does not know.")
        elif is_sqlite and not tables:
            _create(connection)
            return
        upgrade(connection, "head")


def _create(connection: Connection) -> None:
    """Create the present schema at once, as all the steps together would."""
    metadata.create_all(connection)
    connection.exec_driver_sql(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    connection.execute(text(f"INSERT INTO {VERSION_TABLE} (version_num) VALUES (:newest)"), {"newest": NEWEST})


def upgrade(connection: Connection, revision: str) -> None:
    """Run Alembic's steps up to this revision, on the connection."""
    from alembic import command

    command.upgrade(configuration(connection), revision)


def configuration(connection: Connection) -> "Config":
    """Return Alembic's configuration for a connection whose transaction is begun."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config

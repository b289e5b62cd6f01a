"""Bring a database to the present schema, or say why not."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine

from segue.model.errors import DatabaseTooNew

VERSION_TABLE = "segue_version"


def migrate(engine: Engine) -> None:
    """Runs the missing steps in one transaction; a database from the future is refused untouched."""
    with engine.begin() as connection:
        if connection.dialect.name == "sqlite":
            # The driver begins a transaction only at a write to rows, not at one to the schema.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        _refuse_newer(connection, ScriptDirectory.from_config(_config(connection)))
        upgrade(connection, "head")


def upgrade(connection: Connection, revision: str) -> None:
    """Run the steps up to this one."""
    command.upgrade(_config(connection), revision)


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _refuse_newer(connection: Connection, scripts: ScriptDirectory) -> None:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    known = {script.revision for script in scripts.walk_revisions()}
    for revision in context.get_current_heads():
        if revision not in known:
            raise DatabaseTooNew(f"The database has schema {revision}, which this Segue does not know.")

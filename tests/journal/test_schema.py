"""The tables and the migrations say the same, on both engines."""

import pytest
from sqlalchemy import Engine, inspect, text

from segue.journal import open_journal
from segue.model.errors import DatabaseTooNew, DatabaseUnusable
from segue.store.engines import open_engines, parse_url
from segue.store.migrate import VERSION_TABLE, migrate
from segue.store.tables import metadata
from tests.journal.workflows import TickingClock

pytestmark = pytest.mark.anyio


def plainly(index: dict[str, object]) -> str:
    options = {name: str(value) for name, value in index.get("dialect_options", {}).items()}
    return str({**index, "dialect_options": options})


def describe(engine: Engine) -> dict[str, object]:
    """Everything the database knows of our tables."""
    inspector = inspect(engine)
    return {
        table: {
            "columns": [(c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns(table)],
            "key": inspector.get_pk_constraint(table),
            "foreign keys": sorted(map(str, inspector.get_foreign_keys(table))),
            "unique": sorted(map(str, inspector.get_unique_constraints(table))),
            "checks": sorted(map(str, inspector.get_check_constraints(table))),
            "indexes": sorted(map(plainly, inspector.get_indexes(table))),
        }
        for table in sorted(inspector.get_table_names())
        if table != VERSION_TABLE
    }


@pytest.fixture
async def two_databases(request: pytest.FixtureRequest, database_url: str, tmp_path):
    """The same place twice: one for the tables, one for the migrations."""
    engines = open_engines(database_url)
    yield engines.plain
    await engines.close()


async def test_migrations_arrive_at_the_schema(two_databases: Engine) -> None:
    migrate(two_databases)
    migrated = describe(two_databases)
    with two_databases.begin() as connection:
        metadata.drop_all(connection)
        metadata.create_all(connection)
    assert migrated == describe(two_databases)
    assert set(migrated) == set(metadata.tables)


async def test_migrating_twice_changes_nothing(two_databases: Engine) -> None:
    migrate(two_databases)
    before = describe(two_databases)
    migrate(two_databases)
    assert describe(two_databases) == before


async def test_a_database_from_the_future_is_refused_untouched(database_url: str, clock: TickingClock) -> None:
    engines = open_engines(database_url)
    migrate(engines.plain)
    with engines.plain.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    before = describe(engines.plain)
    with pytest.raises(DatabaseTooNew, match="9999"):
        async with open_journal(database_url, clock):
            pass
    assert describe(engines.plain) == before
    await engines.close()


@pytest.mark.parametrize("url", ["nonsense", "mysql://host/name", "sqlite://", "sqlite:///:memory:"])
def test_a_url_that_names_no_usable_database_is_refused(url: str) -> None:
    with pytest.raises(DatabaseUnusable) as refused:
        parse_url(url)
    assert "postgresql://" in refused.value.hint


async def test_a_postgres_that_cannot_be_reached_is_named_in_a_sentence(clock: TickingClock, tmp_path) -> None:
    with pytest.raises(DatabaseUnusable, match="cannot be reached"):
        async with open_journal(f"postgresql://nobody@/none?host={tmp_path}", clock):
            pass

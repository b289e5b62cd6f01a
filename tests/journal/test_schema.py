"""The tables and the migrations say the same, on both engines."""

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect, text

from segue.journal import open_journal
from segue.journal.runs import open_runs
from segue.journal.sessions import current_session
from segue.model.errors import DatabaseTooNew, DatabaseUnusable
from segue.model.ids import WorkflowId
from segue.store.engines import open_engines, parse_url
from segue.store.migrate import NEWEST, VERSION_TABLE, configuration, migrate, upgrade
from segue.store.tables import metadata
from tests.journal.workflows import TickingClock

pytestmark = pytest.mark.anyio

INDEX = "clipping_index"
"""The index for searching: no table of SQLAlchemy's, and on SQLite several of the engine's own."""
QUEUE = "procrastinate_"
"""The tables of the queue of runs on PostgreSQL, which its own library describes."""


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
        if table != VERSION_TABLE and not table.startswith(QUEUE)
    }


@pytest.fixture
async def two_databases(request: pytest.FixtureRequest, empty_database_url: str, tmp_path):
    """The same place twice: one for the tables, one for the migrations."""
    engines = open_engines(empty_database_url)
    yield engines.plain
    engines.close()


async def test_migrations_arrive_at_the_schema(two_databases: Engine) -> None:
    with two_databases.begin() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        upgrade(connection, "head")
    migrated = describe(two_databases)
    with two_databases.begin() as connection:
        metadata.drop_all(connection)
        metadata.create_all(connection)
    assert migrated == describe(two_databases)
    assert set(metadata.tables) == {name for name in migrated if not name.startswith(INDEX)}
    assert INDEX in migrated


async def test_a_new_database_is_at_the_newest_step(database_url: str) -> None:
    engines = open_engines(database_url)
    migrate(engines.plain)
    with engines.plain.connect() as connection:
        assert ScriptDirectory.from_config(configuration(connection)).get_current_head() == NEWEST
        assert connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one() == NEWEST
    engines.close()


async def test_migrating_twice_changes_nothing(two_databases: Engine) -> None:
    migrate(two_databases)
    before = describe(two_databases)
    migrate(two_databases)
    assert describe(two_databases) == before


async def test_a_database_from_the_future_is_refused_untouched(empty_database_url: str, clock: TickingClock) -> None:
    engines = open_engines(empty_database_url)
    migrate(engines.plain)
    with engines.plain.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    before = describe(engines.plain)
    with pytest.raises(DatabaseTooNew, match="9999"):
        async with open_journal(empty_database_url, clock):
            pass
    assert describe(engines.plain) == before
    engines.close()


@pytest.mark.parametrize("url", ["nonsense", "mysql://host/name", "sqlite://", "sqlite:///:memory:"])
def test_a_url_that_names_no_usable_database_is_refused(url: str) -> None:
    with pytest.raises(DatabaseUnusable) as refused:
        parse_url(url)
    assert "postgresql://" in refused.value.hint


async def test_a_postgres_that_cannot_be_reached_is_named_in_a_sentence(clock: TickingClock, tmp_path) -> None:
    with pytest.raises(DatabaseUnusable, match="cannot be reached"):
        async with open_journal(f"postgresql://nobody@/none?host={tmp_path}", clock):
            pass


async def test_a_database_of_the_first_schema_keeps_its_rows(empty_database_url: str, clock: TickingClock) -> None:
    """What the step to the second schema must carry over: tokens, runs and prompts."""
    engines = open_engines(empty_database_url)
    with engines.plain.begin() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        upgrade(connection, "0001")
        for statement in FIRST_ROWS:
            connection.execute(text(statement))
    migrate(engines.plain)
    with engines.plain.connect() as connection:
        tokens = connection.execute(text("SELECT session_id, token, status, generation FROM runtimes ORDER BY 1"))
        assert [tuple(row) for row in tokens] == [("s1", "t1", "ended", 1), ("s2", None, "none", 0)]
        (run,) = open_runs(connection)
        assert (run.session_id, run.way, run.purpose, run.attempt) == ("s2", "fresh", "work", None)
        prompts = connection.execute(text("SELECT id, run, status, seq FROM prompts"))
        assert [tuple(row) for row in prompts] == [("p1", 1, "sent", 4)]
        assert current_session(connection, WorkflowId("w")).carrying == "nothing"
    engines.close()


FIRST_ROWS = (
    "INSERT INTO workflows (id, slug, title, status, agent, permissions, repository, here, worktree, branch, "
    "session_count, checkpoint_count, created_at, updated_at) VALUES ('w', 'w', 'W', 'paused', 'claude', 'ask', '/r', "
    "FALSE, '/w', 'b', 2, 0, '2026-01-02T00:00:00+00:00', '2026-01-02T00:00:00+00:00')",
    "INSERT INTO sessions (id, workflow_id, number, agent, status, reason, token, run_count, created_at, moved_at) "
    "VALUES ('s1', 'w', 1, 'claude', 'completed', '', 't1', 1, '2026-01-02T00:00:00+00:00', "
    "'2026-01-02T00:00:00+00:00'), ('s2', 'w', 2, 'claude', 'created', '', NULL, 1, '2026-01-02T00:00:00+00:00', "
    "'2026-01-02T00:00:00+00:00')",
    "INSERT INTO runs (session_id, number, workflow_id, status, way, queued_at, outcome) VALUES "
    "('s1', 1, 'w', 'ended', 'first', '2026-01-02T00:00:00+00:00', 'paused'), "
    "('s2', 1, 'w', 'queued', 'fresh', '2026-01-02T00:00:00+00:00', NULL)",
    "INSERT INTO events (workflow_id, seq, at, kind, body, hash) VALUES "
    '(\'w\', 4, \'now\', \'prompt.queued\', \'{"kind":"prompt.queued","prompt_id":"p1","text":"Go"}\', \'h\'), '
    '(\'w\', 5, \'now\', \'prompt.queued\', \'{"kind":"prompt.queued","prompt_id":"p12","text":"Go"}\', \'h\')',
    "INSERT INTO prompts (id, workflow_id, session_id, run, task_id, status) VALUES ('p1', 'w', 's1', 1, 'a', 'sent')",
)

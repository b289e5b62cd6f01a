"""Transactions that the database gives up, and writers that take turns."""

import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from segue.model.errors import DatabaseUnusable, WriteFailed
from segue.store import engines as store
from segue.store.engines import Engines, open_engines

DEADLOCK = "DO $$ BEGIN RAISE EXCEPTION SQLSTATE '40P01'; END $$"
REFUSAL = "DO $$ BEGIN RAISE EXCEPTION 'no'; END $$"
END_OF_CONNECTION = "SELECT pg_terminate_backend(pg_backend_pid())"


@pytest.fixture
def engines(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engines]:
    monkeypatch.setattr(store, "PAUSES", (0.0, 0.0))
    engines = open_engines(database_url)
    yield engines
    engines.close()


class Trouble:
    """Work that writes a row, and meets trouble the first few times."""

    def __init__(self, statement: str, times: int) -> None:
        self.statement = statement
        self.times = times
        self.calls = 0

    def __call__(self, connection: Connection) -> int:
        self.calls += 1
        connection.execute(text("INSERT INTO marks VALUES (1)"))
        if self.calls <= self.times:
            connection.execute(text(self.statement))
        return connection.execute(text("SELECT count(*) FROM marks")).scalar_one()


@pytest.fixture
def marks(engines: Engines) -> Engines:
    engines.transact(lambda connection: connection.execute(text("CREATE TABLE marks (mark INTEGER)")))
    return engines


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
@pytest.mark.parametrize("statement", [DEADLOCK, END_OF_CONNECTION])
def test_a_transaction_that_was_given_up_is_tried_again_and_written_once(marks: Engines, statement: str) -> None:
    work = Trouble(statement, times=2)
    assert marks.transact(work) == 1
    assert work.calls == 3


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_transaction_is_not_tried_for_ever(marks: Engines) -> None:
    work = Trouble(DEADLOCK, times=99)
    with pytest.raises(WriteFailed):
        marks.transact(work)
    assert work.calls == 3


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_statement_that_was_refused_is_not_tried_again(marks: Engines) -> None:
    work = Trouble(REFUSAL, times=99)
    with pytest.raises(WriteFailed):
        marks.transact(work)
    assert work.calls == 1


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_transactions_of_two_threads_on_sqlite_take_turns(marks: Engines) -> None:
    inside, finished = threading.Event(), threading.Event()

    def first(connection: Connection) -> None:
        inside.set()
        connection.execute(text("INSERT INTO marks VALUES (1)"))
        assert not finished.wait(0.2), "the second transaction did not wait"

    def second(_connection: Connection) -> None:
        finished.set()

    other = threading.Thread(target=marks.transact, args=(first,))
    other.start()
    assert inside.wait(5)
    marks.transact(second)
    other.join()
    assert finished.is_set()


def test_postgresql_without_its_extra_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "find_spec", lambda name: None if name == "procrastinate" else find_spec(name))
    with pytest.raises(DatabaseUnusable, match="without PostgreSQL") as refused:
        open_engines("postgresql://localhost/segue")
    assert "pip install 'segue[postgres]'" in refused.value.hint


def test_sqlite_needs_no_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(store, "find_spec", lambda _name: None)
    open_engines(f"sqlite:///{tmp_path}/segue.db").close()

"""The engine's steps and the group-commit writer, on one workflow at the same time, on both databases."""

import anyio
import pytest
from sqlalchemy import text

from segue.journal import Journal, Transaction, open_journal
from segue.model.errors import WrongState
from segue.model.events import AgentMessage, RunQueued, Warned
from segue.model.ids import SessionId, WorkflowId
from segue.model.status import Way
from segue.orchestrator.runtime.engine import Engine, open_engine
from tests.journal.workflows import BOOT, TickingClock, new_workflow

pytestmark = pytest.mark.anyio


class Bench:
    """An engine whose runs do what the test says."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.engine: Engine
        self.new = new_workflow()
        self.session_id = SessionId(f"session-of-{self.new.id}")
        self.done = anyio.Event()
        self.problems: list[Exception] = []

    @property
    def workflow_id(self) -> WorkflowId:
        return self.new.id

    async def body(self, _session: SessionId, _number: int) -> None:
        raise NotImplementedError

    async def guarded_body(self, session: SessionId, number: int) -> None:
        try:
            await self.body(session, number)
        except Exception as error:  # noqa: BLE001 — shown by the test
            self.problems.append(error)
        finally:
            self.done.set()

    def begin(self, t: Transaction) -> None:
        t.create_session(self.session_id, "rehearsal")
        number = t.queue_run(self.session_id, RunQueued(way=Way.FIRST, reason="new"), BOOT)
        self.engine.enqueue(t, self.session_id, number)

    async def play(self) -> None:
        async with open_engine(self.journal, BOOT, self.guarded_body, workers=2) as self.engine:
            await self.journal.create(self.new, self.begin)
            with anyio.fail_after(60):
                await self.beside()
                await self.done.wait()
        assert self.problems == []

    async def beside(self) -> None:
        """What happens while the run runs."""


async def test_steps_and_group_commits_keep_one_chain(database_url: str, clock: TickingClock) -> None:
    class Both(Bench):
        async def body(self, _session: SessionId, _number: int) -> None:
            for n in range(30):
                warning = Warned(code="step", message=str(n))
                await self.engine.step("append", self.workflow_id, lambda t, w=warning: t.append(w))

        async def append(self, name: int) -> None:
            for n in range(30):
                await self.journal.append(self.workflow_id, AgentMessage(text=f"{name} {n}"))

        async def beside(self) -> None:
            async with anyio.create_task_group() as group:
                for name in range(5):
                    group.start_soon(self.append, name)

    async with open_journal(database_url, clock) as journal:
        bench = Both(journal)
        await bench.play()
        verdict = await journal.verify(bench.workflow_id)
        assert verdict.problem is None
        assert verdict.events == 3 + 30 + 150


async def test_a_refused_step_writes_nothing_and_its_words_stay_out_of_the_engine(
    database_url: str, clock: TickingClock
) -> None:
    secret = "words that only the caller may see"

    class Refusing(Bench):
        async def body(self, _session: SessionId, _number: int) -> None:
            def refuse(t: Transaction) -> None:
                t.append(Warned(code="half", message="written"))
                raise WrongState(secret)

            with pytest.raises(WrongState, match=secret):
                await self.engine.step("refuse", self.workflow_id, refuse)

    async with open_journal(database_url, clock) as journal:
        bench = Refusing(journal)
        await bench.play()
        assert await journal.head(bench.workflow_id) == 3
        schema = "" if journal.engines.is_sqlite else "dbos."
        with journal.engines.plain.connect() as connection:
            rows = [
                str(row)
                for table in ("operation_outputs", "workflow_status")
                for row in connection.execute(text(f"SELECT * FROM {schema}{table}"))
            ]
        assert rows
        assert not any(secret in row for row in rows)


async def test_a_run_whose_transaction_is_rolled_back_is_never_started(database_url: str, clock: TickingClock) -> None:
    class Rolled(Bench):
        started = False

        async def body(self, _session: SessionId, _number: int) -> None:
            Rolled.started = True

        def begin(self, t: Transaction) -> None:
            super().begin(t)
            raise WrongState("changed my mind")

    async with open_journal(database_url, clock) as journal:
        bench = Rolled(journal)
        with pytest.raises(WrongState):
            await bench.play()
        schema = "" if journal.engines.is_sqlite else "dbos."
        with journal.engines.plain.connect() as connection:
            assert connection.execute(text(f"SELECT count(*) FROM {schema}workflow_status")).scalar_one() == 0
    assert not Rolled.started

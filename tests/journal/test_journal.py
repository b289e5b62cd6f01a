"""One suite for the journal, on every database it can live in."""

import anyio
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from segue.journal import Journal, Transaction, open_journal
from segue.model.errors import AlreadyServing, IllegalMove, WorkflowNotFound, WorktreeInUse, WriteFailed, WrongState
from segue.model.events import AgentMessage, Event, PromptQueued, ToolCalled, Warned
from segue.model.ids import AttemptId, Seq, TaskId, WorkflowId, new_attempt_id, new_prompt_id
from segue.model.pictures import pictures_of
from segue.model.requests import Shown
from segue.model.status import SessionStatus, WorkflowStatus
from tests.journal.statements import execute
from tests.journal.workflows import BOOT, TickingClock, begun, new_workflow

pytestmark = pytest.mark.anyio


def said(n: int) -> AgentMessage:
    return AgentMessage(text=f"message {n}")


async def texts(journal: Journal, workflow_id: WorkflowId) -> list[str]:
    records = await journal.records(workflow_id, limit=10_000)
    return [r.event.text for r in records if isinstance(r.event, AgentMessage)]


async def test_events_come_back_in_the_order_they_were_appended(journal: Journal) -> None:
    workflow_id, session_id = await begun(journal)
    for n in range(10):
        await journal.append(workflow_id, said(n), session_id=session_id, run=1)
    records = await journal.records(workflow_id)
    assert [r.seq for r in records] == list(range(1, len(records) + 1))
    assert await texts(journal, workflow_id) == [f"message {n}" for n in range(10)]
    assert (records[-1].session_id, records[-1].run) == (session_id, 1)


@pytest.mark.parametrize(
    "event",
    [
        AgentMessage(text="naïve ☃ \x00 \u2028 👩‍🚀"),
        ToolCalled(call_id="c", title="t", tool="edit", input={"deep": [1, None, {"x": 1.5}]}, paths=("a b", "ü")),
    ],
)
async def test_an_event_comes_back_as_it_was(journal: Journal, event: Event) -> None:
    workflow_id, _ = await begun(journal)
    await journal.append(workflow_id, event)
    assert (await journal.records(workflow_id))[-1].event == event


async def test_pictures_are_kept_beside_the_prompts_that_they_go_with(journal: Journal) -> None:
    workflow_id, session_id = await begun(journal)
    shown = [Shown(name=f"{name}.gif", data=b"GIF89a\0\xff" + name.encode()) for name in ("a", "b")]
    one, two = (
        PromptQueued(prompt_id=new_prompt_id(), text="Look.", pictures=pictures_of(each))
        for each in (shown, shown[::-1])
    )
    await journal.transact(workflow_id, lambda t: t.prompts.queue(one, session_id, None, shown))
    # The same again, in another order.
    await journal.transact(workflow_id, lambda t: t.prompts.queue(two, session_id, None, shown[::-1]))
    assert await journal.prompts.pictures(one) == [each.data for each in shown]
    assert await journal.prompts.pictures(two) == [each.data for each in shown[::-1]]
    assert (await journal.verify(workflow_id)).verified


async def test_half_a_surrogate_pair_is_stored_with_a_mark_in_its_place(journal: Journal) -> None:
    workflow_id, _ = await begun(journal)
    await journal.append(workflow_id, AgentMessage(text="cut off \ud83d"))
    assert await texts(journal, workflow_id) == ["cut off ?"]
    assert (await journal.verify(workflow_id)).verified


async def test_a_workflow_and_its_state_are_of_one_moment_while_others_write(journal: Journal) -> None:
    workflow_id, _ = await begun(journal)
    over = anyio.Event()

    async def move_to_and_fro() -> None:
        for _ in range(40):
            for status in (WorkflowStatus.IN_PROGRESS, WorkflowStatus.PAUSED):
                await journal.transact(workflow_id, lambda t, status=status: t.move_workflow(status))
        over.set()

    async def look() -> None:
        while not over.is_set():
            row, state = await journal.present(workflow_id)
            assert row.status is state.status

    async with anyio.create_task_group() as group:
        group.start_soon(move_to_and_fro)
        for _ in range(3):
            group.start_soon(look)
    assert (await journal.present(workflow_id))[1].seq == await journal.head(workflow_id)


async def test_a_workflow_whose_last_events_were_taken_away_is_still_shown(journal: Journal) -> None:
    workflow_id, _ = await begun(journal)
    for n in range(3):
        await journal.append(workflow_id, said(n))
    with journal.engines.plain.begin() as connection:
        connection.execute(text("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)"))
    row, state = await journal.present(workflow_id)
    assert (row.id, state.seq) == (workflow_id, await journal.head(workflow_id) - 1)
    assert not (await journal.verify(workflow_id)).verified


async def test_reading_after_a_number_gives_only_what_came_after_it(journal: Journal) -> None:
    workflow_id, _ = await begun(journal)
    first = await journal.append(workflow_id, said(1))
    await journal.append(workflow_id, said(2), said(3))
    assert [r.seq for r in await journal.records(workflow_id, first)] == [first + 1, first + 2]
    assert [r.seq for r in await journal.records(workflow_id, first, limit=1)] == [first + 1]


async def test_a_follower_sees_every_event_once_while_many_write(journal: Journal) -> None:
    workflow_id, _ = await begun(journal)
    seen: list[Seq] = []

    async def follow() -> None:
        async for record in journal.follow(workflow_id):
            seen.append(record.seq)
            if len(seen) == 203:
                return

    async def write(name: int) -> None:
        for n in range(20):
            await journal.append(workflow_id, said(name * 100 + n))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            for name in range(10):
                group.start_soon(write, name)
    assert seen == list(range(1, 204))


async def test_both_ways_of_writing_keep_one_chain(journal: Journal) -> None:
    workflow_id, _ = await begun(journal)

    async def append(name: int) -> None:
        for n in range(25):
            await journal.append(workflow_id, said(name * 100 + n))

    async def transact(name: int) -> None:
        for n in range(25):
            warning = Warned(code="t", message=f"{name} {n}")
            await journal.transact(workflow_id, lambda t, w=warning: t.append(w))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for name in range(4):
                group.start_soon(append, name)
                group.start_soon(transact, name)
    verdict = await journal.verify(workflow_id)
    assert verdict.problem is None
    assert verdict.events == 3 + 200


async def test_what_was_acknowledged_is_there_after_reopening(database_url: str, clock: TickingClock) -> None:
    async with open_journal(database_url, clock) as journal:
        workflow_id, _ = await begun(journal)
        seq = await journal.append(workflow_id, said(1))
    async with open_journal(database_url, clock) as journal:
        assert await journal.head(workflow_id) == seq
        assert await texts(journal, workflow_id) == ["message 1"]


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("UPDATE events SET body = replace(body, 'message 1', 'message 7') WHERE seq = 5", "Event 5 is not what was"),
        ("UPDATE events SET at = '2026-01-01T00:00:00.000000+00:00' WHERE seq = 4", "Event 4 is not what was"),
        ("DELETE FROM events WHERE seq = 4", "Event 4 is missing"),
        ("DELETE FROM events WHERE seq = 6", "should end with event 6, but ends with 5"),
    ],
)
async def test_verify_finds_what_was_changed_behind_its_back(journal: Journal, damage: str, problem: str) -> None:
    workflow_id, _ = await begun(journal)
    for n in range(3):
        await journal.append(workflow_id, said(n))
    with journal.engines.plain.begin() as connection:
        connection.execute(text(damage))
    verdict = await journal.verify(workflow_id)
    assert verdict.problem is not None
    assert problem in verdict.problem


async def test_appending_to_an_unknown_workflow_is_refused_and_harms_nobody_else(journal: Journal) -> None:
    workflow_id, _ = await begun(journal)
    refused: list[Exception] = []

    async def lost() -> None:
        try:
            await journal.append(WorkflowId("nowhere"), said(0))
        except WorkflowNotFound as error:
            refused.append(error)

    async def written(n: int) -> None:
        await journal.append(workflow_id, said(n))

    async with anyio.create_task_group() as group:
        for n in range(20):
            group.start_soon(written, n)
        group.start_soon(lost)
    assert len(refused) == 1
    assert len(await texts(journal, workflow_id)) == 20


async def test_secrets_do_not_reach_the_database(journal: Journal) -> None:
    secret = "ghp_" + "a1B2" * 9
    workflow_id, session_id = await begun(journal, new_workflow(title=f"Use {secret}"))
    await journal.append(workflow_id, AgentMessage(text=f"line\n{secret}\nline"))
    await journal.append(
        workflow_id, ToolCalled(call_id="c", title=f"echo {secret}", tool="execute", input={"k": secret})
    )
    await journal.transact(
        workflow_id, lambda t: t.runtimes.refuse_token(session_id, 1, "not a secret", f"it says {secret}")
    )
    with journal.engines.plain.connect() as connection:
        stored = [
            str(row)
            for table in ("events", "workflows", "sessions", "runtimes", "tasks", "runs")
            for row in connection.execute(text(f"SELECT * FROM {table}"))
        ]
    assert not any(secret in row for row in stored)
    assert any("[redacted:github-token]" in row for row in stored)


# ── guarded moves ───────────────────────────────────────────────────────────────────────────────────


async def test_a_move_and_its_event_commit_together(journal: Journal) -> None:
    workflow_id, _ = await begun(journal)
    await journal.transact(workflow_id, lambda t: t.move_workflow(WorkflowStatus.IN_PROGRESS))
    assert (await journal.workflows.get(workflow_id)).status is WorkflowStatus.IN_PROGRESS
    assert (await journal.state(workflow_id)).status is WorkflowStatus.IN_PROGRESS


async def test_an_illegal_move_changes_nothing(journal: Journal) -> None:
    workflow_id, session_id = await begun(journal)
    head = await journal.head(workflow_id)
    with pytest.raises(IllegalMove, match="pending to completed"):
        await journal.transact(workflow_id, lambda t: t.move_workflow(WorkflowStatus.COMPLETED))
    with pytest.raises(IllegalMove, match="created to completed"):
        await journal.transact(workflow_id, lambda t: t.sessions.move(session_id, SessionStatus.COMPLETED))
    assert await journal.head(workflow_id) == head


async def test_of_two_moves_at_once_one_wins(journal: Journal) -> None:
    workflow_id, _ = await begun(journal)
    outcomes: list[str] = []

    async def move() -> None:
        try:
            await journal.transact(workflow_id, lambda t: t.move_workflow(WorkflowStatus.IN_PROGRESS))
            outcomes.append("moved")
        except IllegalMove:
            outcomes.append("refused")

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(move)
    assert sorted(outcomes) == ["moved"] + ["refused"] * 4


async def test_a_task_is_completed_only_by_the_attempt_that_has_it(journal: Journal) -> None:
    workflow_id, session_id = await begun(journal)
    mine, other = new_attempt_id(), new_attempt_id()
    task = TaskId("a")
    await journal.transact(workflow_id, lambda t: t.tasks.start(task, mine, session_id, 1))
    with pytest.raises(WrongState, match="another attempt"):
        await journal.transact(workflow_id, lambda t: t.tasks.complete(task, other, session_id, 1))
    await journal.transact(workflow_id, lambda t: t.tasks.complete(task, mine, session_id, 1))
    with pytest.raises(WrongState):
        await journal.transact(workflow_id, lambda t: t.tasks.complete(task, mine, session_id, 1))


async def test_a_run_that_another_boot_queued_is_not_claimed(journal: Journal) -> None:
    workflow_id, session_id = await begun(journal)
    attempt = new_attempt_id()

    def claim(boot: str, attempt: AttemptId):
        return lambda t: t.runs.claim(session_id, 1, attempt, boot)

    assert not await journal.transact(workflow_id, claim("boot-of-somebody-else", attempt))
    assert await journal.transact(workflow_id, claim(BOOT, attempt))
    assert not await journal.transact(workflow_id, claim(BOOT, new_attempt_id()))


async def test_two_live_workflows_never_share_a_worktree(journal: Journal) -> None:
    first = new_workflow(worktree="/shared")
    await begun(journal, first)
    with pytest.raises(WorktreeInUse, match="/shared"):
        await begun(journal, new_workflow(worktree="/shared"))
    await journal.transact(first.id, lambda t: t.move_workflow(WorkflowStatus.CANCELLED))
    await begun(journal, new_workflow(worktree="/shared"))


async def test_a_transaction_that_fails_in_the_middle_leaves_nothing(journal: Journal) -> None:
    workflow_id, session_id = await begun(journal)
    head = await journal.head(workflow_id)

    def fail(t: Transaction) -> None:
        t.sessions.move(session_id, SessionStatus.STARTING)
        raise WrongState("changed my mind")

    with pytest.raises(WrongState):
        await journal.transact(workflow_id, fail)
    assert await journal.head(workflow_id) == head
    assert (await journal.state(workflow_id)).sessions[session_id].status is SessionStatus.CREATED


async def test_a_second_server_on_the_same_database_is_refused(database_url: str, clock: TickingClock) -> None:
    async with open_journal(database_url, clock):
        with pytest.raises(AlreadyServing):
            async with open_journal(database_url, clock):
                pass
    async with open_journal(database_url, clock):
        pass


async def test_verifying_while_others_write_raises_no_false_alarm(journal: Journal) -> None:
    workflow_id, _ = await begun(journal)
    problems: list[str | None] = []

    async def write() -> None:
        for n in range(100):
            await journal.append(workflow_id, said(n))

    async def verify() -> None:
        for _ in range(20):
            problems.append((await journal.verify(workflow_id)).problem)

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        group.start_soon(verify)
    assert problems == [None] * 20


async def test_an_unreachable_database_refuses_and_returns(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    workflow_id, _ = await begun(journal)
    with monkeypatch.context() as away:

        def refuse(*_: object) -> None:
            raise OperationalError("connect", {}, Exception("connection refused"))

        away.setattr(journal.engines.plain, "connect", refuse)
        with anyio.fail_after(10):
            with pytest.raises(WriteFailed, match="connection refused"):
                await journal.append(workflow_id, said(1))
    with anyio.fail_after(10):
        await journal.append(workflow_id, said(2))
    assert await texts(journal, workflow_id) == ["message 2"]


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_the_writer_reconnects_when_the_database_closed_its_idle_connection(journal: Journal) -> None:
    workflow_id, _ = await begun(journal)
    await journal.append(workflow_id, said(1))
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    await execute(journal, f"{others} AND pid <> pg_backend_pid()")
    with anyio.fail_after(10):
        await journal.append(workflow_id, said(2))
    assert await texts(journal, workflow_id) == ["message 1", "message 2"]

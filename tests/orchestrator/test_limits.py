"""A workflow stops at its limits: so many tasks, so much time, so much money."""

import anyio
import pytest

from segue.model import events as e
from segue.model.agents import Choices, Limits
from segue.model.codec import decode
from segue.model.errors import BadInput, WrongState
from segue.model.status import Trigger
from tests.orchestrator.test_workflows import HELD, SIMPLE, worktree_of
from tests.orchestrator.theatre import WITHIN, Theatre

pytestmark = pytest.mark.anyio


async def stopped(theatre: Theatre) -> tuple[Trigger, str, bool]:
    """Why the workflow stands still, as its last snapshot tells it."""
    view = await theatre.orchestrator.workflow("build-it")
    snapshot, *_ = await theatre.services.journal.checkpoints.snapshots(view.id, limit=1)
    assert view.reason == snapshot.reason
    return snapshot.trigger, snapshot.reason, snapshot.clean_boundary


@pytest.fixture
async def timed(opened: Theatre) -> Theatre:
    """Workflow `build-it` that may run for one minute and whose agent waits in its first task."""
    opened.choices = Choices(limits=Limits(seconds=60))
    await opened.begin_until(e.ToolFinished, HELD)
    return opened


async def test_so_many_tasks_and_then_a_pause(opened: Theatre) -> None:
    opened.choices = Choices(limits=Limits(tasks=1))
    await opened.begin(SIMPLE)
    assert (await opened.until("build-it", "paused")).tasks_done == 1
    assert await stopped(opened) == (Trigger.TASK_COMPLETE, "1 task was done, as asked for.", True)
    await opened.resume_until("build-it", "completed")


async def test_a_new_session_at_the_soft_cap_does_not_count_the_tasks_anew(opened: Theatre) -> None:
    opened.choices = Choices(limits=Limits(tasks=2))
    script = "turns: [{match: Do A, do: [{usage: {used: 81000, size: 100000}}, {say: A is there.}]}]"
    await opened.begin(script, plan="[{id: a, title: Do A}, {id: b, title: Do B}, {id: c, title: Do C}]")
    view = await opened.until("build-it", "paused")
    assert (view.tasks_done, view.sessions) == (2, 2)
    await opened.resume_until("build-it", "completed")


async def test_what_is_tried_again_by_itself_has_no_more_time_than_before(theatre: Theatre) -> None:
    theatre.choices = Choices(limits=Limits(seconds=60))
    script = "turns: [{match: Do A, do: [{touch: here}, {wait_for: go}, {crash: true, once: true}, {hang: true}]}]"
    async with theatre.open(retry_attempts=3, retry_first=1000.0, retry_longest=1000.0):
        await theatre.begin(script)
        await theatre.until_there(worktree_of(theatre) / "here")
        await theatre.clock.advance(40)
        await theatre.go_until("build-it", "paused")
        await theatre.clock.advance(1000)
        await theatre.until_prompted(2)
        since = (
            await theatre.services.journal.state((await theatre.orchestrator.workflow("build-it")).id)
        ).working_since
        assert since is not None and (theatre.clock.now() - since).total_seconds() == pytest.approx(40, abs=1)
        with anyio.fail_after(WITHIN):
            while not (requested := await theatre.events("build-it", e.PauseRequested)):
                await theatre.clock.advance(5)
        assert requested[0].trigger is Trigger.TIMEOUT and "has run for 1 min" in requested[0].reason
        await theatre.cancel("build-it", "seen enough")


async def test_a_workflow_pauses_at_the_boundary_after_its_time(timed: Theatre) -> None:
    await timed.clock.advance(61)
    assert (await timed.first("build-it", e.PauseRequested)).trigger is Trigger.TIMEOUT
    await timed.go_until("build-it", "paused")
    trigger, reason, clean = await stopped(timed)
    assert (trigger, clean) == (Trigger.TIMEOUT, True)
    assert "may run for 1 min" in reason


async def test_the_time_that_the_machine_is_suspended_counts(opened: Theatre) -> None:
    opened.choices = Choices(limits=Limits(seconds=7200))
    await opened.begin_until(e.ToolFinished, HELD)
    opened.clock.suspend(7200)
    await opened.clock.advance(60)
    assert (await opened.first("build-it", e.PauseRequested)).trigger is Trigger.TIMEOUT
    await opened.cancel("build-it", "seen enough")


async def test_work_that_a_talk_became_has_its_whole_time_and_no_more(theatre: Theatre) -> None:
    theatre.choices = Choices(limits=Limits(seconds=60))
    script = "turns: [{match: Do A, do: [{crash: true, once: true}, {wait_for: go}]}]"
    async with theatre.open(talk_linger=600.0):
        await theatre.begin(script)
        await theatre.until("build-it", "paused")
        await theatre.prompt("build-it", "Hello")
        talked = await theatre.event("build-it", e.TurnEnded)
        await theatre.clock.advance(50)
        assert "awake" in (await theatre.resume("build-it")).reason
        await theatre.event("build-it", e.TaskStarted, after=talked.seq)
        await theatre.clock.advance(59)
        assert await theatre.events("build-it", e.PauseRequested) == []
        await theatre.clock.advance(2)
        requested = await theatre.first("build-it", e.PauseRequested)
        assert requested.trigger is Trigger.TIMEOUT
        assert requested.reason == "The workflow has run for 1 min, and may run for 1 min."
        await theatre.cancel("build-it", "seen enough")


@pytest.mark.parametrize(("seconds", "over"), [(20, 30), (None, 60), (120, 120)])
async def test_a_limit_changed_during_a_task_holds_at_once(opened: Theatre, seconds: float | None, over: float) -> None:
    opened.choices = Choices(limits=Limits(seconds=60))
    begun = opened.clock.now()
    await opened.begin_until(e.ToolFinished, HELD)
    await opened.clock.advance(30)
    await opened.orchestrator.limit("build-it", Limits(seconds=seconds))
    while (opened.clock.now() - begun).total_seconds() < over:
        assert await opened.events("build-it", e.PauseRequested) == []
        await opened.clock.advance(10)
    assert (await opened.first("build-it", e.PauseRequested)).trigger is Trigger.TIMEOUT
    await opened.cancel("build-it", "seen enough")


async def test_a_time_that_is_lifted_in_the_middle_of_a_task_is_none_any_more(timed: Theatre) -> None:
    await timed.orchestrator.limit("build-it", Limits(seconds=0))
    await timed.clock.advance(1000)
    await timed.go_until("build-it", "completed")
    assert await timed.events("build-it", e.PauseRequested) == []


async def test_money_that_is_added_in_the_middle_of_a_task_may_be_spent_in_it(opened: Theatre) -> None:
    opened.choices = Choices(limits=Limits(usd=0.5))
    usage = "{usage: {used: 1000, size: 100000, cost: 0.75}}"
    await opened.begin(f"turns: [{{match: Do A, do: [{{touch: here}}, {{wait_for: go}}, {usage}]}}]")
    await opened.until_there(worktree_of(opened) / "here")
    await opened.orchestrator.limit("build-it", Limits(usd=2.0))
    await opened.go_until("build-it", "completed")
    assert await opened.events("build-it", e.PauseRequested) == []


@pytest.mark.parametrize(
    ("over", "seconds", "pausing", "ending"),
    [
        pytest.param(61, 600, False, "completed", id="more time takes the pause back"),
        pytest.param(61, 0, False, "completed", id="no limit takes the pause back"),
        pytest.param(100, 90, True, "paused", id="too little more leaves the pause"),
    ],
)
async def test_time_added_at_its_end(timed: Theatre, over: float, seconds: float, pausing: bool, ending: str) -> None:
    await timed.clock.advance(over)
    await timed.event("build-it", e.PauseRequested)
    assert (await timed.orchestrator.limit("build-it", Limits(seconds=seconds))).pause_requested is pausing
    await timed.go_until("build-it", ending)


async def test_a_limit_that_is_lifted_leaves_a_pause_that_somebody_wants(timed: Theatre) -> None:
    await timed.pause("build-it", "lunch")
    assert (await timed.orchestrator.limit("build-it", Limits(seconds=0))).pause_requested
    await timed.go_until("build-it", "paused")


async def wanted_by_a_person(theatre: Theatre) -> None:
    """Somebody wants a pause that a limit has asked for before, and wants it twice; it comes no later."""
    first = (await theatre.event("build-it", e.PauseRequested)).event
    for reason in ("I want it", "Now, please"):
        assert (await theatre.pause("build-it", reason)).status == "pause_requested"
    asked = await theatre.events("build-it", e.PauseRequested)
    assert isinstance(first, e.PauseRequested) and [each.reason for each in asked] == [first.reason, "I want it"]
    assert asked[1].trigger is Trigger.PAUSE and asked[1].force_at == first.force_at


async def test_a_requested_pause_stays_when_more_time_is_added(timed: Theatre) -> None:
    await timed.clock.advance(61)
    await timed.event("build-it", e.PauseRequested)
    await timed.clock.advance(5)
    await wanted_by_a_person(timed)
    assert (await timed.orchestrator.limit("build-it", Limits(seconds=600))).pause_requested
    await timed.go_until("build-it", "paused")
    assert await stopped(timed) == (Trigger.PAUSE, "I want it", True)


BROKE = "turns: [{match: Do A, do: [{usage: {used: %s, size: 100000, cost: 0.75}}, {touch: here}, {wait_for: go}]}]"


@pytest.mark.parametrize(("used", "ending"), [("1000", "completed"), ("90000", "paused")])
async def test_added_money_takes_the_pause_back_if_the_window_has_room(opened: Theatre, used: str, ending: str) -> None:
    opened.choices = Choices(limits=Limits(usd=0.5))
    await opened.begin(BROKE % used)
    await opened.until_there(worktree_of(opened) / "here")
    await opened.event("build-it", e.PauseRequested)
    await opened.orchestrator.limit("build-it", Limits(usd=2.0))
    await opened.go_until("build-it", ending)


async def test_a_requested_pause_stays_when_more_money_is_added(opened: Theatre) -> None:
    opened.choices = Choices(limits=Limits(usd=0.5))
    await opened.begin(BROKE % "1000")
    await opened.until_there(worktree_of(opened) / "here")
    await wanted_by_a_person(opened)
    assert (await opened.orchestrator.limit("build-it", Limits(usd=2.0))).pause_requested
    await opened.go_until("build-it", "paused")
    assert await stopped(opened) == (Trigger.PAUSE, "I want it", True)


@pytest.mark.parametrize("status", ["completed", "cancelled"])
async def test_the_limits_of_work_that_is_over_stay_as_they_were(opened: Theatre, status: str) -> None:
    await opened.begin(SIMPLE if status == "completed" else HELD)
    if status == "cancelled":
        await opened.cancel("build-it", "seen enough")
    await opened.until("build-it", status)
    with pytest.raises(WrongState, match=f"The workflow is {status}"):
        await opened.orchestrator.limit("build-it", Limits(usd=1.3))
    assert await opened.events("build-it", e.LimitsChanged) == []


async def test_a_time_that_is_over_is_not_hidden_by_money_that_is_spent(opened: Theatre) -> None:
    opened.choices = Choices(limits=Limits(seconds=60))
    await opened.begin(BROKE % "1000")
    await opened.until_there(worktree_of(opened) / "here")
    await opened.event("build-it", e.UsageReported)
    await opened.orchestrator.limit("build-it", Limits(usd=0.5))
    assert await opened.events("build-it", e.PauseRequested) == []
    await opened.clock.advance(61)
    assert (await opened.first("build-it", e.PauseRequested)).trigger is Trigger.TIMEOUT
    await opened.cancel("build-it", "seen enough")


async def test_a_task_that_goes_on_after_its_time_is_interrupted_for_that_reason(theatre: Theatre) -> None:
    theatre.choices = Choices(limits=Limits(seconds=60))
    async with theatre.open(pause_force_after=30.0):
        await theatre.begin_until(e.ToolFinished, HELD)
        await theatre.clock.advance(61)
        await theatre.event("build-it", e.PauseRequested)
        await theatre.as_time_goes_by("build-it", "paused")
        trigger, _, clean = await stopped(theatre)
        assert (trigger, clean) == (Trigger.TIMEOUT, False)


async def test_money_that_is_spent_stops_the_work(opened: Theatre) -> None:
    opened.choices = Choices(limits=Limits(usd=0.5))
    spends = SIMPLE.replace("do: [", "do: [{usage: {used: 1000, size: 100000, cost: 0.75}}, ", 1)
    assert spends != SIMPLE
    await opened.begin(spends)
    await opened.until("build-it", "paused")
    trigger, reason, clean = await stopped(opened)
    assert (trigger, clean) == (Trigger.EXHAUSTION, True)
    assert reason == "The work has cost $0.75, and the budget is $0.50."
    head = (await opened.event("build-it", e.SnapshotStudied)).seq
    with pytest.raises(WrongState, match=r"the budget is \$0.50") as refused:
        await opened.resume("build-it")
    assert "--max-cost" in refused.value.hint
    assert (await opened.orchestrator.workflow("build-it")).head == head
    await opened.orchestrator.limit("build-it", Limits(usd=2.0))
    await opened.resume_until("build-it", "completed")


SPENDS = SIMPLE.replace("do: [", "do: [{usage: {input: 100000, output: 10000, cached: 1000000, model: %s}}, ", 1)


async def test_money_is_reckoned_from_tokens_where_the_agent_does_not_tell_its_cost(on_each: Theatre) -> None:
    on_each.choices = Choices(limits=Limits(usd=0.5))
    await on_each.begin(SPENDS % "claude-opus-5-5")
    view = await on_each.until("build-it", "paused")
    trigger, reason, _ = await stopped(on_each)
    assert (trigger, reason) == (Trigger.EXHAUSTION, "The work has cost about $0.80, and the budget is $0.50.")
    account = await on_each.orchestrator.usage("build-it")
    assert (account.workflow_id, account.account, account.account) == (
        view.id,
        view.spent,
        account.models[0].account,
    )
    assert (account.account.input_tokens, account.account.cached_tokens) == (100_000, 1_000_000)
    assert (account.account.cost_source, account.models[0].model) == ("estimated", "claude-opus-5-5")
    (session,) = await on_each.orchestrator.sessions("build-it")
    assert session.spent == account.account and session.usage.cached_tokens == 1_000_000


async def test_tokens_of_a_model_that_nobody_knows_have_no_price_and_that_is_said(opened: Theatre) -> None:
    opened.choices = Choices(limits=Limits(usd=0.01))
    await opened.begin(SPENDS % "mine")
    view = await opened.until("build-it", "completed")
    (said,) = [event for event in await opened.events("build-it", e.Warned) if event.code == "limit_unmeasured"]
    assert "cost" in said.message
    assert (view.spent.cost_usd, view.spent.cost_source, view.spent.complete) == (None, "unknown", False)


async def test_a_limit_that_nobody_can_keep_is_said_once(opened: Theatre) -> None:
    opened.choices = Choices(limits=Limits(usd=0.01, tokens=1))
    await opened.begin(HELD.replace(", {wait_for: go}", ""))
    await opened.until("build-it", "completed")
    said = [event for event in await opened.events("build-it", e.Warned) if event.code == "limit_unmeasured"]
    assert len(said) == 1 and "tokens" in said[0].message


@pytest.mark.parametrize(
    "limits",
    [
        *(Limits(tasks=-1), Limits(tasks=10**12 + 1), Limits(tokens=10**300)),
        *(Limits(seconds=1e300), Limits(seconds=float("nan")), Limits(seconds=3_153_600_001)),
        *(Limits(usd=float("inf")), Limits(usd=float("nan")), Limits(usd=1e300), Limits(usd=-0.5)),
    ],
)
async def test_a_limit_that_is_none_is_refused(opened: Theatre, limits: Limits) -> None:
    opened.choices = Choices(limits=limits)
    with pytest.raises(BadInput, match="is no limit") as refused:
        await opened.begin(SIMPLE)
    assert "from 0, which is no limit, to " in refused.value.hint
    opened.choices = Choices(limits=Limits(seconds=3_153_600_000))
    view = await opened.begin(SIMPLE)
    with pytest.raises(BadInput, match="is no limit"):
        await opened.orchestrator.limit(view.id, limits)
    await opened.until(view.id, "completed")


async def test_a_limit_is_lifted_with_nothing(opened: Theatre) -> None:
    opened.choices = Choices(limits=Limits(tasks=1, usd=5))
    await opened.begin(SIMPLE)
    await opened.until("build-it", "paused")
    await opened.orchestrator.limit("build-it", Limits(tasks=0))
    (changed,) = await opened.events("build-it", e.LimitsChanged)
    assert changed.limits == Limits(tasks=0, usd=5)


async def test_whether_to_wait_for_a_quota_can_be_changed_on_the_way(opened: Theatre) -> None:
    opened.choices = Choices(limits=Limits(tasks=1))
    await opened.begin(SIMPLE)
    await opened.until("build-it", "paused")
    await opened.orchestrator.limit("build-it", Limits(), wait_for_quota=True)
    await opened.orchestrator.limit("build-it", Limits(tasks=0))
    last = (await opened.events("build-it", e.LimitsChanged))[-1]
    assert (last.limits.tasks, last.wait_for_quota) == (0, True)
    assert decode(Choices, (await opened.services.journal.workflows.get("build-it")).choices).wait_for_quota

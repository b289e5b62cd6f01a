"""The agent proposes a plan, a person has the last word on it, and nobody waits for that in memory."""

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import pytest

from segue.model import events as e
from segue.model.agents import Choices, Limits
from segue.model.checkpoint import CheckpointType
from segue.model.errors import BadInput, BadPlan, NothingToAnswer, SegueError, WrongState
from segue.model.ids import TaskId
from segue.model.plan import Task
from segue.model.requests import ApproveRequest, ForkRequest, PlanText, RejectRequest
from segue.model.status import SessionStatus, Trigger, Way
from segue.model.views import Answered, Resumed, WorkflowView
from segue.state.fold import fold
from tests.orchestrator.theatre import TWO_TASKS, Theatre

pytestmark = pytest.mark.anyio

TASKS = [
    {"id": "a", "title": "Do A", "description": "First of all.", "depends_on": [], "expected_failures": ["test_b"]},
    {"id": "b", "title": "Do B", "depends_on": ["a"]},
]


def fenced(tasks: list[dict[str, Any]]) -> str:
    return f"This is how I would do it.\n\n```json\n{json.dumps({'tasks': tasks})}\n```\n"


def script(*plans: str, before: str = "") -> str:
    """An agent that makes these plans, one after the other, and the last of them ever after."""
    turns = [
        {"match": "fenced JSON document", "once": True, "do": [*json.loads(before or "[]"), {"say": plan}]}
        for plan in plans[:-1]
    ]
    last = {"match": "fenced JSON document", "do": [*json.loads(before or "[]"), {"say": plans[-1]}]}
    work = [{"match": f"Do {name}", "do": [{"say": f"{name} is there."}]} for name in "ABCD"]
    return json.dumps({"turns": [*turns, last, *work]})


PLANS = script(fenced(TASKS))


async def propose(theatre: Theatre, script: str = PLANS, **more: Any) -> WorkflowView:
    return await theatre.begin(script, plan=None, propose=True, **more)


async def blocked(theatre: Theatre, script: str = PLANS, **more: Any) -> WorkflowView:
    await propose(theatre, script, **more)
    return await theatre.until("build-it", "blocked")


@pytest.fixture
async def proposed(opened: Theatre) -> Theatre:
    """Workflow `build-it` whose plan of two tasks waits for approval."""
    await blocked(opened)
    return opened


async def approve(theatre: Theatre, plan: str | None = None) -> Answered:
    text = PlanText(format="yaml", text=plan) if plan else None
    return await theatre.orchestrator.answer("build-it", ApproveRequest(plan=text, environment=theatre.environment))


async def reject(theatre: Theatre, reason: str) -> Answered:
    return await theatre.orchestrator.answer("build-it", RejectRequest(reason=reason, environment=theatre.environment))


def prompts(theatre: Theatre) -> list[str]:
    return [entry["text"] for entry in theatre.diary("prompt")]


def titles(view: WorkflowView) -> list[tuple[str, str]]:
    return [(task.id, task.status) for task in view.tasks]


# ── proposing ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_proposed_plan_blocks_the_workflow_and_nobody_waits_in_memory(opened: Theatre) -> None:
    view = await blocked(opened)
    assert [task.title for task in view.proposed_plan] == ["Do A", "Do B"]
    assert (view.tasks, view.asks) == ((), "Is this plan good (2 tasks)?")
    assert view.session is not None and view.session.status is SessionStatus.SUSPENDED
    assert opened.services.live == {} and opened.services.environments == {}
    (ended,) = await opened.events("build-it", e.RunEnded)
    assert ended.outcome == "asked"
    (snapshot,) = await opened.orchestrator.snapshots("build-it")
    assert (snapshot.checkpoint.type, snapshot.checkpoint.trigger) == (CheckpointType.PLAN, Trigger.PAUSE)
    assert snapshot.checkpoint.next_steps == ("Approve or reject the plan",)
    assert snapshot.checkpoint.can_resume


async def test_an_approved_plan_is_worked_on_in_the_same_conversation(proposed: Theatre) -> None:
    answered = await approve(proposed)
    assert (answered.status, answered.about, answered.title) == ("approved", "plan", "a plan of 2 tasks")
    assert answered.resumed is not None
    assert (answered.resumed.way, answered.resumed.tasks_remaining) == (Way.NATIVE, 2)
    view = await proposed.until("build-it", "completed")
    assert titles(view) == [("a", "completed"), ("b", "completed")]
    assert view.sessions == 1
    assert "# Build it" in prompts(proposed)[0]
    assert "## Task 1 of 2: Do A" in prompts(proposed)[1]
    assert len(prompts(proposed)) == 3


async def test_what_was_proposed_is_adopted_as_it_was(proposed: Theatre) -> None:
    await approve(proposed)
    await proposed.until("build-it", "completed")
    (adopted,) = await proposed.events("build-it", e.PlanAdopted)
    assert (adopted.by, adopted.edited) == ("user", False)
    assert adopted.plan.tasks == (
        Task(id=TaskId("a"), title="Do A", description="First of all.", expected_failures=("test_b",)),
        Task(id=TaskId("b"), title="Do B", depends_on=(TaskId("a"),)),
    )


async def test_with_yes_a_plan_is_taken_in_the_same_run(opened: Theatre) -> None:
    opened.choices = Choices(approve_plan=True)
    await propose(opened)
    view = await opened.until("build-it", "completed")
    (adopted,) = await opened.events("build-it", e.PlanAdopted)
    assert len(await opened.events("build-it", e.RunStarted)) == 1
    kinds = [each.type for each in await opened.events("build-it", e.CheckpointCreated)]
    assert (adopted.by, view.tasks_done) == ("policy", 2)
    assert kinds[:2] == [CheckpointType.START, CheckpointType.PLAN]


async def test_an_own_plan_skips_the_proposal(opened: Theatre) -> None:
    await opened.begin(PLANS, propose=True)
    await opened.until("build-it", "completed")
    assert await opened.events("build-it", e.PlanProposed) == []


# ── what is no plan ─────────────────────────────────────────────────────────────────────────────────


async def test_a_proposal_that_cannot_be_used_is_repaired_once(theatre: Theatre) -> None:
    many = fenced([{"id": f"t{n}", "title": "A"} for n in range(3)])
    async with theatre.open(plan_tasks=2):
        view = await blocked(theatre, script(many, fenced(TASKS)))
    assert [task.id for task in view.proposed_plan] == ["a", "b"]
    first, second = prompts(theatre)
    assert "there may be 2 at most" in first
    assert "That plan cannot be used: It has 3 tasks, and there may be 2 at most." in second


async def test_without_a_plan_the_work_pauses_and_a_resume_asks_again(opened: Theatre) -> None:
    await propose(opened, script("I will.", "I will!", fenced(TASKS)))
    view = await opened.until("build-it", "paused")
    assert view.reason.startswith("the agent proposed no plan that can be used, even after one repair: The answer")
    assert len(prompts(opened)) == 2
    (snapshot,) = await opened.orchestrator.snapshots("build-it")
    assert snapshot.checkpoint.can_resume and snapshot.checkpoint.next_steps == ("Make a plan",)
    assert snapshot.checkpoint.trigger is Trigger.CRASH
    context = (await opened.orchestrator.context("build-it", None)).context
    assert "ended because: the agent proposed no plan" in context and "crash" not in context
    assert (await opened.resume("build-it")).way is Way.NATIVE
    assert (await opened.until("build-it", "blocked")).proposed_plan
    told = prompts(opened)[2]
    assert told.startswith("The work was stopped because: the agent proposed no plan") and "crash" not in told


async def test_a_turn_that_breaks_off_without_a_plan_fails_and_can_be_resumed(opened: Theatre) -> None:
    await propose(opened, script(fenced(TASKS), before='[{"fail": "out of order", "once": true}]'))
    await opened.until("build-it", "paused", "failed")
    await opened.resume("build-it")
    assert (await opened.until("build-it", "blocked")).proposed_plan


# ── reading only ────────────────────────────────────────────────────────────────────────────────────


async def test_while_it_plans_the_agent_may_only_read(opened: Theatre) -> None:
    before = json.dumps([{"write": {"path": "early.py", "content": "x = 1"}, "ask": "May I write early.py?"}])
    view = await blocked(opened, script(fenced(TASKS), before=before), permissions="all")
    (answer,) = await opened.events("build-it", e.PermissionAnswered)
    assert (answer.outcome, answer.by) == ("denied", "policy")
    assert answer.reason == "a plan is being made, and nothing is changed meanwhile"
    assert await opened.events("build-it", e.Warned) == []
    assert view.worktree is not None and not (opened.root / "worktrees" / "build-it" / "early.py").exists()


async def test_files_that_change_while_it_plans_are_said(opened: Theatre) -> None:
    before = json.dumps([{"write": {"path": "early.py", "content": "x = 1"}}])
    await blocked(opened, script(fenced(TASKS), before=before))
    (warned,) = await opened.events("build-it", e.Warned)
    assert warned.code == "changed_while_planning"
    assert "The file early.py appeared." in warned.message


# ── a person's word ─────────────────────────────────────────────────────────────────────────────────


async def test_a_rejected_plan_is_made_again_with_the_reasons_in_the_same_conversation(opened: Theatre) -> None:
    await blocked(opened, script(fenced(TASKS), fenced(TASKS[:1])))
    answered = await reject(opened, "One task is enough.")
    assert (answered.status, answered.resumed and answered.resumed.way) == ("rejected", Way.NATIVE)
    await opened.event("build-it", e.PlanRejected)
    assert [task.id for task in (await opened.until("build-it", "blocked")).proposed_plan] == ["a"]
    assert "- One task is enough." in prompts(opened)[1]
    await reject(opened, "Name it better.")
    await opened.until("build-it", "blocked")
    assert "- One task is enough.\n- Name it better." in prompts(opened)[2]
    assert len({entry["session"] for entry in opened.diary("prompt")}) == 1


async def test_a_plan_is_not_rejected_without_a_reason(proposed: Theatre) -> None:
    with pytest.raises(BadInput, match="with a reason"):
        await reject(proposed, " ")
    assert (await proposed.orchestrator.workflow("build-it")).status == "blocked"


async def test_an_edited_plan_is_adopted_in_place_of_the_proposed_one(proposed: Theatre) -> None:
    shown = await proposed.orchestrator.plan("build-it")
    assert shown.status == "proposed"
    await approve(proposed, shown.text.replace("Do B", "Do C"))
    assert [task.title for task in (await proposed.until("build-it", "completed")).tasks] == ["Do A", "Do C"]
    (adopted,) = await proposed.events("build-it", e.PlanAdopted)
    assert adopted.edited
    after = await proposed.orchestrator.plan("build-it")
    assert (after.status, after.tasks) == ("adopted", adopted.plan.tasks)


async def test_a_plan_given_back_as_it_was_shown_is_the_same_plan(proposed: Theatre) -> None:
    await approve(proposed, (await proposed.orchestrator.plan("build-it")).text)
    await proposed.until("build-it", "completed")
    (adopted,) = await proposed.events("build-it", e.PlanAdopted)
    assert not adopted.edited


async def test_a_plan_that_goes_round_in_a_circle_is_not_taken(proposed: Theatre) -> None:
    with pytest.raises(BadPlan, match="circle"):
        await approve(proposed, "[{id: a, title: A, depends_on: [b]}, {id: b, title: B, depends_on: [a]}]")
    assert (await proposed.orchestrator.workflow("build-it")).proposed_plan


async def test_a_blocked_workflow_is_not_resumed(proposed: Theatre) -> None:
    with pytest.raises(WrongState, match="blocked") as refused:
        await proposed.resume("build-it")
    assert "segue approve" in refused.value.hint


async def test_somebody_can_talk_about_a_plan_before_approving_it(proposed: Theatre) -> None:
    assert (await proposed.prompt("build-it", "Why two?")).status == "sent"
    await proposed.event("build-it", e.WorkflowMoved, after=await moved_back(proposed))
    assert (await proposed.orchestrator.workflow("build-it")).asks
    await approve(proposed)
    view = await proposed.until("build-it", "completed")
    assert (view.tasks_done, view.sessions) == (2, 1)


async def moved_back(theatre: Theatre) -> int:
    """Until the answer to a talk is there; the number of the event before the workflow's last move."""
    workflow_id = (await theatre.orchestrator.workflow("build-it")).id
    with anyio.fail_after(30):
        async for record in theatre.services.journal.follow(workflow_id, 0):
            match record.event:
                case e.WorkflowMoved(after="blocked", reason="the agent was only talked to"):
                    return record.seq - 1
                case _:
                    pass
    raise AssertionError("a journal is followed for ever")


# ── pauses and deaths ───────────────────────────────────────────────────────────────────────────────


async def test_a_pause_of_a_blocked_workflow_returns_to_blocked_and_starts_nobody(proposed: Theatre) -> None:
    paused = await proposed.pause("build-it", "for tonight", wait=True)
    assert paused.status == "paused" and paused.snapshot_id
    with pytest.raises(WrongState, match="paused"):
        await approve(proposed)
    assert (await proposed.resume("build-it")).status == "blocked"
    view = await proposed.orchestrator.workflow("build-it")
    assert (view.status, len(view.proposed_plan)) == ("blocked", 2)
    assert len(await proposed.events("build-it", e.RunQueued)) == 1
    await approve(proposed)
    assert (await proposed.until("build-it", "completed")).tasks_done == 2


async def test_a_plan_that_waits_comes_before_another_agent(proposed: Theatre) -> None:
    await proposed.pause("build-it", wait=True)
    with pytest.raises(WrongState, match="waits for a word"):
        await proposed.resume("build-it", agent="understudy")


async def test_a_pause_while_it_plans_keeps_the_proposal(opened: Theatre) -> None:
    await propose(opened, script(fenced(TASKS), before='[{"say": "Hm."}, {"wait_for": "go"}]'))
    await opened.until_prompted(1)
    async with anyio.create_task_group() as both:
        both.start_soon(partial(opened.pause, "build-it", "lunch", wait=True))
        await opened.event("build-it", e.PauseRequested)
        (opened.root / "worktrees" / "build-it" / "go").touch()
    assert (await opened.orchestrator.workflow("build-it")).status == "paused"
    assert (await opened.resume("build-it")).status == "blocked"


@pytest.mark.parametrize("status", ["blocked", "paused"])
async def test_recover_blocked_restores_approval(theatre: Theatre, status: str) -> None:
    """The server goes away while a plan waits; it waits on, is announced again, and can be approved."""
    async with theatre.open():
        await blocked(theatre)
        if status == "paused":
            await theatre.pause("build-it", wait=True)
    async with theatre.open():
        awaited = await theatre.events("build-it", e.ApprovalAwaited)
        if status == "paused":
            assert awaited == []
            await theatre.resume("build-it")
        else:
            assert [each.question for each in awaited] == ["Is this plan good (2 tasks)?"]
        view = await theatre.orchestrator.workflow("build-it")
        assert (view.status, len(view.proposed_plan)) == ("blocked", 2)
        await approve(theatre)
        assert (await theatre.until("build-it", "completed")).tasks_done == 2


async def test_an_agent_that_dies_while_it_plans_plans_again(opened: Theatre) -> None:
    await propose(opened, script(fenced(TASKS), before='[{"say": "Hm."}, {"crash": true, "once": true}]'))
    await opened.until("build-it", "paused")
    assert (await opened.resume_until("build-it", "blocked")).undelivered == ()
    assert len(prompts(opened)) == 2
    assert "nobody saw" not in prompts(opened)[1]
    assert "## Make a plan" in prompts(opened)[1]


async def test_what_waits_for_a_word_stands_first(proposed: Theatre) -> None:
    await proposed.begin(PLANS, title="Another")
    await proposed.until("another", "completed")
    await proposed.begin(script(fenced(TASKS), before='[{"wait_for": "never"}]'), title="A third", plan=None)
    assert [view.slug for view in await proposed.orchestrator.recent(3)] == ["build-it", "a-third", "another"]


# ── who decides at the same moment ──────────────────────────────────────────────────────────────────


async def at_once(*calls: Callable[[], Awaitable[Any]]) -> list[Any]:
    """All of them together; a refusal is an answer too."""
    answers: list[Any] = []

    async def ask(call: Callable[[], Awaitable[Any]]) -> None:
        try:
            answers.append(await call())
        except SegueError as refused:
            answers.append(refused)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as together:
            for call in calls:
                together.start_soon(ask, call)
    return answers


async def told_as_it_is(theatre: Theatre) -> list[type]:
    """What was said of the plan, in a journal that says the same as the tables."""
    view = await theatre.orchestrator.workflow("build-it")
    records = await theatre.services.journal.records(view.id, limit=10_000)
    assert fold(records).status is view.status
    assert (await theatre.orchestrator.verify("build-it")).verified
    words = (e.PlanAdopted, e.PlanRejected)
    return [type(record.event) for record in records if isinstance(record.event, words)]


async def test_of_ten_words_on_a_plan_one_counts(proposed: Theatre) -> None:
    answers = await at_once(
        *(partial(approve, proposed) for _ in range(5)), *(partial(reject, proposed, f"no {n}") for n in range(5))
    )
    won = [answer for answer in answers if isinstance(answer, Answered)]
    assert len(won) == 1
    assert all(isinstance(answer, WrongState | NothingToAnswer) for answer in answers if answer not in won)
    await proposed.until("build-it", "completed", "blocked")
    expected = e.PlanAdopted if won[0].status == "approved" else e.PlanRejected
    assert await told_as_it_is(proposed) == [expected]


async def test_a_cancel_and_an_approval_have_one_end(proposed: Theatre) -> None:
    await at_once(partial(proposed.cancel, "build-it"), partial(approve, proposed))
    assert (await proposed.until("build-it", "cancelled")).status == "cancelled"
    assert await told_as_it_is(proposed) in ([], [e.PlanAdopted])
    with pytest.raises(WrongState, match="cancelled"):
        await approve(proposed)


@pytest.mark.parametrize("first", ["pause", "approve"])
async def test_a_pause_and_an_approval_leave_a_workflow_that_goes_on(proposed: Theatre, first: str) -> None:
    calls: list[Callable[[], Awaitable[Any]]] = [
        partial(proposed.pause, "build-it", "", wait=True),
        partial(approve, proposed),
    ]
    await at_once(*(calls if first == "pause" else reversed(calls)))
    view = await proposed.until("build-it", "paused", "completed")
    said = await told_as_it_is(proposed)
    if view.status == "paused":
        await proposed.resume("build-it")
    if not said:
        assert (await proposed.orchestrator.workflow("build-it")).status == "blocked"
        await approve(proposed)
    assert (await proposed.until("build-it", "completed")).tasks_done == 2


async def test_a_word_that_comes_before_the_run_has_ended_waits_for_that(opened: Theatre) -> None:
    await propose(opened)
    await opened.event("build-it", e.PlanProposed)
    await approve(opened)
    assert (await opened.until("build-it", "completed")).tasks_done == 2


# ── the plan afterwards ─────────────────────────────────────────────────────────────────────────────


async def test_after_a_resume_the_plan_is_respected(theatre: Theatre) -> None:
    """One task at a time, and what is done stays done, also under another server."""
    theatre.choices = Choices(limits=Limits(tasks=1))
    async with theatre.open():
        await blocked(theatre)
        await approve(theatre)
        view = await theatre.until("build-it", "paused")
        assert titles(view) == [("a", "completed"), ("b", "pending")]
    async with theatre.open():
        resumed = await theatre.resume("build-it")
        assert (resumed.tasks_done, resumed.tasks_remaining) == (1, 1)
        view = await theatre.until("build-it", "completed")
        started = [each.task_id for each in await theatre.events("build-it", e.TaskStarted)]
    assert titles(view) == [("a", "completed"), ("b", "completed")]
    assert started == ["a", "b"]


async def reopened(theatre: Theatre, *plans: str, plan: str = TWO_TASKS) -> WorkflowView:
    """One task is done, and what is left is to be planned again."""
    theatre.choices = Choices(limits=Limits(tasks=1))
    await theatre.begin(script(*plans), plan=plan)
    view = await theatre.until("build-it", "paused")
    wrong = e.PlanReopened(reason="B leads nowhere.")
    await theatre.services.journal.transact(view.id, lambda t: t.append(wrong))
    await theatre.resume("build-it")
    return await theatre.until("build-it", "blocked")


async def test_a_new_plan_begins_with_what_is_done(opened: Theatre) -> None:
    collides = fenced([{"id": "a", "title": "Do A otherwise"}])
    view = await reopened(opened, collides, fenced([{"id": "c", "title": "Do C", "depends_on": ["a"]}]))
    asked, repaired = prompts(opened)[1:]
    assert "What is left is to be planned again: B leads nowhere." in asked
    assert "plan only what comes after them:\n- a: Do A" in asked
    assert "Two tasks of the plan are called 'a'." in repaired
    assert [task.id for task in view.proposed_plan] == ["a", "c"]
    assert titles(view) == [("a", "completed"), ("b", "pending")]
    assert (view.asks, view.reason) == (
        "Is this plan good (1 new task)?",
        "a plan of 1 new task waits for approval",
    )
    assert [each.done for each in (await opened.events("build-it", e.PlanProposed))] == [("a",)]
    assert "waits for approval:\n- Do C\n" in (await opened.orchestrator.context("build-it", None)).context
    assert (await approve(opened)).title == "a plan of 1 new task"
    view = await opened.until("build-it", "completed")
    completed = [each.task_id for each in await opened.events("build-it", e.TaskCompleted)]
    assert titles(view) == [("a", "completed"), ("c", "completed")]
    assert completed == ["a", "c"]


async def test_a_persons_own_plan_for_what_is_left_need_not_name_what_is_done(opened: Theatre) -> None:
    await reopened(opened, fenced([{"id": "c", "title": "Do C"}]))
    await approve(opened, "[{id: d, title: Do D}]")
    assert titles(await opened.until("build-it", "completed")) == [("a", "completed"), ("d", "completed")]


async def test_another_agent_can_take_over_before_there_is_a_plan(opened: Theatre) -> None:
    await propose(opened, script("No.", "No!", fenced(TASKS)))
    view = await opened.until("build-it", "paused")
    assert view.tasks == ()
    assert "There is no plan yet" in (await opened.orchestrator.context("build-it", None)).context
    await opened.resume("build-it", agent="understudy")
    view = await opened.until("build-it", "blocked")
    assert (view.agent, view.sessions, len(view.proposed_plan)) == ("understudy", 2, 2)
    assert "## Make a plan" in prompts(opened)[-1]
    await approve(opened)
    assert (await opened.until("build-it", "completed")).tasks_done == 2


async def test_a_plan_that_waits_for_a_word_waits_for_it_in_a_fork_too(opened: Theatre) -> None:
    fork = await forked(opened, await blocked(opened))
    assert (fork.status, fork.tasks) == ("paused", ())
    assert (await opened.resume(fork.slug)).status == "blocked"
    assert len((await opened.until(fork.slug, "blocked")).proposed_plan) == 2
    assert (await opened.orchestrator.workflow("build-it")).status == "blocked"
    await opened.orchestrator.answer(fork.slug, ApproveRequest(environment=opened.environment))
    assert (await opened.until(fork.slug, "completed")).tasks_done == 2


# ── going back, and forth ───────────────────────────────────────────────────────────────────────────


THREE = "[{id: a, title: Do A}, {id: b, title: Do B}, {id: z, title: Do Z}]"
NEW = fenced([{"id": "c", "title": "Do C", "depends_on": ["a"]}, {"id": "d", "title": "Do D"}])


async def forked(theatre: Theatre, view: WorkflowView, snapshot: str | None = None) -> WorkflowView:
    assert view.session is not None
    request = ForkRequest(snapshot=snapshot, environment=theatre.environment)
    return (await theatre.orchestrator.fork(view.session.id, request)).workflow


async def go_back(theatre: Theatre, snapshot: str | None) -> Resumed:
    with anyio.fail_after(60):
        return await theatre.resume("build-it", snapshot=snapshot)


async def waiting(theatre: Theatre) -> str:
    """A new plan for what is left waits for a word; the snapshot that knows the old one alone."""
    await reopened(theatre, NEW, plan=THREE)
    return (await theatre.orchestrator.snapshots("build-it"))[-1].checkpoint.id


async def test_going_back_brings_the_old_plan_back_and_undoing_that_the_new_one(opened: Theatre) -> None:
    first = await waiting(opened)
    await approve(opened)
    assert titles(await opened.until("build-it", "paused"))[1:] == [("c", "completed"), ("d", "pending")]
    back = await go_back(opened, first)
    assert "Task 'Do C' came into the plan." in back.undone and "Task 'Do B' left the plan." in back.undone
    assert titles(await opened.until("build-it", "paused"))[1:] == [("b", "completed"), ("z", "pending")]
    assert [task.id for task in (await opened.orchestrator.plan("build-it")).tasks] == ["a", "b", "z"]
    assert back.saved is not None
    await go_back(opened, back.saved)
    view = await opened.until("build-it", "completed")
    rows = await opened.services.journal.transact(view.id, lambda t: t.tasks.statuses())
    assert titles(view) == [("a", "completed"), ("c", "completed"), ("d", "completed")]
    assert rows == titles(view)


async def test_a_fork_has_the_plan_of_its_snapshot(opened: Theatre) -> None:
    first = await waiting(opened)
    proposed = (await opened.orchestrator.workflow("build-it")).last_snapshot
    await approve(opened)
    view = await opened.until("build-it", "paused")
    assert titles(await forked(opened, view, first)) == [("a", "completed"), ("b", "pending"), ("z", "pending")]
    fork = await forked(opened, view, proposed)
    assert titles(fork) == [("a", "completed"), ("b", "pending"), ("z", "pending")]
    assert [task.id for task in fork.proposed_plan] == ["a", "c", "d"]
    assert titles(await forked(opened, view)) == titles(view)


@pytest.mark.parametrize("status", ["blocked", "paused"])
async def test_going_back_withdraws_a_waiting_plan_until_it_is_undone(opened: Theatre, status: str) -> None:
    first = await waiting(opened)
    if status == "paused":
        await opened.pause("build-it", wait=True)
    back = await go_back(opened, first)
    assert "A plan was proposed, which waited for approval; it is withdrawn." in back.undone
    view = await opened.until("build-it", "paused")
    assert (titles(view)[1:], view.proposed_plan) == ([("b", "completed"), ("z", "pending")], ())
    with pytest.raises(NothingToAnswer):
        await approve(opened)
    assert back.saved is not None
    await go_back(opened, back.saved)
    view = await opened.until("build-it", "blocked")
    assert [task.id for task in view.proposed_plan] == ["a", "c", "d"]
    await approve(opened)
    assert titles(await opened.until("build-it", "paused"))[1:] == [("c", "completed"), ("d", "pending")]

"""Fold of events, and its law: it can be stopped and continued anywhere."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from segue.model import events as e
from segue.model.codec import decode, decode_event, encode
from segue.model.findings import PERSON, ReviewerFeedback, TestState
from segue.model.ids import AttemptId, BootId, CheckpointId, PromptId, RequestId, Seq, SessionId, TaskId, WorkflowId
from segue.model.plan import Issue, Plan, Planning, Task, TaskStatus
from segue.model.status import (
    Failure,
    Permissions,
    PromptStatus,
    Role,
    SessionStatus,
    Trigger,
    WaitingFor,
    Way,
    WorkflowStatus,
)
from segue.state.fold import WorkflowState, fold
from segue.state.story import Rewind

W, ATTEMPT = WorkflowId("w"), AttemptId("attempt")
ONE, TWO = SessionId("session-1"), SessionId("session-2")
PLAN = Plan(tasks=tuple(Task(id=TaskId(name), title=name.upper()) for name in "abc"))


def records(*events: e.Event | tuple[SessionId, e.Event]) -> list[e.Record]:
    start, numbers = datetime(2026, 1, 1, tzinfo=UTC), count(1)

    def record(item: e.Event | tuple[SessionId, e.Event]) -> e.Record:
        session_id, event = item if isinstance(item, tuple) else (None, item)
        seq = next(numbers)
        at = start + timedelta(seconds=seq)
        return e.Record(workflow_id=W, seq=Seq(seq), at=at, session_id=session_id, run=1, event=event, hash="")

    return [record(item) for item in events]


CREATED = e.WorkflowCreated(
    slug="w",
    issue=Issue(title="It"),
    plan=PLAN,
    agent="rehearsal",
    permissions=Permissions.ASK,
    repository="/r",
    here=False,
)
BEGUN = [CREATED, (ONE, e.SessionCreated(number=1, agent="rehearsal"))]


def task(name: str) -> dict[str, object]:
    return {"task_id": TaskId(name), "attempt": ATTEMPT}


def test_a_new_workflow_has_its_plan_pending() -> None:
    state = fold(records(*BEGUN))
    assert state.plan == PLAN
    assert set(state.tasks.values()) == {TaskStatus.PENDING}
    assert state.next_task == PLAN.tasks[0]
    assert state.session is not None and state.session.status is SessionStatus.CREATED


def bookmark_after(*events: e.Event) -> str | None:
    state = fold(records(*BEGUN, *((ONE, event) for event in events)))
    assert state.session is not None
    return state.session.bookmark


def test_the_bookmark_is_known_between_two_turns_only() -> None:
    prompt = PromptId("p")
    captured, sent = e.TokenCaptured(token="t"), e.PromptSent(prompt_id=prompt)
    ended = e.TurnEnded(prompt_id=prompt, reason="end_turn", bookmark="mark-1")
    failed = e.TurnFailed(prompt_id=prompt, failure=Failure.OTHER, message="no")
    assert bookmark_after(captured, sent, ended) == "mark-1"
    assert bookmark_after(captured, sent, ended, captured) == "mark-1"
    assert bookmark_after(captured, sent, ended, sent) is None
    assert bookmark_after(captured, sent, ended, sent, failed) is None
    assert bookmark_after(captured, sent, ended, sent, replace(ended, bookmark=None)) is None
    assert bookmark_after(captured, sent, ended, e.TokenRefused(token="t", reason="gone")) is None
    assert bookmark_after(captured, sent, ended, e.TokenCaptured(token="another")) is None


def test_an_old_turn_end_has_no_bookmark() -> None:
    old = decode_event('{"kind": "turn.ended", "prompt_id": "p", "reason": "end_turn"}')
    assert old == e.TurnEnded(prompt_id=PromptId("p"), reason="end_turn")


def test_tasks_move_with_their_events() -> None:
    state = fold(
        records(
            *BEGUN,
            e.TaskStarted(**task("a")),
            e.TaskCompleted(**task("a")),
            e.TaskStarted(**task("b")),
            e.TaskInterrupted(**task("b"), reason="crash"),
        )
    )
    assert state.finished == ("a",)
    assert state.current_task is None
    assert state.next_task == PLAN.tasks[1]


def test_a_prompt_stays_open_until_it_is_acknowledged() -> None:
    prompt = PromptId("p")
    queued = (ONE, e.PromptQueued(prompt_id=prompt, text="do", task_id=TaskId("a")))
    sent = (ONE, e.PromptSent(prompt_id=prompt))
    assert fold(records(*BEGUN, queued)).sessions[ONE].prompts[prompt].status is PromptStatus.QUEUED
    assert fold(records(*BEGUN, queued, sent)).sessions[ONE].prompts[prompt].status is PromptStatus.SENT
    acknowledged = (ONE, e.PromptAcknowledged(prompt_id=prompt))
    assert not fold(records(*BEGUN, queued, sent, acknowledged)).sessions[ONE].prompts


def test_tool_calls_and_questions_are_open_until_they_end() -> None:
    option = e.PermissionOption(id="yes", name="Yes", kind="allow_once")
    asked = e.PermissionRequested(
        request_id=RequestId("q"), call_id="c", title="May I?", tool="edit", options=(option,)
    )
    called = e.ToolCalled(call_id="c", title="Write", tool="edit")
    session = fold(records(*BEGUN, (ONE, called), (ONE, asked))).sessions[ONE]
    assert list(session.calls) == ["c"]
    assert session.questions[RequestId("q")].title == "May I?"
    answered = e.PermissionAnswered(request_id=RequestId("q"), outcome="allowed", by="user")
    finished = e.ToolFinished(call_id="c", status="completed")
    after = fold(records(*BEGUN, (ONE, called), (ONE, asked), (ONE, answered), (ONE, finished))).sessions[ONE]
    assert not after.calls and not after.questions


def test_a_refused_token_is_kept_but_not_used() -> None:
    session = fold(
        records(*BEGUN, (ONE, e.TokenCaptured(token="t")), (ONE, e.TokenRefused(token="t", reason="unknown")))
    ).sessions[ONE]
    assert session.token is None
    assert session.refused_tokens == ("t",)


def test_usage_is_the_current_context_and_the_sum_of_what_was_spent() -> None:
    state = fold(
        records(
            *BEGUN,
            (ONE, e.UsageReported(context_tokens=900, window=1000, input_tokens=50, output_tokens=5, cost_usd=0.5)),
            (TWO, e.SessionCreated(number=2, agent="rehearsal", parent=ONE)),
            (TWO, e.UsageReported(context_tokens=100, window=1000, input_tokens=10, output_tokens=1, cost_usd=0.1)),
            (TWO, e.UsageReported(context_tokens=120, input_tokens=10)),
        )
    )
    assert (state.usage.context_tokens, state.usage.window) == (120, 1000)
    assert state.usage.utilization == 0.12
    assert (state.usage.input_tokens, state.usage.output_tokens) == (70, 6)
    assert state.usage.cost_usd == 0.6


def test_cached_tokens_are_summed_apart_from_the_input_and_for_each_model() -> None:
    counted = {"input_tokens": 10, "output_tokens": 1}
    state = fold(
        records(
            *BEGUN,
            (ONE, e.UsageReported(context_tokens=900, **counted, cached_tokens=800, model="big")),
            (ONE, e.UsageReported(**counted, cached_tokens=50, model="small")),
            (ONE, e.UsageReported(context_tokens=700, **counted, model="big")),
        )
    )
    assert (state.usage.input_tokens, state.usage.cached_tokens) == (30, 850)
    big, small = state.sessions[ONE].models["big"], state.sessions[ONE].models["small"]
    assert (big.input_tokens, big.output_tokens, big.cached_tokens) == (20, 2, 800)
    assert (big.cache_known, small.cache_known, big.fullest) == (False, True, 900)


def test_a_cost_that_restarts_at_zero_is_added_to_the_earlier_cost() -> None:
    told = [e.UsageReported(cost_usd=cost, model=model) for cost, model in ((1.0, "a"), (1.5, "b"), (0.25, "a"))]
    session = fold(records(*BEGUN, *((ONE, each) for each in told))).sessions[ONE]
    assert session.usage.cost_usd == 1.75
    assert {name: model.cost_usd for name, model in session.models.items()} == {"a": 1.25, "b": 0.5}


# ── the law ─────────────────────────────────────────────────────────────────────────────────────────

text = st.text(max_size=8)
names = st.sampled_from([TaskId(name) for name in "abc"])
prompts = st.sampled_from([PromptId("p"), PromptId("q")])
calls = st.sampled_from(["c", "d"])
requests = st.sampled_from([RequestId("r"), RequestId("s")])
counts = st.none() | st.integers(0, 10**6)

happenings = st.one_of(
    st.builds(e.AgentMessage, text=text),
    st.builds(e.ToolCalled, call_id=calls, title=text, tool=st.just("edit")),
    st.builds(e.ToolFinished, call_id=calls, status=st.sampled_from(["completed", "failed"])),
    st.builds(e.UsageReported, context_tokens=counts, window=counts, input_tokens=counts, output_tokens=counts),
    st.builds(
        e.PermissionRequested, request_id=requests, call_id=calls, title=text, tool=st.just("edit"), options=st.just(())
    ),
    st.builds(
        e.PermissionAnswered,
        request_id=requests,
        outcome=st.sampled_from(["allowed", "denied"]),
        by=st.sampled_from(["user", "policy"]),
    ),
    st.builds(e.TurnEnded, prompt_id=prompts, reason=st.just("end_turn"), bookmark=st.sampled_from([None, "mark"])),
    st.builds(e.TaskStarted, task_id=names, attempt=st.just(ATTEMPT)),
    st.builds(e.TaskCompleted, task_id=names, attempt=st.just(ATTEMPT)),
    st.builds(e.TaskFailed, task_id=names, attempt=st.just(ATTEMPT), reason=text),
    st.builds(e.TaskInterrupted, task_id=names, attempt=st.just(ATTEMPT), reason=text),
    st.builds(e.PromptQueued, prompt_id=prompts, text=text, task_id=st.none() | names),
    st.builds(e.PromptAcknowledged, prompt_id=prompts),
    st.builds(e.PromptNotSent, prompt_id=prompts),
    st.builds(e.WorkflowMoved, before=st.just(WorkflowStatus.PENDING), after=st.sampled_from(WorkflowStatus)),
    st.builds(
        e.SessionMoved,
        before=st.just(SessionStatus.CREATED),
        after=st.sampled_from(SessionStatus),
        waiting_for=st.none() | st.sampled_from(WaitingFor),
    ),
    st.builds(e.TokenCaptured, token=text),
    st.builds(e.TokenRefused, token=text, reason=text),
    st.builds(e.RunQueued, way=st.sampled_from(Way), reason=text),
    st.builds(e.WayChanged, before=st.just(Way.FORK), after=st.sampled_from(Way), reason=text),
    st.builds(e.RunStarted, attempt=st.just(ATTEMPT), boot=st.just(BootId("b"))),
    st.builds(e.RunEnded, outcome=st.just("paused")),
    st.builds(
        e.PauseRequested,
        trigger=st.sampled_from(Trigger),
        reason=text,
        force_at=st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    ),
    st.builds(
        e.CheckpointCreated,
        checkpoint_id=st.just(CheckpointId("k")),
        type=st.just("pause"),
        snapshot=st.booleans(),
        clean_boundary=st.booleans(),
        commit=st.none(),
        after=st.just(Seq(1)),
    ),
    st.builds(e.Warned, code=text, message=text),
)


@st.composite
def histories(draw: st.DrawFn) -> list[e.Record]:
    sessions = st.sampled_from([ONE, TWO])
    body = draw(st.lists(st.tuples(sessions, happenings), max_size=40))
    return records(*BEGUN, (TWO, e.SessionCreated(number=2, agent="rehearsal", parent=ONE)), *body)


def through_a_snapshot(state: WorkflowState) -> WorkflowState:
    return decode(WorkflowState, encode(state))


@settings(deadline=None, max_examples=150)
@given(histories(), st.integers(min_value=0))
def test_folding_from_any_snapshot_equals_folding_from_the_start(history: list[e.Record], cut: int) -> None:
    cut %= len(history) + 1
    snapshot = through_a_snapshot(fold(history[:cut]))
    assert fold(history[cut:], snapshot) == fold(history)


def rewound() -> e.WorkflowRewound:
    tasks = {TaskId("a"): TaskStatus.COMPLETED, TaskId("b"): TaskStatus.PENDING, TaskId("c"): TaskStatus.PENDING}
    return e.WorkflowRewound(
        checkpoint_id=CheckpointId("ckpt-1"), after=Seq(4), saved=CheckpointId("ckpt-3"), tasks=tasks
    )


def test_a_rewind_restores_tasks_and_snapshot_until_the_next_task_is_completed() -> None:
    history = records(
        *BEGUN,
        (ONE, e.TaskStarted(**task("b"))),
        (ONE, e.TaskCompleted(**task("b"))),
        rewound(),
        (ONE, e.TaskStarted(**task("b"))),
        (ONE, e.TaskCompleted(**task("b"))),
    )
    state = fold(history[:5])
    assert (state.finished, state.last_snapshot) == (("a",), "ckpt-1")
    assert state.rewound_by == rewound()
    assert state.rewinds == (Rewind(Seq(5), Seq(4)),)
    assert fold(history[:6]).rewound_by is not None
    assert fold(history).rewound_by is None


def test_the_tasks_of_a_fork_have_the_status_of_its_origin() -> None:
    origin = e.Origin(
        workflow_id=W,
        session_id=ONE,
        checkpoint_id=CheckpointId("ckpt-1"),
        after=Seq(9),
        tasks={TaskId("a"): TaskStatus.COMPLETED},
    )
    state = fold(
        records(replace(CREATED, forked_from=origin), (TWO, e.SessionCreated(number=1, agent="x", parent=ONE)))
    )
    assert (state.finished, state.forked_from) == (("a",), origin)
    assert state.session is not None and state.session.never_started


def ran(name: str, *, passed: bool) -> e.TestsRan:
    return e.TestsRan(task_id=TaskId(name), command="make test", passed=passed, tests=TestState(phase="unknown"))


def failed(name: str) -> e.StepFailed:
    return e.StepFailed(step=name, what="tests_failed", reason="tests fail")


def test_passing_tests_clear_the_failures_of_their_own_task_only() -> None:
    state = fold(records(*BEGUN, failed("a"), failed("b"), ran("a", passed=True)))
    assert [each.step for each in state.failures] == ["b"]
    assert state.tests is not None and state.tests.tests.seq == 5
    assert fold(records(*BEGUN, failed("a"), ran("a", passed=False))).failures != ()


def test_a_persons_answer_closes_the_question_and_resets_the_attempts() -> None:
    asked = e.PersonAsked(task_id=TaskId("a"), question="Is it done?")
    state = fold(records(*BEGUN, failed("a"), asked))
    assert state.asked == asked
    state = fold(records(*BEGUN, failed("a"), asked, e.PersonAnswered(task_id=TaskId("a"), approved=False)))
    assert (state.asked, state.failures) == (None, ())


def test_a_helper_session_is_no_writer() -> None:
    helper = e.SessionCreated(number=0, agent="rehearsal", parent=ONE, role=Role.REVIEWER)
    state = fold(records(*BEGUN, (TWO, helper)))
    assert (state.current_session, state.helpers, state.writers) == (ONE, frozenset({TWO}), 1)


# ── what was said of the work ───────────────────────────────────────────────────────────────────────────


def said(name: str, number: int, persona: str, *comments: str, approved: bool = False) -> e.ReviewGiven:
    feedback = ReviewerFeedback(
        review_id=f"{name}-{number}-{persona}",
        reviewer_persona=persona,
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        approved=approved,
        severity="high",
        comments=comments,
    )
    return e.ReviewGiven(task_id=TaskId(name), round=number, feedback=feedback)


def still_open(state: WorkflowState) -> list[str]:
    return [each.feedback.review_id for each in state.reviews if not each.feedback.addressed]


def test_a_later_review_of_a_task_replaces_the_earlier_one() -> None:
    rounds = [said("a", number, persona, "no tests") for number in (1, 2) for persona in ("style", "security")]
    state = fold(records(*BEGUN, *rounds, said("b", 1, "style", "no docs"), said("a", 3, "style", approved=True)))
    assert still_open(state) == ["a-2-security", "b-1-style", "a-3-style"]
    assert len(state.reviews) == 6


def test_feedback_of_a_person_does_not_replace_earlier_feedback() -> None:
    state = fold(records(*BEGUN, said("a", 1, PERSON, "Keep the name."), said("a", 2, PERSON, "Now the tests.")))
    assert still_open(state) == ["a-1-user", "a-2-user"]


def test_a_new_plan_marks_all_earlier_reviews_as_addressed() -> None:
    renewed = e.PlanAdopted(plan=Plan(tasks=(Task(id=TaskId("b"), title="Otherwise"),)), by="user")
    history = records(*BEGUN, said("b", 1, "style", "no docs"), said("c", 1, PERSON, "no"), renewed)
    assert still_open(fold(history)) == []
    again = said("b", 2, "style", "no tests")
    assert still_open(fold(records(*BEGUN, said("b", 1, "style", "no docs"), renewed, again))) == ["b-2-style"]


# ── going back to another plan ──────────────────────────────────────────────────────────────────────────


def test_a_rewind_and_its_undo_restore_the_reviews_of_their_targets() -> None:
    first, renewed = said("b", 1, "style", "no docs"), e.PlanAdopted(plan=PLAN, by="user")
    there = fold(records(*BEGUN, first))
    before = records(*BEGUN, first, ran("b", passed=False), renewed, said("b", 2, "style", "no tests"))
    history = records(*(each.event for each in before), replace(rewound(), after=Seq(3)))
    back = fold(history)
    assert (back.reviews, back.tests) == (there.reviews, None)
    undone = records(*(each.event for each in history), replace(rewound(), after=Seq(6)))
    assert (fold(undone).reviews, fold(undone).tests) == (fold(before).reviews, fold(before).tests)


def test_a_rewind_restores_its_plan_and_one_in_an_old_journal_keeps_the_current_plan() -> None:
    other = Plan(tasks=(Task(id=TaskId("x"), title="X"),))
    adopted = e.PlanAdopted(plan=other, by="user")
    tasks = {TaskId("a"): TaskStatus.COMPLETED, TaskId("b"): TaskStatus.PENDING, TaskId("c"): TaskStatus.PENDING}
    state = fold(records(*BEGUN, adopted, replace(rewound(), after=Seq(2), plan=PLAN)))
    assert (state.plan, state.tasks, state.planning) == (PLAN, tasks, None)
    waits = Planning(reason="it leads nowhere", proposed=other)
    state = fold(records(*BEGUN, adopted, replace(rewound(), after=Seq(2), tasks={}, planning=waits)))
    assert (state.plan, state.tasks, state.planning) == (None, {}, waits)
    old = fold(records(*BEGUN, adopted, replace(rewound(), after=Seq(2), tasks={TaskId("x"): TaskStatus.COMPLETED})))
    assert (old.plan, old.finished) == (other, ("x",))


def test_a_plan_that_waits_for_approval_waits_in_a_fork_too() -> None:
    waits = Planning(proposed=PLAN)
    origin = e.Origin(
        workflow_id=W, session_id=ONE, checkpoint_id=CheckpointId("ckpt-1"), after=Seq(9), tasks={}, planning=waits
    )
    assert fold(records(replace(CREATED, plan=None, forked_from=origin))).planning == waits

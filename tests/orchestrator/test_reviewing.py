"""Somebody else looks at each task: what they say is written down, told to the writer, and decided by people."""

from datetime import timedelta
from pathlib import Path

import pytest

from segue.model import events as e
from segue.model.agents import Choices, Limits, Review, Verify
from segue.model.errors import BadInput, UnknownAgent
from segue.model.status import Role, SessionStatus
from segue.workspace.processes import marked
from tests.orchestrator.test_finishing import answer, prompts, standing
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

ONE_TASK = "[{id: a, title: Do A}]"
YES = """say: '{"approved": true, "severity": "low", "comments": []}'"""
NO = """say: 'I looked. {"approved": false, "severity": "high", "comments": ["a.txt is empty", "no tests"]}'"""
WRONG = """say: '{"approved": false, "severity": "critical", "comments": ["undo it"], "wrong_approach": true}'"""
ASKED = "asked for a review"


def script(*answers: str, writer: str = "write: {path: a.txt, content: a}") -> str:
    """The reviewer's answers one after the other, the last again and again."""
    turns = [f"  - {{match: {ASKED}, once: true, do: [{{{each}}}]}}" for each in answers[:-1]]
    turns.append(f"  - {{match: {ASKED}, do: [{{{answers[-1]}}}]}}")
    turns.append(f"  - {{match: '', do: [{{{writer}}}]}}")
    return "\n".join(["turns:", *turns])


def questions(theatre: Theatre) -> list[str]:
    return [text for text in prompts(theatre) if ASKED in text]


async def reviewers(theatre: Theatre, name: str) -> list[tuple[str, SessionStatus]]:
    sessions = await theatre.orchestrator.sessions(name)
    return [(each.agent, each.status) for each in sessions if each.role is Role.REVIEWER]


async def test_a_task_that_is_approved_is_done(opened: Theatre) -> None:
    opened.choices = Choices(review=Review(agent="understudy"))
    view = await opened.begin(script(YES), plan=ONE_TASK)
    await opened.until(view.id, "completed")
    (given,) = await opened.events(view.id, e.ReviewGiven)
    assert (given.task_id, given.round, given.feedback.approved) == ("a", 1, True)
    assert await reviewers(opened, view.id) == [("understudy", SessionStatus.COMPLETED)]
    (question,) = questions(opened)
    assert "Do A" in question and "+++ b/a.txt" in question
    workflow = await opened.orchestrator.workflow(view.id)
    assert workflow.session is not None and workflow.session.number == 1
    assert marked((await opened.first(view.id, e.RunStarted)).attempt) == []


async def test_what_a_reviewer_says_goes_to_the_writer_until_it_is_approved(opened: Theatre) -> None:
    opened.choices = Choices(review=Review(passes=3))
    view = await opened.begin(script(NO, YES), plan=ONE_TASK)
    await opened.until(view.id, "completed")
    assert [given.round for given in await opened.events(view.id, e.ReviewGiven)] == [1, 2]
    told = prompts(opened)[2]
    assert "not approved" in told and "From reviewer (high):\n- a.txt is empty\n- no tests" in told
    assert "earlier reviews" in questions(opened)[1] and "a.txt is empty" in questions(opened)[1]
    assert all(review.feedback.addressed for review in (await opened.services.journal.state(view.id)).reviews)
    assert len(await opened.events(view.id, e.TaskCompleted)) == 1


async def test_every_persona_is_asked_and_all_must_approve(opened: Theatre) -> None:
    opened.choices = Choices(review=Review(personas=("security", "style"), passes=2))
    view = await opened.begin(script(YES, NO, YES), plan=ONE_TASK)
    await opened.until(view.id, "completed")
    given = await opened.events(view.id, e.ReviewGiven)
    assert [(each.round, each.feedback.reviewer_persona, each.feedback.approved) for each in given] == [
        (1, "security", True),
        (1, "style", False),
        (2, "security", True),
        (2, "style", True),
    ]


async def test_after_the_last_pass_a_person_decides(opened: Theatre) -> None:
    opened.choices = Choices(review=Review(passes=2))
    view = await opened.begin(script(NO))
    assert "is not approved by reviewer after 2 reviews" in (await opened.until(view.id, "review")).reason
    (failed,) = await opened.events(view.id, e.StepFailed)
    assert failed.what == "review_not_passed"
    opened.script.write_text(script(YES))
    assert await answer(opened, view.id, allow=True) is not None
    await opened.until(view.id, "completed")
    assert [done.task_id for done in await opened.events(view.id, e.TaskCompleted)] == ["a", "b"]


async def test_what_a_reviewer_said_twice_is_told_once(opened: Theatre) -> None:
    opened.choices = Choices(review=Review(passes=2))
    view = await opened.begin(script(NO), plan=ONE_TASK)
    asked = await opened.until(view.id, "review")
    assert asked.asks == "“Do A” is not approved by reviewer after 2 reviews. Is it done all the same?"
    context = (await opened.orchestrator.context(view.id, None)).context
    opened.script.write_text(script(YES))
    await opened.resume(view.id)
    await opened.until(view.id, "completed")
    assert asked.last_snapshot is not None
    snapshot = await opened.orchestrator.snapshot(view.id, asked.last_snapshot)
    again = next(text for text in prompts(opened) if text.startswith("The work stood still"))
    assert again.startswith("The work stood still for a person's word: “Do A” is not approved by reviewer")
    assert "Is it done" not in again
    assert (again.count("no tests"), context.count("no tests")) == (1, 1)
    assert snapshot.findings is not None
    assert [each.addressed for each in snapshot.findings.feedback] == [True, False]


async def test_a_reviewer_who_says_that_the_way_is_wrong_brings_it_before_a_person(opened: Theatre) -> None:
    opened.choices = Choices(review=Review(passes=3), fixer="off")
    view = await opened.begin(script(WRONG), plan=ONE_TASK)
    await opened.until(view.id, "review")
    (failed,) = await opened.events(view.id, e.StepFailed)
    assert failed.what == "wrong_approach"


@pytest.mark.parametrize(
    ("does", "why"),
    [("crash: true", "process ended"), ("hang: true", "within 600 seconds"), ("say: Looks good.", "could not be read")],
)
async def test_without_a_review_the_work_is_kept_and_a_person_is_asked(theatre: Theatre, does: str, why: str) -> None:
    theatre.choices = Choices(review=Review())
    async with theatre.open(review_time=600.0):
        view = await theatre.begin(
            f"turns: [{{match: {ASKED}, do: [{does}]}}, {{match: Task 1, do: [write: {{path: a.txt, content: a}}]}}]",
            plan=ONE_TASK,
        )
        if "hang" in does:
            await theatre.until_prompted(2)
            await theatre.clock.advance(600)
        assert "was not reviewed by reviewer" in (await theatre.until(view.id, "review")).reason
        (warning,) = await theatre.events(view.id, e.Warned)
        assert warning.code == "helper_failed" and why in warning.message
        assert warning.message.startswith("The reviewer gave no answer that can be used. ")
        assert (theatre.root / "worktrees" / view.slug / "a.txt").exists()
        assert await reviewers(theatre, view.id) == [("rehearsal", SessionStatus.FAILED)]
        await answer(theatre, view.id, allow=True)
        await theatre.until(view.id, "completed")


async def test_a_reviewer_may_not_write_and_one_that_does_is_told_of(opened: Theatre) -> None:
    opened.choices = Choices(review=Review())
    does = f"{{write: {{path: asked.txt, content: x}}, ask: true}}, {{write: {{path: sly.txt, content: x}}}}, {{{YES}}}"
    view = await opened.begin(f"turns: [{{match: {ASKED}, do: [{does}]}}]", plan=ONE_TASK)
    await opened.until(view.id, "completed")
    (denied,) = await opened.events(view.id, e.PermissionAnswered)
    assert (denied.outcome, denied.by) == ("denied", "policy")
    (warning,) = await opened.events(view.id, e.Warned)
    assert warning.code == "helper_changed_files" and warning.message.endswith("The file sly.txt appeared.")


async def test_what_a_reviewer_says_and_uses_counts_and_is_no_part_of_the_story(opened: Theatre) -> None:
    opened.choices = Choices(review=Review())
    spent = "{usage: {input: 700, output: 30}}, {say: 'I decided to use rust because it is red.'}"
    view = await opened.begin(f"turns: [{{match: {ASKED}, do: [{spent}, {{{YES}}}]}}]", plan=ONE_TASK)
    await opened.until(view.id, "completed")
    state = await opened.services.journal.state(view.id)
    assert (state.usage.input_tokens, state.usage.output_tokens) == (700, 30)
    facts = await opened.services.facts.facts(view.id)
    assert not any("rust" in sentence.text for sentence in facts.sentences)
    assert facts.decisions == ()


async def test_open_feedback_is_in_the_snapshot_the_context_and_the_next_prompt(theatre: Theatre) -> None:
    theatre.choices = Choices(review=Review(passes=1))
    async with theatre.open():
        view = await theatre.begin(script(NO, YES), plan=ONE_TASK)
        asked = await theatre.until(view.id, "review")
        assert asked.last_snapshot is not None
        found = (await theatre.orchestrator.snapshot(view.id, asked.last_snapshot)).findings
        assert found is not None
        (feedback,) = found.feedback
        assert (feedback.comments, feedback.addressed) == (("a.txt is empty", "no tests"), False)
        context = await theatre.orchestrator.context(view.id, None)
        assert "### Unaddressed reviewer feedback" in context.context and "a.txt is empty" in context.context
    async with theatre.open():
        await theatre.resume(view.id)
        await theatre.until(view.id, "completed")
        assert "not seen to yet:\nFrom reviewer (high):\n- a.txt is empty" in prompts(theatre)[2]


async def test_tests_are_run_again_after_what_a_review_has_changed(opened: Theatre) -> None:
    opened.choices = Choices(verify=Verify(command="test -e a.txt"), review=Review(passes=2), limits=Limits(tasks=5))
    view = await opened.begin(script(NO, YES), plan=ONE_TASK)
    await opened.until(view.id, "completed")
    kinds = (e.TestsRan, e.ReviewGiven, e.FeedbackAddressed, e.TaskCompleted)
    records = await opened.services.journal.records(view.id, limit=1000)
    order = [type(record.event) for record in records if isinstance(record.event, kinds)]
    assert order == [e.TestsRan, e.ReviewGiven, e.TestsRan, e.ReviewGiven, e.FeedbackAddressed, e.TaskCompleted]


async def test_a_run_that_is_torn_away_takes_its_reviewer_along(theatre: Theatre, tmp_path: Path) -> None:
    theatre.choices = Choices(review=Review(agent="understudy"))
    begun = tmp_path / "begun"
    async with theatre.open(pause_force_after=60.0):
        does = f"{{run: touch {begun}}}, {{hang: true}}"
        view = await theatre.begin(f"turns: [{{match: {ASKED}, do: [{does}]}}]")
        await theatre.until_there(begun)
        await theatre.pause(view.id, "a break")
        await theatre.as_time_goes_by(view.id, "paused")
        assert await standing(theatre, view.id) == ("paused", ["pending", "pending"])
        assert await reviewers(theatre, view.id) == [("understudy", SessionStatus.TERMINATED)]
        assert marked((await theatre.first(view.id, e.RunStarted)).attempt) == []
        theatre.script.write_text(script(YES))
        await theatre.resume(view.id)
        await theatre.until(view.id, "completed")


async def test_what_a_reviewer_says_after_its_run_is_over_is_not_written_down(opened: Theatre) -> None:
    opened.choices = Choices(review=Review())
    view = await opened.begin(script(YES), plan=ONE_TASK)
    await opened.until(view.id, "completed")
    started = await opened.first(view.id, e.RunStarted)
    sessions = await opened.orchestrator.sessions(view.id)
    reviewer = next(each.id for each in sessions if each.role is Role.REVIEWER)
    late = e.AgentMessage(text="One more thing.")
    await opened.services.journal.append(view.id, late, session_id=reviewer, attempt=started.attempt)
    assert "One more thing." not in [each.text for each in await opened.events(view.id, e.AgentMessage)]


@pytest.mark.parametrize(
    ("review", "error", "says"),
    [
        (Review(agent="nobody"), UnknownAgent, "No agent is called"),
        (Review(passes=0), BadInput, "one pass at least"),
        (Review(personas=()), BadInput, "somebody who reviews"),
    ],
)
async def test_bad_reviews_are_refused(opened: Theatre, review: Review, error: type[Exception], says: str) -> None:
    opened.choices = Choices(review=review)
    with pytest.raises(error, match=says):
        await opened.begin(script(YES))


async def test_a_reviewer_without_quota_is_the_last_that_is_asked_and_is_waited_for(theatre: Theatre) -> None:
    reset = (theatre.clock.now() + timedelta(hours=3)).replace(microsecond=0)
    empty = f"fail: {{kind: quota, reset: '{reset:%Y-%m-%dT%H:%M:%SZ}'}}"
    theatre.choices = Choices(review=Review(personas=("security", "style")), wait_for_quota=True)
    async with theatre.open(retry_attempts=3):
        view = await theatre.begin(script(empty, YES), plan=ONE_TASK)
        paused = await theatre.until(view.id, "paused")
        assert len(questions(theatre)) == 1
        assert paused.retry is not None and paused.retry.at == reset
        assert paused.session is not None and paused.session.status is SessionStatus.SUSPENDED
        assert "The reviewer" in paused.reason
        await theatre.clock.advance(3 * 3600)
        await theatre.until(view.id, "completed")
        assert len(questions(theatre)) == 3


async def test_how_long_a_reviewer_may_take_can_be_chosen(theatre: Theatre) -> None:
    theatre.choices = Choices(review=Review())
    async with theatre.open(review_time=1800.0):
        view = await theatre.begin(script("hang: true"), plan=ONE_TASK)
        await theatre.until_prompted(2)
        await theatre.clock.advance(1799)
        assert await theatre.events(view.id, e.PersonAsked) == []
        await theatre.clock.advance(1)
        await theatre.until(view.id, "review")


async def test_an_agent_that_dies_of_every_review_is_not_reviewed_more_often_than_allowed(theatre: Theatre) -> None:
    theatre.choices = Choices(review=Review(passes=2), verify=Verify(command="true"))
    dies = script(NO).replace("  - {match: ''", "  - {match: it was reviewed, do: [{crash: true}]}\n  - {match: ''")
    async with theatre.open(retry_attempts=3):
        view = await theatre.begin(dies, plan=ONE_TASK)
        assert "after 2 reviews" in (await theatre.as_time_goes_by(view.id, "review")).reason
        assert len(questions(theatre)) == 2

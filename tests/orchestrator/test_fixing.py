"""A second agent, for a step that keeps failing."""

from dataclasses import replace
from datetime import timedelta

import pytest

from segue.model import crash
from segue.model import events as e
from segue.model.agents import Choices, Limits, Review, Verify
from segue.model.status import Role, Trigger, WorkflowStatus
from tests.orchestrator.test_forking import FORK, fork
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre, git

pytestmark = pytest.mark.anyio

SCRIPT = """
turns:
  - match: You are asked for advice
    do: [{{say: '{answer}'}}]
  - match: advises
    do: [{{write: {{path: mended.txt, content: "A"}}}}]
  - match: Task 2 of 2
    do: [{second}]
  - match: Task 1 of 2
    do: [{first}]
"""

SLOWLY = {"retry_attempts": 3, "retry_first": 40.0}
"""Three failures of an agent within a minute would be no matter for a second agent."""


@pytest.fixture
def server_settings() -> dict[str, int]:
    return {"retry_attempts": 2}


def failing(answer: str, first: str = "{say: Now.}, {crash: true}", second: str = "{say: Done.}") -> str:
    return SCRIPT.format(answer=answer, first=first, second=second)


def advice(verdict: str, text: str = "Close the file first.") -> str:
    return f'{{"verdict": "{verdict}", "advice": "{text}"}}'


async def test_after_three_failures_a_second_agent_advises_and_the_step_is_tried_once_more(theatre: Theatre) -> None:
    async with theatre.open(**SLOWLY):
        await theatre.begin(failing(advice("fix")))
        view = await theatre.as_time_goes_by("build-it", "completed")
        scheduled = await theatre.events("build-it", e.RetryScheduled)
        assert [(each.attempt, each.of, each.fixer) for each in scheduled] == [
            (2, 3, False),
            (3, 3, False),
            (4, 4, True),
        ]
        (told,) = await theatre.events("build-it", e.FixerAdvised)
        assert (told.step, told.verdict, told.advice) == ("a", "fix", "Close the file first.")
        roles = [session.role for session in (await theatre.services.journal.state(view.id)).sessions.values()]
        assert roles == [Role.WRITER, Role.FIXER]
    asked, last = [entry["text"] for entry in theatre.diary("prompt")][3:5]
    assert "Do A" in asked and "3. The agent's process ended" in asked
    assert "advises:\n\nClose the file first." in last


async def test_an_agent_that_dies_three_times_in_a_minute_is_left_to_a_person_unadvised(theatre: Theatre) -> None:
    async with theatre.open(retry_attempts=3):
        await theatre.begin(failing(advice("fix")))
        view = await theatre.until("build-it", "paused")
        for seconds in (1, 2):
            await theatre.clock.advance(seconds)
            await theatre.event("build-it", e.RunStarted, after=view.head)
            view = await theatre.until("build-it", "paused")
        assert (view.retry, view.runs) == (None, 3)
        assert [each.step for each in await theatre.events("build-it", e.StepFailed)] == ["a"] * 3
    assert [entry for entry in theatre.diary("prompt") if "asked for advice" in entry["text"]] == []


async def test_what_fails_with_the_advice_too_is_left_to_a_person(theatre: Theatre) -> None:
    script = failing(advice("fix")).replace('{write: {path: mended.txt, content: "A"}}', "{say: Hm.}, {crash: true}")
    async with theatre.open(**SLOWLY):
        await theatre.begin(script)
        await theatre.as_time_goes_by("build-it", "paused")
        while len(await theatre.events("build-it", e.StepFailed)) < 4:
            await theatre.as_time_goes_by("build-it", "paused")
        view = await theatre.until("build-it", "paused")
        assert (view.retry, view.runs) == (None, 4)
        assert len(await theatre.events("build-it", e.FixerAdvised)) == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (advice("escalate", "The disk is broken."), "The disk is broken."),
        ("I do not know.", "A second agent was asked and gave no advice that could be used."),
    ],
)
async def test_a_fixer_that_gives_up_leaves_it_to_a_person(theatre: Theatre, answer: str, reason: str) -> None:
    async with theatre.open(**SLOWLY):
        await theatre.begin(failing(answer))
        while not await theatre.events("build-it", e.FixerAdvised):
            await theatre.as_time_goes_by("build-it", "paused")
        view = await theatre.until("build-it", "paused")
        assert view.retry is None and view.reason == f"a person has to look at it: {reason}"
        assert view.runs == 4


async def test_whoever_wants_no_fixer_gets_none(opened: Theatre) -> None:
    opened.choices = Choices(fixer="off")
    await opened.begin(failing(advice("fix")))
    while len(await opened.events("build-it", e.StepFailed)) < 2:
        await opened.as_time_goes_by("build-it", "paused")
    assert (await opened.until("build-it", "paused")).retry is None
    assert await opened.events("build-it", e.FixerAdvised) == []


async def test_a_wrong_way_is_undone_exactly_and_planned_again(opened: Theatre) -> None:
    (opened.repository / ".gitignore").write_text("*.log\n")
    git(opened.repository, "add", "-A")
    git(opened.repository, "commit", "--quiet", "--message", "ignore")
    first = "{write: {path: a.txt, content: A}}, {write: {path: sub/untracked.txt, content: U}}"
    wrong = "{run: 'rm a.txt; echo B > sub/untracked.txt; echo x > junk.txt; echo y > kept.log'}, {crash: true}"
    await opened.begin(failing(advice("rewind", "Begin with the tests."), first, wrong))
    head = None
    while not await opened.events("build-it", e.PlanReopened):
        await opened.as_time_goes_by("build-it", "paused", "in_progress")
        head = head or git(worktree_of(opened), "rev-parse", "HEAD")
    (rewound,) = await opened.events("build-it", e.WorkflowRewound)
    (reopened,) = await opened.events("build-it", e.PlanReopened)
    assert reopened.reason == "the fixer advises: Begin with the tests."
    moved = [each for each in await opened.events("build-it", e.WorkflowMoved) if each.after == "paused"]
    assert {each.trigger for each in moved} == {Trigger.CRASH}
    worktree = worktree_of(opened)
    assert (worktree / "a.txt").read_text() == "A"
    assert (worktree / "sub/untracked.txt").read_text() == "U"
    assert not (worktree / "junk.txt").exists()
    assert (worktree / "kept.log").read_text() == "y\n"
    assert git(worktree, "rev-parse", "HEAD") == head
    view = await opened.orchestrator.workflow("build-it")
    saved = await opened.services.journal.checkpoints.get(view.id, rewound.saved)
    assert saved.commit is not None and "junk.txt" in git(worktree, "ls-tree", "--name-only", saved.commit)
    await opened.cancel("build-it", "seen enough")
    assert (await opened.orchestrator.workflow("build-it")).status is WorkflowStatus.CANCELLED


async def test_without_a_checkpoint_to_go_back_to_the_rest_is_planned_again(theatre: Theatre) -> None:
    script = failing(advice("rewind", "Begin with the tests."), "{write: {path: half.txt, content: H}}, {crash: true}")
    async with theatre.open(retry_attempts=2, retry_first=40.0):
        await theatre.begin(script)
        await theatre.until("build-it", "paused")
        await theatre.pause("build-it", "try it elsewhere", wait=True)
        await fork(theatre)
        await theatre.resume(FORK)
        async with theatre.time_going_by():
            await theatre.event(FORK, e.PlanReopened)
        (warned,) = [each for each in await theatre.events(FORK, e.Warned) if each.code == "nothing_undone"]
        (reopened,) = await theatre.events(FORK, e.PlanReopened)
        assert reopened.reason == f"the fixer advises: Begin with the tests. {warned.message}"
        assert await theatre.events(FORK, e.WorkflowRewound) == []
        assert (worktree_of(theatre, FORK) / "half.txt").read_text() == "H"
        await theatre.until_noted(lambda: "planned again" in theatre.diary("prompt")[-1]["text"])
        await theatre.cancel(FORK, "seen enough")


async def test_a_run_torn_away_as_it_ends_still_goes_back_and_on_in_the_callers_shell(theatre: Theatre) -> None:
    def tear_away(name: str) -> None:
        if name == "run.paused.after":
            (workflow_id,) = theatre.services.live
            theatre.tear_away_at_once(workflow_id, "the sweep found it late")

    async with theatre.open(retry_attempts=2, environment={}, sweep_interval=36000.0):
        await theatre.begin(failing(advice("rewind", "Begin with the tests.")))
        crash.arm(tear_away)
        try:
            async with theatre.time_going_by(1):
                await theatre.event("build-it", e.PlanReopened)
        finally:
            crash.arm(None)
        await theatre.until_noted(lambda: "planned again" in theatre.diary("prompt")[-1]["text"])
        await theatre.cancel("build-it", "seen enough")


SILENT = SCRIPT.replace("[{{say: '{answer}'}}]", "[{{hang: true}}]")


@pytest.mark.parametrize(("limits", "trigger"), [(Limits(), Trigger.PAUSE), (Limits(seconds=120), Trigger.TIMEOUT)])
async def test_the_fixer_does_not_delay_pauses_and_limits(theatre: Theatre, limits: Limits, trigger: Trigger) -> None:
    theatre.choices = Choices(limits=limits)
    async with theatre.open(retry_attempts=2, pause_force_after=30.0, fixer_time=3600.0):
        await theatre.begin(SILENT.format(first="{say: Now.}, {crash: true}", second="{say: Done.}"))
        before = await theatre.until("build-it", "paused")
        await theatre.clock.advance(1)
        await theatre.event("build-it", e.RunStarted, after=before.head)
        # The try with advice follows at once: whoever waits for the pause in between may miss it.
        await theatre.until_noted(
            lambda: any("You are asked for advice" in each["text"] for each in theatre.diary("prompt"))
        )
        if trigger is Trigger.PAUSE:
            await theatre.pause("build-it")
        view = await theatre.as_time_goes_by("build-it", "paused")
        assert await theatre.events("build-it", e.FixerAdvised) == [] and view.retry is None
        moved = (await theatre.events("build-it", e.WorkflowMoved))[-1]
        assert moved.trigger is trigger and "asked for advice" in moved.reason
        (warned,) = [each for each in await theatre.events("build-it", e.Warned) if each.code == "pause_forced"]
        assert "advice" in warned.message


async def test_a_fixer_without_quota_is_asked_about_the_same_step_later(opened: Theatre) -> None:
    opened.choices = Choices(wait_for_quota=True)
    reset = opened.clock.now() + timedelta(hours=1)
    empty = f"fail: {{kind: quota, reset: '{reset:%Y-%m-%dT%H:%M:%SZ}'}}"
    script = failing(advice("fix")).replace(
        "turns:", f"turns:\n  - {{match: You are asked for advice, once: true, do: [{{{empty}}}]}}"
    )
    await opened.begin(script)
    while len(await opened.events("build-it", e.StepFailed)) < 3:
        await opened.as_time_goes_by("build-it", "paused")
    view = await opened.until("build-it", "paused")
    failed = await opened.events("build-it", e.StepFailed)
    assert [(each.step, each.what) for each in failed] == [
        ("a", "process_exited"),
        ("a", "process_exited"),
        ("a", "quota"),
    ]
    assert view.retry is not None and (view.retry.step, view.retry.attempt, view.retry.of) == ("a", 4, 4)
    await opened.clock.advance(3600)
    await opened.as_time_goes_by("build-it", "completed")
    (told,) = await opened.events("build-it", e.FixerAdvised)
    assert (told.step, told.verdict) == ("a", "fix")


# ── inside a run ────────────────────────────────────────────────────────────────────────────────────


def of_failing_tests(answer: str) -> str:
    """An agent that does what its tests want only when it is advised to."""
    return failing(answer, first="{say: Done.}")


async def test_tests_that_keep_failing_bring_the_fixer_and_its_advice_into_the_next_turn(theatre: Theatre) -> None:
    theatre.choices = Choices(verify=Verify(command="test -f mended.txt"))
    async with theatre.open(retry_attempts=3):
        await theatre.begin(of_failing_tests(advice("fix")), plan="[{id: a, title: Do A}, {id: b, title: Do B}]")
        view = await theatre.until("build-it", "completed")
        passed = [each.passed for each in await theatre.events("build-it", e.TestsRan)]
        assert passed == [False, False, False, True, True]
        assert len(await theatre.events("build-it", e.FixerAdvised)) == 1
        assert (view.runs, view.tasks_done) == (1, 2)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (advice("escalate", "The tests want a printer."), "A second agent says: The tests want a printer."),
        ("I do not know.", "A second agent was asked and gave no advice that could be used."),
    ],
)
async def test_a_fixer_that_gives_up_on_tests_asks_a_person(opened: Theatre, answer: str, said: str) -> None:
    opened.choices = Choices(verify=Verify(command="false"))
    await opened.begin(of_failing_tests(answer))
    assert (await opened.until("build-it", "review")).reason.endswith(f". {said}")
    assert len(await opened.events("build-it", e.PersonAsked)) == 1
    asked = next(each["text"] for each in opened.diary("prompt") if "You are asked for advice" in each["text"])
    assert "What to do next" in asked and "session ended" not in asked


async def test_a_reviewer_who_says_that_the_way_is_wrong_has_it_undone_and_planned_again(theatre: Theatre) -> None:
    wrong = '{"approved": false, "severity": "critical", "comments": ["undo it"], "wrong_approach": true}'
    yes = '{"approved": true, "severity": "low", "comments": []}'
    script = f"""
turns:
  - {{match: asked for a review, once: true, do: [{{say: '{yes}'}}]}}
  - {{match: asked for a review, do: [{{say: '{wrong}'}}]}}
  - {{match: Task 2 of 2, do: [{{run: 'rm a.txt; echo x > junk.txt'}}]}}
  - {{match: Task 1 of 2, do: [{{write: {{path: a.txt, content: A}}}}]}}
"""
    theatre.choices = Choices(review=Review())
    async with theatre.open(retry_attempts=3):
        await theatre.begin(script)
        assert "does not lead there" in (await theatre.first("build-it", e.PlanReopened)).reason
        assert (worktree_of(theatre) / "a.txt").exists()
        (scheduled,) = await theatre.events("build-it", e.RetryScheduled)
        assert (scheduled.step, scheduled.rewind) == ("b", True)
        (stopped,) = [each for each in await theatre.events("build-it", e.WorkflowMoved) if each.after == "paused"]
        assert stopped.trigger is Trigger.CRASH
        await theatre.cancel("build-it", "seen enough")


async def test_a_wrong_first_task_is_undone_and_the_users_changes_stay(opened: Theatre) -> None:
    (opened.repository / "mine.txt").write_text("not committed\n")
    wrong = "{run: 'rm mine.txt; echo x > junk.txt'}, {crash: true}"
    await opened.begin(failing(advice("rewind", "Begin with the tests."), wrong), here=True)
    while not await opened.events("build-it", e.PlanReopened):
        await opened.as_time_goes_by("build-it", "paused", "in_progress")
    (rewound,) = await opened.events("build-it", e.WorkflowRewound)
    assert rewound.checkpoint_id.endswith("-000")
    assert (opened.repository / "mine.txt").read_text() == "not committed\n"
    assert not (opened.repository / "junk.txt").exists()
    await opened.cancel("build-it", "seen enough")


PLANS = """
turns:
  - {match: asked for a review, do: [{say: '{"approved": false, "severity": "critical", "comments": ["no"], "wrong_approach": true}'}]}
  - {match: You are asked for advice, do: [{say: '{"verdict": "rewind", "advice": "Do it otherwise."}'}]}
  - {match: Make a plan, do: [{say: '{"tasks": [{"id": "x", "title": "Do X"}]}'}]}
  - {match: planned again, do: [{say: '{"tasks": [{"id": "x", "title": "Do X"}]}'}]}
  - {match: Task 1, do: [{write: {path: a.txt, content: A}}]}
"""  # noqa: E501


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        (Choices(review=Review()), "reviewer says that this way does not lead there"),
        (Choices(verify=Verify(command="false")), "the fixer advises: Do it otherwise."),
    ],
)
async def test_repeatedly_undone_work_needs_a_person(theatre: Theatre, choices: Choices, said: str) -> None:
    theatre.choices = replace(choices, approve_plan=True)
    async with theatre.open(retry_attempts=3):
        await theatre.begin(PLANS, plan=None, propose=True)
        view = await theatre.as_time_goes_by("build-it", "review")
        assert [each.reason for each in await theatre.events("build-it", e.PlanReopened)] == [said, said]
        interrupted = [each.reason for each in await theatre.events("build-it", e.TaskInterrupted)]
        assert interrupted == [said, said, "somebody has to say what becomes of it"]
        assert "Do X" in view.reason
        assert len(await theatre.events("build-it", e.PersonAsked)) == 1

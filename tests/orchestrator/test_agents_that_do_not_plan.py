"""An agent that does one thing with whatever it is told: nobody asks it for a plan, a review, advice or a report."""

from pathlib import Path

import pytest

from segue.model import events as e
from segue.model.agents import AgentConfiguration, Choices, Review
from segue.model.errors import BadInput, WrongState
from segue.model.requests import ApproveRequest, ForkRequest, RejectRequest
from segue.model.status import WorkflowStatus
from segue.model.views import WorkflowView
from segue.settings import BUILT_IN_AGENTS
from segue.settings.readers import AGENT_READERS
from tests.orchestrator.test_fixing import SLOWLY, advice, failing
from tests.orchestrator.test_planning import TASKS, blocked, fenced, prompts, propose, script, titles
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

GRAPH = Path(__file__).parents[2] / "docs" / "how-to" / "todo_graph.py"
WORKS = "turns: [{match: '', do: [{say: Done.}]}]"
NO_PLANS = "worker makes no plans, so the issue is one task."


@pytest.fixture
def worker(theatre: Theatre) -> Theatre:
    """Beside the others, a rehearsal agent that is known to plan nothing."""
    theatre.agents["worker"] = AgentConfiguration(
        name="worker", command=theatre.commands["rehearsal"], environment=("SEGUE_REHEARSAL_*",), plans=False
    )
    return theatre


async def warnings(theatre: Theatre, code: str) -> list[str]:
    return [each.message for each in await theatre.events("build-it", e.Warned) if each.code == code]


def test_a_graph_makes_no_plans_and_an_agent_of_ones_own_can_say_so() -> None:
    assert [agent.name for agent in BUILT_IN_AGENTS.values() if not agent.plans] == ["langgraph"]
    assert AGENT_READERS["plans"]("agents.todo.plans", "false") is False


@pytest.mark.parametrize("answer", [True, False])
async def test_the_first_command_of_the_page_does_what_the_page_says(theatre: Theatre, answer: bool) -> None:
    (theatre.repository / "code.py").write_text("x = 1  # TODO: give it a name\n")
    theatre.agents["langgraph"] = BUILT_IN_AGENTS["langgraph"]
    theatre.variables = {
        "SEGUE_LANGGRAPH_GRAPH": f"{GRAPH}:graph",
        "SEGUE_LANGGRAPH_CHECKPOINTS": str(theatre.root / "checkpoints.sqlite"),
    }
    async with theatre.open():
        await theatre.begin("", plan=None, propose=True, agent="langgraph", permissions="ask", here=True)
        assert (await theatre.first("build-it", e.PermissionRequested)).title == "Shall I write TODO.md?"
        given = ApproveRequest if answer else RejectRequest
        await theatre.orchestrator.answer("build-it", given(environment=theatre.environment))
        view = await theatre.until("build-it", "completed")
        assert await warnings(theatre, "not_planned") == ["langgraph makes no plans, so the issue is one task."]
        (prompt,) = await theatre.events("build-it", e.PromptQueued)
    assert titles(view) == [("issue", "completed")]
    assert "## Task 1 of 1: Build it" in prompt.text
    assert (theatre.repository / "TODO.md").exists() is answer


async def test_a_plan_of_the_users_own_is_worked_on_without_a_word(worker: Theatre) -> None:
    async with worker.open():
        await worker.begin(WORKS, propose=True, agent="worker")
        assert (await worker.until("build-it", "completed")).tasks_done == 2
        assert await warnings(worker, "not_planned") == []


async def test_one_that_takes_over_before_there_is_a_plan_is_given_the_issue(worker: Theatre) -> None:
    async with worker.open():
        await propose(worker, script("No.", "No!"))
        await worker.until("build-it", "paused")
        await worker.resume("build-it", agent="worker")
        view = await worker.until("build-it", "completed")
        assert await warnings(worker, "not_planned") == [NO_PLANS]
    assert titles(view) == [("issue", "completed")]
    assert "Make a plan" not in prompts(worker)[-1]


async def test_one_that_takes_over_a_rejected_plan_hears_why_it_was_rejected(worker: Theatre) -> None:
    async with worker.open():
        await blocked(worker, script(fenced(TASKS), "No."))
        await worker.orchestrator.answer(
            "build-it", RejectRequest(reason="No tea, please.", environment=worker.environment)
        )
        await worker.until("build-it", "paused")
        await worker.resume("build-it", agent="worker")
        await worker.until("build-it", "completed")
    assert "No tea, please." in prompts(worker)[-1] and "## Task 1 of 1" in prompts(worker)[-1]


async def test_it_is_not_asked_for_another_plan_in_place_of_one_that_waits(worker: Theatre) -> None:
    async with worker.open():
        fork = await forked(worker, await blocked(worker))
        await worker.resume(fork.slug)
        with pytest.raises(WrongState, match="worker makes no plans"):
            await worker.orchestrator.answer(
                fork.slug, RejectRequest(reason="Otherwise.", environment=worker.environment)
            )
        assert (await worker.orchestrator.workflow(fork.slug)).status == "blocked"
        await worker.orchestrator.answer(fork.slug, ApproveRequest(environment=worker.environment))
        assert (await worker.until(fork.slug, "completed")).tasks_done == 2


async def forked(theatre: Theatre, view: WorkflowView) -> WorkflowView:
    assert view.session is not None
    request = ForkRequest(agent="worker", environment=theatre.environment)
    return (await theatre.orchestrator.fork(view.session.id, request)).workflow


async def test_what_led_nowhere_is_taken_back_and_tried_again_by_the_same_plan(worker: Theatre) -> None:
    wrong = '{"approved": false, "severity": "critical", "comments": ["undo it"], "wrong_approach": true}'
    yes = '{"approved": true, "severity": "low", "comments": []}'
    play = f"""
turns:
  - {{match: asked for a review, once: true, do: [{{say: '{wrong}'}}]}}
  - {{match: asked for a review, do: [{{say: '{yes}'}}]}}
  - {{match: Task, do: [{{say: Done.}}]}}
"""
    worker.choices = Choices(review=Review(agent="rehearsal"))
    async with worker.open(retry_attempts=3):
        await worker.begin(play, agent="worker")
        view = await worker.as_time_goes_by("build-it", "completed")
        assert len(await worker.events("build-it", e.PlanReopened)) == 1
        assert await warnings(worker, "not_planned") == [
            "worker makes no plans, so what was planned before is tried again."
        ]
    assert titles(view) == [("a", "completed"), ("b", "completed")]
    work = [text for text in prompts(worker) if "asked for a review" not in text]
    assert "taken back: reviewer says that this way does not lead there" in work[1]
    assert not any("Make a plan" in text for text in work)


async def test_it_is_not_asked_for_advice_on_its_own_failures(worker: Theatre) -> None:
    async with worker.open(**SLOWLY):
        await worker.begin(failing(advice("fix")), agent="worker")
        while len(await worker.events("build-it", e.StepFailed)) < 3:
            await worker.as_time_goes_by("build-it", "paused")
        assert (await worker.until("build-it", "paused")).retry is None
    assert not any("asked for advice" in text for text in prompts(worker))


@pytest.mark.parametrize(
    ("agent", "choices"),
    [
        ("worker", Choices(review=Review())),
        ("rehearsal", Choices(review=Review(agent="worker"))),
        ("rehearsal", Choices(fixer="worker")),
    ],
)
async def test_who_cannot_review_or_advise_is_refused_at_once(worker: Theatre, agent: str, choices: Choices) -> None:
    worker.choices = choices
    async with worker.open():
        with pytest.raises(BadInput, match="worker does its work and nothing else"):
            await worker.begin(WORKS, agent=agent)
        assert await worker.orchestrator.workflows(None, []) == []


async def test_where_it_takes_over_from_one_that_reviewed_itself_a_person_reviews(worker: Theatre) -> None:
    play = "turns: [{match: Task, once: true, do: [{say: Hm.}, {crash: true}]}, {match: '', do: [{say: Done.}]}]"
    worker.choices = Choices(review=Review())
    async with worker.open():
        await worker.begin(play)
        await worker.until("build-it", "paused", "failed")
        await worker.resume("build-it", agent="worker")
        view = await worker.until("build-it", WorkflowStatus.REVIEW)
        (told,) = await warnings(worker, "not_reviewed")
    assert "was not reviewed by reviewer" in view.reason
    assert told.startswith("worker does its work and nothing else")


async def test_it_is_not_asked_for_a_report(worker: Theatre) -> None:
    waits = "turns: [{match: '', do: [{run: 'until [ -e go ]; do sleep 0.05; done'}]}]"
    async with worker.open(extraction="agent"):
        await worker.begin_until(e.ToolCalled, waits, agent="worker")
        await worker.pause("build-it")
        (worker.root / "worktrees" / "build-it" / "go").touch()
        assert (await worker.until("build-it", "paused")).tasks_done == 1
    assert len(prompts(worker)) == 1

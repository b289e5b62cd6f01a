"""Reviews: somebody else looks at a task before it counts as done."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from segue.journal import Transaction
from segue.model import events as e
from segue.model.agents import AgentConfiguration, Choices, Review
from segue.model.bounds import LONGEST, MOST
from segue.model.errors import BadInput, SegueError
from segue.model.findings import ReviewerFeedback, Severity
from segue.model.ids import TaskId
from segue.model.plan import Task
from segue.model.status import Role
from segue.model.work import SAME
from segue.orchestrator.run.helping import Help, ask_helper
from segue.orchestrator.run.tenure import Tenure
from segue.orchestrator.runtime.agents import agent_named, helpers, require
from segue.orchestrator.runtime.house import House
from segue.resume.remarks import review_question
from segue.snapshot.extraction import Texts, Unreadable, read_object
from segue.state.fold import WorkflowState
from segue.workspace.checkpoints import tree_of
from segue.workspace.commits import difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a reviewer answers."""

    approved: bool
    severity: Annotated[Severity, BeforeValidator(lambda given: "low" if given is None else given)] = "medium"
    comments: Texts = ()
    wrong_approach: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What all reviewers said of one state of the work."""

    given: tuple[e.ReviewGiven, ...]
    missing: tuple[str, ...] = ()
    """Those who were asked and gave no answer that can be used."""

    @property
    def approved(self) -> bool:
        return all(review.feedback.approved for review in self.given)

    @property
    def wrong_approach(self) -> bool:
        return any(review.wrong_approach and review.feedback.severity == "critical" for review in self.given)


def read_verdict(text: str) -> Verdict | Unreadable:
    verdict = read_object(text, Verdict, ("approved",))
    if isinstance(verdict, Verdict) and not verdict.approved and not verdict.comments:
        return Unreadable("It is not approved, and no comment says why.")
    return verdict


async def review(tenure: Tenure, environment: Mapping[str, str], wanted: Review, task: Task) -> Round:
    """Ask each reviewer, one after the other; what they say is on disk before the next is asked."""
    state = await tenure.house.journal.state(tenure.workflow_id)
    number = 1 + max((each.round for each in state.reviews if each.task_id == task.id), default=0)
    changes = await _changes(tenure)
    assert state.issue is not None, "every journal begins with its workflow's issue"
    given: list[e.ReviewGiven] = []
    missing: list[str] = []
    seconds = tenure.house.rules.review_time
    reviewer = _reviewer(tenure, wanted)
    if not reviewer.plans:
        warning = e.Warned(code="not_reviewed", message=_only_works(reviewer))
        await tenure.write("review.missing", lambda t: _write_down(t, tenure, warning))
        return Round(given=(), missing=wanted.personas)
    for persona in wanted.personas:
        helper = Help(role=Role.REVIEWER, agent=reviewer, task_id=task.id, seconds=seconds)
        question = review_question(state.issue, task, persona, state, changes)
        with tenure.live.patient(tenure.house.clock.now(), seconds):
            verdict = await ask_helper(tenure, environment, helper, question, read_verdict)
        if verdict is None:
            missing.append(persona)
            continue
        told = _given(task.id, number, persona, verdict, tenure)
        await tenure.write("review.given", lambda t, told=told: _write_down(t, tenure, told))
        given.append(told)
    return Round(given=tuple(given), missing=tuple(missing))


def helpers_variables(house: House, choices: Choices) -> tuple[str, ...]:
    """The caller's variables that they need."""
    return tuple(pattern for agent in helpers(house, choices) for pattern in agent.environment)


def refuse_unusable(house: House, agent: AgentConfiguration, choices: Choices, environment: Mapping[str, str]) -> None:
    """What cannot be done after a task is refused before the first one begins."""
    for helper in helpers(house, choices):
        require(helper, environment)
        if not helper.plans:
            raise BadInput(_only_works(helper), hint="Name another agent, or `off`.")
    if choices.review is not None and choices.review.agent == SAME and not agent.plans:
        raise BadInput(_only_works(agent), hint="Name another agent as the reviewer, or `off`.")
    if choices.verify is not None and not choices.verify.command.strip():
        raise BadInput("The command that runs the tests is empty.", hint="Give one, such as: pytest -q.")
    if choices.verify is not None and not 0 < choices.verify.seconds <= LONGEST:
        raise BadInput("The tests need some time to run.", hint=f"Give seconds above 0, {LONGEST:.12g} at most.")
    if choices.review is not None and not (1 <= choices.review.passes <= MOST and choices.review.personas):
        raise BadInput("A review needs somebody who reviews, and one pass at least.", hint=f"Give {MOST} at most.")


def _only_works(agent: AgentConfiguration) -> str:
    return f"{agent.name} does its work and nothing else (plans = false): it reviews nothing, and gives no advice."


def _reviewer(tenure: Tenure, wanted: Review) -> AgentConfiguration:
    return agent_named(tenure.house, tenure.agent if wanted.agent == SAME else wanted.agent)


def _given(task_id: TaskId, number: int, persona: str, verdict: Verdict, tenure: Tenure) -> e.ReviewGiven:
    feedback = ReviewerFeedback(
        review_id=f"{task_id}-{number}-{persona}",
        reviewer_persona=persona,
        timestamp=tenure.house.clock.now(),
        approved=verdict.approved,
        severity=verdict.severity,
        comments=verdict.comments,
    )
    return e.ReviewGiven(task_id=task_id, round=number, feedback=feedback, wrong_approach=verdict.wrong_approach)


def _write_down(t: Transaction, tenure: Tenure, told: e.ReviewGiven | e.Warned) -> None:
    t.append(told, session_id=tenure.session_id, run=tenure.number)


async def _changes(tenure: Tenure) -> str:
    """What was changed since the last task was done, files that git does not know yet included."""
    worktree = Path(tenure.workflow.worktree)
    state = await tenure.house.journal.state(tenure.workflow_id)
    before = await _last_done(tenure, state)
    if before is None:
        return ""
    try:
        return await difference(worktree, before, await tree_of(worktree))
    except SegueError as error:
        return f"(The changes could not be read: {error.message} Look at the files.)"


async def _last_done(tenure: Tenure, state: WorkflowState) -> str | None:
    """The commit that holds the files as they were when the task was begun for the first time."""
    for record in await tenure.house.hearings.last_records(tenure.workflow_id, ["checkpoint.created"], state):
        match record.event:
            case e.CheckpointCreated(type="task_complete" | "start", commit=str() as commit):
                return commit
            case _:
                pass
    return state.base

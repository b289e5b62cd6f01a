"""Reviews: other agents look at a task before it counts as done."""

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
from segue.model.work_settings import SAME
from segue.orchestrator.run.helpers import Help, ask_helper
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.runtime.agents import agent_named, helpers, require
from segue.orchestrator.runtime.services import RuntimeServices
from segue.resume.remarks import review_question
from segue.snapshot.extraction import Texts, Unreadable, read_object
from segue.state.fold import WorkflowState
from segue.workspace.checkpoints import tree_of
from segue.workspace.commits import difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Answer of a reviewer."""

    approved: bool
    severity: Annotated[Severity, BeforeValidator(lambda given: "low" if given is None else given)] = "medium"
    comments: Texts = ()
    wrong_approach: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Answers of all reviewers about one state of the work."""

    given: tuple[e.ReviewGiven, ...]
    missing: tuple[str, ...] = ()
    """Reviewers without a usable answer."""

    @property
    def approved(self) -> bool:
        """Return True if all answers approve; also if there is none."""
        return all(review.feedback.approved for review in self.given)

    @property
    def wrong_approach(self) -> bool:
        """Return True if a review calls the approach wrong with severity "critical"."""
        return any(review.wrong_approach and review.feedback.severity == "critical" for review in self.given)


def read_verdict(text: str) -> Verdict | Unreadable:
    """Parse a reviewer's answer; Unreadable if it is no verdict, or a rejection without a comment."""
    verdict = read_object(text, Verdict, ("approved",))
    if isinstance(verdict, Verdict) and not verdict.approved and not verdict.comments:
        return Unreadable("It is not approved, and no comment says why.")
    return verdict


async def review(lease: Lease, environment: Mapping[str, str], wanted: Review, task: Task) -> Round:
    """Ask each reviewer, one after the other, journal each verdict before the next question, and return the round;
    reviewers without a usable answer are `missing`."""
    state = await lease.services.journal.state(lease.workflow_id)
    number = 1 + max((each.round for each in state.reviews if each.task_id == task.id), default=0)
    changes = await _changes(lease)
    assert state.issue is not None, "every journal begins with its workflow's issue"
    given: list[e.ReviewGiven] = []
    missing: list[str] = []
    seconds = lease.services.rules.review_time
    reviewer = _reviewer(lease, wanted)
    if not reviewer.plans:
        warning = e.Warned(code="not_reviewed", message=_only_works(reviewer))
        await lease.write("review.missing", lambda t: _append(t, lease, warning))
        return Round(given=(), missing=wanted.personas)
    for persona in wanted.personas:
        helper = Help(role=Role.REVIEWER, agent=reviewer, task_id=task.id, seconds=seconds)
        question = review_question(state.issue, task, persona, state, changes)
        with lease.live.patient(lease.services.clock.now(), seconds):
            verdict = await ask_helper(lease, environment, helper, question, read_verdict)
        if verdict is None:
            missing.append(persona)
            continue
        event = _given(task.id, number, persona, verdict, lease)
        await lease.write("review.given", lambda t, event=event: _append(t, lease, event))
        given.append(event)
    return Round(given=tuple(given), missing=tuple(missing))


def helpers_variables(services: RuntimeServices, choices: Choices) -> tuple[str, ...]:
    """Return the patterns of the caller's variables that the reviewer's and fixer's agents need."""
    return tuple(pattern for agent in helpers(services, choices) for pattern in agent.environment)


def refuse_unusable(
    services: RuntimeServices, agent: AgentConfiguration, choices: Choices, environment: Mapping[str, str]
) -> None:
    """Raise before the first task if a reviewer or fixer cannot work, or the settings of tests and reviews are out
    of range."""
    for helper in helpers(services, choices):
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
    """Build the error text for an agent that makes no plans and so cannot review or advise."""
    return f"{agent.name} does its work and nothing else (plans = false): it reviews nothing, and gives no advice."


def _reviewer(lease: Lease, wanted: Review) -> AgentConfiguration:
    """Return the configuration of the wanted reviewer, which may be the writer's own agent."""
    return agent_named(lease.services, lease.agent if wanted.agent == SAME else wanted.agent)


def _given(task_id: TaskId, number: int, persona: str, verdict: Verdict, lease: Lease) -> e.ReviewGiven:
    """Build the event of a reviewer's verdict in this round."""
    feedback = ReviewerFeedback(
        review_id=f"{task_id}-{number}-{persona}",
        reviewer_persona=persona,
        timestamp=lease.services.clock.now(),
        approved=verdict.approved,
        severity=verdict.severity,
        comments=verdict.comments,
    )
    return e.ReviewGiven(task_id=task_id, round=number, feedback=feedback, wrong_approach=verdict.wrong_approach)


def _append(t: Transaction, lease: Lease, event: e.ReviewGiven | e.Warned) -> None:
    """Append an event of the lease's session and run."""
    t.append(event, session_id=lease.session_id, run=lease.number)


async def _changes(lease: Lease) -> str:
    """Return the changes since the last finished task, untracked files included; "" if nothing is known to compare
    with, or a sentence if they cannot be read."""
    worktree = Path(lease.workflow.worktree)
    state = await lease.services.journal.state(lease.workflow_id)
    before = await _last_done(lease, state)
    if before is None:
        return ""
    try:
        return await difference(worktree, before, await tree_of(worktree))
    except SegueError as error:
        return f"(The changes could not be read: {error.message} Look at the files.)"


async def _last_done(lease: Lease, state: WorkflowState) -> str | None:
    """Return the commit of the last checkpoint of a finished task or of the start, else the workflow's base."""
    for record in await lease.services.facts.last_records(lease.workflow_id, ["checkpoint.created"], state):
        match record.event:
            case e.CheckpointCreated(type="task_complete" | "start", commit=str() as commit):
                return commit
            case _:
                pass
    return state.base

"""Resume contexts of workflows: the text that a successor reads."""

from dataclasses import dataclass, replace
from datetime import datetime

from anyio.to_thread import run_sync

from segue.exam import Evidence, Grade, grade
from segue.model.checkpoint import Checkpoint, GitState
from segue.model.contexts import ContextSection
from segue.model.facts import DecisionFact, SessionFacts
from segue.model.findings import Decision, ExamResult, Findings
from segue.model.ids import WorkflowId
from segue.orchestrator.runtime.plan_text import to_do
from segue.orchestrator.runtime.services import RuntimeServices
from segue.resume.budget import budget_for
from segue.resume.handover import Handover, Lengths
from segue.resume.prompts import nobody_died, taken_back
from segue.resume.repair import compile_repaired
from segue.resume.tokens import tokens
from segue.snapshot.findings import own_tests, reviews_of
from segue.state.fold import WorkflowState


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A context that was examined."""

    text: str
    exam: ExamResult
    sections: tuple[ContextSection, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """State of the worktree at the moment of going on, which no snapshot has."""

    git: GitState | None
    at: datetime
    divergence: tuple[str, ...] = ()


async def compile_workflow(
    services: RuntimeServices, workflow_id: WorkflowId, present: Present, budget: int, own: str = ""
) -> Compiled:
    """Compile a context from the whole journal and grade it; `own` is a person's context, which is only graded. A
    budget of 0 follows from the window."""
    state = await services.journal.state(workflow_id)
    latest = await services.journal.checkpoints.base(workflow_id, state)
    findings = await services.journal.checkpoints.findings(workflow_id, latest.id) if latest else None
    digest = await services.facts.digest(workflow_id)
    facts = with_own_tests(enriched(digest.facts, findings), state)
    handover = handover_of(state, workflow_id, latest, present, services.rules.lengths)
    budget = budget or budget_for(state.usage.window)
    if own:
        verdict = await run_sync(grade, own, digest.evidence)
        return Compiled(text=own, exam=_result(verdict, tokens(own), budget))
    return await compile_facts(facts, handover, budget, digest.evidence)


async def compile_facts(facts: SessionFacts, handover: Handover, budget: int, evidence: Evidence) -> Compiled:
    """Compile a context from the facts within the budget, repaired as its exam against the record requires; return
    it with the exam's result."""

    def examined(text: str) -> Grade:
        return grade(text, evidence)

    context, verdict = await run_sync(compile_repaired, facts, budget, examined, handover)
    result = _result(verdict, context.tokens, budget)
    return Compiled(text=context.text, exam=result, sections=context.sections)


def _result(verdict: Grade, length: int, budget: int) -> ExamResult:
    """Build the exam's result from a grade; falsehoods stand first among what is missing."""
    return ExamResult(
        score=verdict.score,
        by_category={str(category): share for category, share in verdict.by_category.items()},
        missing=(
            *(f"FALSE: {each.why}" for each in verdict.falsehoods),
            *(question.about for question in verdict.missing),
        ),
        tokens=length,
        budget=budget,
    )


def handover_of(
    state: WorkflowState,
    workflow_id: WorkflowId,
    latest: Checkpoint | None,
    present: Present,
    lengths: Lengths,
) -> Handover:
    """Collect what the compiler needs of a workflow: issue, tasks, git, reason of the pause, feedback; `latest` is
    the snapshot it starts from."""
    assert state.issue is not None, "every journal begins with its workflow's issue"
    number = state.session.number if state.session else 1
    following = state.next_task
    proposed = state.planning.proposed if state.planning else None
    reason = latest.reason if latest else ""
    if latest and not nobody_died(latest):
        reason = f"{reason} ({latest.trigger})" if reason else str(latest.trigger)
    return Handover(
        workflow_id=workflow_id,
        session_number=number,
        session_count=max(number, state.writers),
        issue=state.issue,
        tasks=state.marks,
        current_task=state.current_task,
        next_task=following.id if following else None,
        pause_reason=reason,
        git=present.git,
        git_read_at=f"{present.at:%Y-%m-%d %H:%M} UTC",
        divergence=(*forked(state), *taken_back(state.rewound_by), *present.divergence),
        feedback=tuple(reviews_of([each.feedback for each in state.reviews])),
        snapshot_id=latest.id if latest else None,
        lengths=lengths,
        proposed=tuple(task.title for task in to_do(proposed.tasks, state.tasks)) if proposed else (),
    )


def with_own_tests(facts: SessionFacts, state: WorkflowState) -> SessionFacts:
    """Replace the facts' test results by those that Segue recorded, if there are any."""
    return replace(facts, tests=own_tests(state.tests)) if state.tests else facts


def forked(state: WorkflowState) -> tuple[str, ...]:
    """Return the note on its origin for the first session of a fork; empty for all others."""
    origin, first = state.forked_from, state.session is None or state.session.number == 1
    if origin is None or not first:
        return ()
    where = f"workflow {origin.workflow_id} at snapshot {origin.checkpoint_id}"
    return (f"This work was forked from {where}; it goes on in a worktree of its own: {state.worktree}.",)


def enriched(facts: SessionFacts, findings: Findings | None) -> SessionFacts:
    """Replace decisions found by rules by those that a model or the agent found; newer ones stay by rules. Without
    such findings, return the facts unchanged."""
    if findings is None or findings.by == "rules" or not findings.decisions:
        return facts
    found = [_fact(each) for each in findings.decisions]
    last = max(fact.number for fact in found)
    return replace(facts, decisions=(*found, *(each for each in facts.decisions if each.number > last)))


def _fact(decision: Decision) -> DecisionFact:
    """Convert a decision of the findings to the compiler's form."""
    return DecisionFact(
        number=decision.seq or 0,
        type=decision.decision_type,
        quote=decision.description + (f" ({decision.rationale})" if decision.rationale else ""),
        by=decision.by,
        superseded_by=decision.superseded_by,
    )

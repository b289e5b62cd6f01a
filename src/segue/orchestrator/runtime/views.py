"""Views of a workflow: its row and its folded state as one value."""

from shlex import quote

from segue.journal.rows import WorkflowRow
from segue.model.agents import Choices
from segue.model.codec import decode
from segue.model.events import RetryScheduled
from segue.model.plan import Task
from segue.model.status import PromptStatus, WorkflowStatus
from segue.model.views import (
    ContextView,
    FailureView,
    PlanView,
    Question,
    RetryView,
    SessionView,
    TaskView,
    Undelivered,
    WorkflowView,
)
from segue.orchestrator.runtime.plan_text import counted, write_plan
from segue.protocol.accounts import sessions_of, total
from segue.resume.failures import POLICIES
from segue.state.fold import SessionState, WorkflowState


def view_of(row: WorkflowRow, state: WorkflowState) -> WorkflowView:
    """Build the view of a workflow from its row and its folded state."""
    session = state.session
    return WorkflowView(
        id=row.id,
        slug=row.slug,
        title=row.title,
        status=row.status,
        reason=state.reason,
        agent=row.agent,
        permissions=row.permissions,
        repository=row.repository,
        worktree=state.worktree,
        branch=row.branch,
        here=row.here,
        created_at=row.created_at,
        updated_at=row.updated_at,
        paused_at=row.paused_at,
        pause_requested=row.pause_trigger is not None,
        tasks=tuple(TaskView(id=t.id, title=t.title, status=t.status, depends_on=t.depends_on) for t in state.marks),
        tasks_done=len(state.finished),
        tasks_total=len(state.tasks),
        current_task=state.current_task,
        session=session_view(state) if session else None,
        sessions=state.writers,
        runs=sum(session.runs for session in state.sessions.values()),
        spent=total(each.account for each in sessions_of(state)),
        context=_context(session),
        question=_question(session),
        asks=open_question(state),
        proposed_plan=_proposed(state),
        last_snapshot=state.last_snapshot,
        snapshots=state.snapshots,
        failure=failure_view(session),
        retry=_retry(state.retry),
        waiting_messages=len(state.messages),
        undelivered=_undelivered(state),
        head=state.seq,
        merge_hint=_merge_hint(row, state),
        from_repository=decode(Choices, row.choices).from_repository,
    )


def open_question(state: WorkflowState) -> str:
    """Return the question that a person has to answer before the work goes on, about a plan or a task; empty if
    there is none."""
    if state.status is WorkflowStatus.BLOCKED and (tasks := _proposed(state)):
        return f"Is this plan good ({counted(tasks, state.tasks)})?"
    if state.status is WorkflowStatus.REVIEW and state.asked is not None:
        return state.asked.question
    return ""


def _proposed(state: WorkflowState) -> tuple[Task, ...]:
    """Return the tasks of the plan that waits for approval, none without one."""
    return state.planning.proposed.tasks if state.planning and state.planning.proposed else ()


def plan_view(row: WorkflowRow, state: WorkflowState) -> PlanView:
    """Build the view of the proposed plan, else the adopted one, with its text as YAML."""
    proposed, adopted = _proposed(state), state.plan.tasks if state.plan else ()
    tasks = proposed or adopted
    status = "proposed" if proposed else "adopted" if adopted else "none"
    return PlanView(workflow_id=row.id, status=status, tasks=tasks, text=write_plan(tasks) if tasks else "")


def session_view(state: WorkflowState) -> SessionView:
    """Build the view of the workflow's current session, which must exist."""
    session = state.session
    assert session is not None and state.current_session is not None
    return SessionView(
        id=state.current_session,
        number=session.number,
        status=session.status,
        waiting_for=session.waiting_for,
        reason=session.reason,
        runs=session.runs,
    )


def _context(session: SessionState | None) -> ContextView | None:
    """Build the view of the context's size; None if it is unknown."""
    if session is None or session.usage.context_tokens is None:
        return None
    usage = session.usage
    return ContextView(used=usage.context_tokens, window=usage.window, utilization=usage.utilization)


def _question(session: SessionState | None) -> Question | None:
    """Build the view of the oldest open permission request; None if there is none."""
    for request_id, question in session.questions.items() if session else ():
        return Question(
            request_id=request_id,
            title=question.title,
            tool=question.tool,
            requested_at=question.requested_at,
            words=question.free_text,
        )
    return None


def _retry(retry: RetryScheduled | None) -> RetryView | None:
    """Build the view of the scheduled retry; None if there is none."""
    if retry is None:
        return None
    return RetryView(
        step=retry.step,
        attempt=retry.attempt,
        of=retry.of,
        at=retry.at,
        reason=retry.reason,
        rewind=retry.rewind,
        fixer=retry.fixer,
    )


def _undelivered(state: WorkflowState) -> tuple[Undelivered, ...]:
    """Return the prompts that were sent to an agent and never acknowledged, without that of the turn under way."""
    return tuple(
        Undelivered(prompt_id=prompt_id, task_id=prompt.task_id)
        for session in state.sessions.values()
        for prompt_id, prompt in session.prompts.items()
        if prompt.status is PromptStatus.SENT and prompt_id != session.turn
    )


def _merge_hint(row: WorkflowRow, state: WorkflowState) -> str | None:
    """Return the git commands that commit and merge the finished work; None if it is not completed, has no worktree
    or is in the user's checkout."""
    if row.status is not WorkflowStatus.COMPLETED or row.here or state.worktree is None:
        return None
    worktree, repository = quote(state.worktree), quote(row.repository)
    # It is pasted into a terminal, and shown in one before that.
    message = quote(" ".join("".join(c if c.isprintable() else " " for c in row.title).split()))
    return (
        f"git -C {worktree} add -A && git -C {worktree} commit -m {message}; "
        f"git -C {repository} merge {quote(row.branch)}"
    )


def failure_view(session: SessionState | None) -> FailureView | None:
    """Build the view of the session's failure with its remedies; None if it has none."""
    if session is None or session.failure is None:
        return None
    policy = POLICIES[session.failure]
    return FailureView(
        failure=session.failure,
        meaning=policy.meaning,
        reset_at=session.reset_at,
        remedies=tuple(policy.remedies),
    )

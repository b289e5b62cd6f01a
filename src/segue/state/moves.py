"""The two tables of legal moves."""

from segue.model.errors import IllegalMove
from segue.model.status import SessionStatus, WorkflowStatus

_W = WorkflowStatus
WORKFLOW_MOVES: dict[WorkflowStatus, frozenset[WorkflowStatus]] = {
    _W.PENDING: frozenset({_W.IN_PROGRESS, _W.PAUSED, _W.FAILED, _W.CANCELLED}),
    _W.IN_PROGRESS: frozenset({_W.BLOCKED, _W.PAUSED, _W.REVIEW, _W.COMPLETED, _W.FAILED, _W.CANCELLED}),
    # Waits for a person's approval of the plan.
    _W.BLOCKED: frozenset({_W.IN_PROGRESS, _W.PAUSED, _W.FAILED, _W.CANCELLED}),
    _W.REVIEW: frozenset({_W.IN_PROGRESS, _W.PAUSED, _W.COMPLETED, _W.FAILED, _W.CANCELLED}),
    # Remembers where it came from, so that an unapproved plan returns to `blocked`.
    _W.PAUSED: frozenset({_W.IN_PROGRESS, _W.BLOCKED, _W.REVIEW, _W.FAILED, _W.CANCELLED}),
    _W.FAILED: frozenset({_W.IN_PROGRESS, _W.CANCELLED}),
    _W.COMPLETED: frozenset(),
    _W.CANCELLED: frozenset(),
}

_S = SessionStatus
_ENDS = frozenset({_S.FAILED, _S.CANCELLED, _S.TERMINATED})
SESSION_MOVES: dict[SessionStatus, frozenset[SessionStatus]] = {
    _S.CREATED: frozenset({_S.STARTING, _S.SUSPENDED}) | _ENDS,
    # A process is being started; nothing was asked of it yet.
    _S.STARTING: frozenset({_S.RUNNING, _S.WAITING_FOR_INPUT, _S.SUSPENDED}) | _ENDS,
    _S.RUNNING: frozenset({_S.WAITING_FOR_INPUT, _S.SUSPENDED, _S.COMPLETED}) | _ENDS,
    # Says for what: a prompt, or a permission, which counts as mid-turn.
    _S.WAITING_FOR_INPUT: frozenset({_S.RUNNING, _S.STARTING, _S.SUSPENDED, _S.COMPLETED, _S.EXPIRED}) | _ENDS,
    # Completed from here means handed over to a child.
    _S.SUSPENDED: frozenset({_S.STARTING, _S.COMPLETED, _S.EXPIRED}) | _ENDS,
    # Only by an explicit resume with the same token.
    _S.FAILED: frozenset({_S.STARTING}),
    _S.COMPLETED: frozenset(),
    _S.EXPIRED: frozenset(),
    _S.CANCELLED: frozenset(),
    _S.TERMINATED: frozenset(),
}

WORKFLOW_ENDED = frozenset(status for status, moves in WORKFLOW_MOVES.items() if not moves)
SESSION_ENDED = frozenset(status for status, moves in SESSION_MOVES.items() if not moves)


def check_workflow_move(before: WorkflowStatus, after: WorkflowStatus) -> None:
    if after not in WORKFLOW_MOVES[before]:
        raise IllegalMove(f"A workflow cannot go from {before} to {after}.")


def check_session_move(before: SessionStatus, after: SessionStatus) -> None:
    if after not in SESSION_MOVES[before]:
        raise IllegalMove(f"A session cannot go from {before} to {after}.")

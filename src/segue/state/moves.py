"""Tables of legal transitions."""

from segue.model.errors import IllegalMove
from segue.model.status import Phase, SessionStatus, WorkflowStatus

_W = WorkflowStatus
WORKFLOW_MOVES: dict[WorkflowStatus, frozenset[WorkflowStatus]] = {
    _W.PENDING: frozenset({_W.IN_PROGRESS, _W.PAUSED, _W.FAILED, _W.CANCELLED}),
    _W.IN_PROGRESS: frozenset({_W.BLOCKED, _W.PAUSED, _W.REVIEW, _W.COMPLETED, _W.FAILED, _W.CANCELLED}),
    # Waits for a person's approval of the plan.
    _W.BLOCKED: frozenset({_W.IN_PROGRESS, _W.PAUSED, _W.FAILED, _W.CANCELLED}),
    _W.REVIEW: frozenset({_W.IN_PROGRESS, _W.PAUSED, _W.COMPLETED, _W.FAILED, _W.CANCELLED}),
    # The status before the pause is derived again, so that an unapproved plan returns to `blocked`.
    _W.PAUSED: frozenset({_W.IN_PROGRESS, _W.BLOCKED, _W.REVIEW, _W.FAILED, _W.CANCELLED}),
    _W.FAILED: frozenset({_W.IN_PROGRESS, _W.CANCELLED}),
    _W.COMPLETED: frozenset(),
    _W.CANCELLED: frozenset(),
}

_S = SessionStatus
_ENDS = frozenset({_S.FAILED, _S.CANCELLED, _S.TERMINATED})
SESSION_MOVES: dict[SessionStatus, frozenset[SessionStatus]] = {
    _S.CREATED: frozenset({_S.STARTING, _S.SUSPENDED}) | _ENDS,
    # The process starts; no prompt was sent yet.
    _S.STARTING: frozenset({_S.RUNNING, _S.WAITING_FOR_INPUT, _S.SUSPENDED}) | _ENDS,
    _S.RUNNING: frozenset({_S.WAITING_FOR_INPUT, _S.SUSPENDED, _S.COMPLETED}) | _ENDS,
    # Waits for a prompt, or for a permission, which counts as mid-turn.
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

_P = Phase
PHASE_MOVES: dict[Phase, frozenset[Phase]] = {
    _P.OPENING: frozenset({_P.IDLE, _P.PAUSING, _P.ENDING}),
    # A turn that is joined was prompted by an earlier run.
    _P.IDLE: frozenset({_P.PROMPTING, _P.IN_TURN, _P.FINISHING, _P.ENDING}),
    _P.PROMPTING: frozenset({_P.IN_TURN, _P.REPORTING, _P.ENDING}),
    _P.IN_TURN: frozenset({_P.IDLE, _P.FINISHING, _P.YIELDING, _P.PAUSING, _P.ENDING}),
    # The message has its own turn; then the interrupted prompt is sent again.
    _P.YIELDING: frozenset({_P.IDLE, _P.FINISHING, _P.PAUSING, _P.ENDING}),
    _P.REPORTING: frozenset({_P.IDLE, _P.ENDING}),
    # Failed tests and reviews send the task back into a turn.
    _P.FINISHING: frozenset({_P.PROMPTING, _P.IDLE, _P.PAUSING, _P.ENDING}),
    _P.PAUSING: frozenset({_P.ENDING}),
    _P.ENDING: frozenset(),
}
BETWEEN_TURNS = frozenset({_P.IDLE, _P.FINISHING})
"""Phases in which a prompt may be sent."""
AT_WORK = frozenset(phase for phase, moves in PHASE_MOVES.items() if _P.PAUSING in moves)
"""Phases in which a pause has something to interrupt."""
WORKFLOW_ENDED = frozenset(status for status, moves in WORKFLOW_MOVES.items() if not moves)
SESSION_ENDED = frozenset(status for status, moves in SESSION_MOVES.items() if not moves)


def check_workflow_move(before: WorkflowStatus, after: WorkflowStatus) -> None:
    """Raise `IllegalMove` unless a workflow may go from one status to the other."""
    if after not in WORKFLOW_MOVES[before]:
        raise IllegalMove(f"A workflow cannot go from {before} to {after}.")


def check_session_move(before: SessionStatus, after: SessionStatus) -> None:
    """Raise `IllegalMove` unless a session may go from one status to the other."""
    if after not in SESSION_MOVES[before]:
        raise IllegalMove(f"A session cannot go from {before} to {after}.")


def check_phase_move(before: Phase, after: Phase) -> None:
    """Raise `IllegalMove` unless a run may go from one phase to the other."""
    if after not in PHASE_MOVES[before]:
        raise IllegalMove(f"A run cannot go from {before} to {after}.")

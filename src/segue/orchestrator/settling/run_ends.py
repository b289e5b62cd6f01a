"""Ends of a run, clean or interrupted."""

from dataclasses import dataclass

from segue.model import events as e
from segue.model.checkpoint import CheckpointType
from segue.model.errors import (
    AgentError,
    AgentExited,
    ConversationMismatch,
    LoginRequired,
    QuotaExceeded,
    TranscriptCorrupt,
    TransportLost,
)
from segue.model.status import Failure, SessionStatus, Trigger, WorkflowStatus
from segue.orchestrator.runtime.run_handle import Stop

FORCED = Stop(trigger=Trigger.PAUSE, reason="the pause was forced in the middle of the task")
UNADVISED = Stop(trigger=Trigger.PAUSE, reason="the pause was forced while a second agent was asked for advice")
WINDOW_FULL = Stop(trigger=Trigger.EXHAUSTION, reason="the agent's context window is full")
DEAF = "the agent was asked for a report and could not be stopped"
INTERNAL = Stop(trigger=Trigger.CRASH, reason="something went wrong inside Segue; the server's log has it")
CANCELLED = Stop(trigger=Trigger.CANCEL, reason="the workflow was cancelled")


class RunStopped(Exception):
    """The run stops here, in the middle of a task."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.reason)
        self.stop = stop


Ending = tuple[CheckpointType, SessionStatus, e.RunOutcome]

ENDS: dict[WorkflowStatus, Ending] = {
    WorkflowStatus.COMPLETED: (CheckpointType.SESSION_END, SessionStatus.COMPLETED, "completed"),
    # The next session goes on at once.
    WorkflowStatus.IN_PROGRESS: (CheckpointType.SESSION_END, SessionStatus.COMPLETED, "handed_over"),
    # A person has to decide, and no process waits for that.
    WorkflowStatus.BLOCKED: (CheckpointType.PLAN, SessionStatus.SUSPENDED, "asked"),
    WorkflowStatus.REVIEW: (CheckpointType.REVIEW, SessionStatus.SUSPENDED, "asked"),
    WorkflowStatus.PAUSED: (CheckpointType.PAUSE, SessionStatus.SUSPENDED, "paused"),
    WorkflowStatus.FAILED: (CheckpointType.SESSION_END, SessionStatus.SUSPENDED, "failed"),
}
TALKED: Ending = (CheckpointType.PAUSE, SessionStatus.WAITING_FOR_INPUT, "talked")


@dataclass(frozen=True, slots=True)
class End:
    """End of a run: its reason, and what follows."""

    status: WorkflowStatus
    reason: str = ""
    trigger: Trigger = Trigger.TASK_COMPLETE
    talked: bool = False
    """Nothing moves: the session waits for a message, and the workflow keeps its status."""
    asks: e.PersonAsked | None = None
    """The task becomes pending again, and a person decides about it."""
    retry: e.RetryScheduled | None = None
    """The retry that follows by itself; the task becomes pending again."""

    @property
    def ending(self) -> Ending:
        """Return the checkpoint's type, the session's status and the run's outcome that belong to this end."""
        return TALKED if self.talked else ENDS[self.status]


_FAILED_TURNS: dict[Failure, type[AgentError]] = {
    Failure.LOGIN_REQUIRED: LoginRequired,
    Failure.OTHER_CONVERSATION: ConversationMismatch,
    Failure.TRANSCRIPT_CORRUPT: TranscriptCorrupt,
    Failure.TRANSPORT_LOST: TransportLost,
}


def failed_turn(event: e.TurnFailed) -> AgentError:
    """Convert a failed turn to the error of its kind; a used-up quota has its reset time."""
    if event.failure is Failure.QUOTA:
        again = f" It is full again at {event.reset_at:%Y-%m-%d %H:%M} UTC." if event.reset_at else ""
        return QuotaExceeded(f"{event.message}{again}", reset_at=event.reset_at)
    return _FAILED_TURNS.get(event.failure, AgentError)(event.message)


def exited(event: e.AgentExited) -> AgentError:
    """Convert the agent's exit to an error: TransportLost without an exit code but with a detail, else AgentExited."""
    if event.code is None and event.detail:
        # The process was there when the connection broke, so it is not known how it would have ended.
        return TransportLost(event.detail)
    how = f"with exit code {event.code}" if event.code is not None else "and nobody knows how"
    detail = f": {event.detail.strip()}" if event.detail.strip() else "."
    return AgentExited(f"The agent's process ended {how}{detail}")

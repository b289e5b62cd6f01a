"""The states of workflows, sessions and runs, and why things stop."""

from enum import StrEnum
from typing import Literal


class WorkflowStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    REVIEW = "review"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class SessionStatus(StrEnum):
    CREATED = "created"
    STARTING = "starting"
    RUNNING = "running"
    WAITING_FOR_INPUT = "waiting_for_input"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    TERMINATED = "terminated"


class Role(StrEnum):
    """What a session is there for."""

    WRITER = "writer"
    """It does the work; writers are numbered, and one follows the other."""
    REVIEWER = "reviewer"
    FIXER = "fixer"


class WaitingFor(StrEnum):
    """What a session in `waiting_for_input` waits for."""

    PROMPT = "prompt"
    PERMISSION = "permission"


class RunStatus(StrEnum):
    QUEUED = "queued"
    ACTIVE = "active"
    ENDED = "ended"


class Trigger(StrEnum):
    """Why work stopped, as written on its snapshot."""

    PAUSE = "pause"
    """Somebody wanted it to, or is asked."""
    TASK_COMPLETE = "task_complete"
    EXHAUSTION = "exhaustion"
    TIMEOUT = "timeout"
    CRASH = "crash"
    """Something failed: a process, a try at a task, an answer that cannot be used."""
    CANCEL = "cancel"


class Permissions(StrEnum):
    """How much an agent may do without asking."""

    ASK = "ask"
    EDITS = "edits"
    ALL = "all"
    READ_ONLY = "read-only"


class PromptStatus(StrEnum):
    QUEUED = "queued"
    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    NOT_SENT = "not_sent"


class Way(StrEnum):
    """How a conversation is brought back."""

    FIRST = "first"
    """There was no conversation yet."""
    REATTACH = "reattach"
    """The agent never stopped: it goes on in its container, and is listened to again."""
    NATIVE = "native"
    """The agent's own conversation goes on."""
    FORK = "fork"
    """A copy of the conversation that a fork comes from, made by the agent itself."""
    CONTEXT = "context"
    """A new conversation, of the same agent or another, whose first prompt carries a compiled resume context."""
    HISTORY = "history"
    """A new conversation, whose first prompt carries what was said in the old one."""
    FRESH = "fresh"
    """A new conversation that knows the plan and the files, and nothing that was said."""


SAME_CONVERSATION = frozenset({Way.REATTACH, Way.NATIVE})
"""The ways that stay in the conversation that there was."""


class Purpose(StrEnum):
    """What a run is for."""

    WORK = "work"
    """To work through the plan."""
    TALK = "talk"
    """To answer what people say, and to wait for more of it."""
    LEAVING = "leaving"
    """The talk is over, or the work is done, and the agent is being put away; nobody joins it any more."""


class Carrying(StrEnum):
    """Whether a session has yet to be told what was said before it."""

    NOTHING = "nothing"
    NEEDED = "needed"
    DONE = "done"


class RuntimeStatus(StrEnum):
    """Whether an agent process belongs to a session."""

    NONE = "none"
    LIVE = "live"
    ENDED = "ended"


class Failure(StrEnum):
    """What went wrong with an agent; what follows from each stands in one table (`resume.failures`)."""

    TOKEN_REJECTED = "token_rejected"
    OTHER_CONVERSATION = "other_conversation"
    TRANSCRIPT_CORRUPT = "transcript_corrupt"
    TRANSPORT_LOST = "transport_lost"
    PROCESS_EXITED = "process_exited"
    HANDSHAKE_TIMEOUT = "handshake_timeout"
    HANDSHAKE_FAILED = "handshake_failed"
    QUOTA = "quota"
    LOGIN_REQUIRED = "login_required"
    NOT_RESTORED = "not_restored"
    WORKTREE_MISSING = "worktree_missing"
    PROGRAM_MISSING = "program_missing"
    NEVER_ANSWERED = "never_answered"
    OTHER = "other"


Recovery = Literal["settle", "continue"]
"""What happens at the start to what a dead server left in the middle of its work."""


class Phase(StrEnum):
    """Phase of a run that is alive; it lives in memory only."""

    OPENING = "opening"
    """The worktree and the agent are being made ready."""
    IDLE = "idle"
    """Between two turns: the next step is being chosen, or a message is awaited."""
    PROMPTING = "prompting"
    """A prompt is on its way and has not reached the agent, so there is nothing to cancel yet."""
    IN_TURN = "in_turn"
    """The agent works on a prompt."""
    YIELDING = "yielding"
    """The turn is being cancelled, because a person's message comes first."""
    REPORTING = "reporting"
    """The agent writes a report before a pause; the work itself has stopped already."""
    FINISHING = "finishing"
    """A task's turn is over, and its tests, reviews and commit are under way."""
    PAUSING = "pausing"
    """A pause is being forced; no further prompt is sent."""
    ENDING = "ending"
    """The run has come to its end; no further prompt is sent."""

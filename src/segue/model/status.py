"""States of workflows, sessions and runs, and the reasons of stops."""

from enum import StrEnum
from typing import Literal


class WorkflowStatus(StrEnum):
    """Status of a workflow."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    REVIEW = "review"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class SessionStatus(StrEnum):
    """Status of a session."""

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
    """Role of a session in its workflow."""

    WRITER = "writer"
    """Does the work; writers are numbered and follow each other."""
    REVIEWER = "reviewer"
    FIXER = "fixer"


class WaitingFor(StrEnum):
    """Object that a session in `waiting_for_input` waits for."""

    PROMPT = "prompt"
    PERMISSION = "permission"


class RunStatus(StrEnum):
    """Status of a run."""

    QUEUED = "queued"
    ACTIVE = "active"
    ENDED = "ended"


class Trigger(StrEnum):
    """Cause of a stop, as recorded in its snapshot."""

    PAUSE = "pause"
    """Requested by a person, or waiting for one."""
    TASK_COMPLETE = "task_complete"
    EXHAUSTION = "exhaustion"
    TIMEOUT = "timeout"
    CRASH = "crash"
    """Failure of a process, of an attempt at a task, or an answer that cannot be used."""
    CANCEL = "cancel"


class Permissions(StrEnum):
    """Actions that an agent may take without asking."""

    ASK = "ask"
    EDITS = "edits"
    ALL = "all"
    READ_ONLY = "read-only"


class PromptStatus(StrEnum):
    """Status of a prompt."""

    QUEUED = "queued"
    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    NOT_SENT = "not_sent"


class Way(StrEnum):
    """Way to start or resume a conversation."""

    FIRST = "first"
    """First conversation of the work."""
    REATTACH = "reattach"
    """Connection to an agent that is still running in its container."""
    NATIVE = "native"
    """Agent's own resume of its conversation."""
    FORK = "fork"
    """Copy of the conversation that a fork comes from, made by the agent itself."""
    CONTEXT = "context"
    """New conversation, of the same agent or another, whose first prompt carries a compiled resume context."""
    HISTORY = "history"
    """New conversation, whose first prompt carries the messages of the old one."""
    FRESH = "fresh"
    """New conversation that knows the plan and the files, and no earlier message."""


SAME_CONVERSATION = frozenset({Way.REATTACH, Way.NATIVE})
"""Ways that continue the existing conversation."""


class Purpose(StrEnum):
    """Purpose of a run."""

    WORK = "work"
    """Work on the plan."""
    TALK = "talk"
    """Answers to messages of people."""
    LEAVING = "leaving"
    """The run is ending; no further prompt is accepted."""


class Carrying(StrEnum):
    """State of the transfer of earlier context into a session."""

    NOTHING = "nothing"
    NEEDED = "needed"
    DONE = "done"


class RuntimeStatus(StrEnum):
    """Status of a session's agent process."""

    NONE = "none"
    LIVE = "live"
    ENDED = "ended"


class Failure(StrEnum):
    """Failure of an agent; one table (`resume.failures`) defines what follows each."""

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
"""Action at start for work that a dead server left unfinished."""


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

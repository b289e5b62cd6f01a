"""The states of workflows, sessions and runs, and why things stop."""

from enum import StrEnum


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
    TASK_COMPLETE = "task_complete"
    EXHAUSTION = "exhaustion"
    TIMEOUT = "timeout"
    CRASH = "crash"
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
    NATIVE = "native"
    FRESH = "fresh"


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
    OTHER = "other"

"""Family of all errors. The docstring is the message for the user; `hint` adds the remedy.

SegueError
├── BadInput                the input cannot be used                     (422)
│   ├── BadPlan
│   ├── UnknownAgent
│   ├── NotARepository
│   ├── EmptyRepository
│   ├── BadSettings
│   ├── NotASession
│   └── SecretFound
├── NotFound                nothing has this name                        (404)
│   ├── WorkflowNotFound
│   ├── SessionNotFound
│   ├── CheckpointNotFound
│   └── MemoryNotFound
├── WrongState              the state does not allow this                (409)
│   ├── IllegalMove
│   ├── NothingToAnswer
│   ├── WorktreeInUse
│   └── MemoryUnclear
├── AgentError              the agent failed
│   ├── AgentMissing
│   ├── AgentExited
│   ├── TransportLost
│   ├── HandshakeFailed
│   │   └── HandshakeTimeout
│   ├── TokenRejected
│   │   └── ConversationMismatch
│   ├── TranscriptCorrupt
│   ├── QuotaExceeded
│   ├── LoginRequired
│   ├── NeverAnswered
│   └── NotRestored
├── WorkspaceError          git or the file system refused
│   └── WorktreeMissing
├── StoreError              the database refused
│   ├── DatabaseTooNew
│   ├── DatabaseUnusable
│   ├── WriteFailed
│   └── ChainBroken
└── ServerError
    ├── AlreadyServing
    ├── PortInUse
    ├── TokenUnreadable
    ├── NotRunning
    └── UnsupportedPlatform
"""

from datetime import datetime

from segue.model.status import Failure


class SegueError(Exception):
    """Segue failed."""

    hint: str = ""

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        """Take the message, or the first line of the class's docstring; without `hint` the class's own stays."""
        super().__init__(message or (self.__doc__ or "").split("\n")[0])
        if hint is not None:
            self.hint = hint

    @property
    def message(self) -> str:
        return str(self.args[0])

    @property
    def code(self) -> str:
        """Return the machine-readable name: `WrongState` is `wrong_state`."""
        name = type(self).__name__
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


class BadInput(SegueError):
    """This cannot be used."""


class BadPlan(BadInput):
    """The plan cannot be used."""


class UnknownAgent(BadInput):
    """No agent has this name."""


class NotARepository(BadInput):
    """This is not a git repository."""


class EmptyRepository(BadInput):
    """This repository has no commit yet."""


class BadSettings(BadInput):
    """A setting cannot be used."""


class NotASession(BadInput):
    """This is not a session file that Segue can read."""

    hint = "Give it a session file of Claude Code or Codex (JSON lines)."


class SecretFound(BadInput):
    """This holds something that must not be written down."""


class NotFound(SegueError):
    """Nothing has this name."""


class WorkflowNotFound(NotFound):
    """No workflow has this id or slug."""


class SessionNotFound(NotFound):
    """No session has this id."""


class CheckpointNotFound(NotFound):
    """This workflow has no such checkpoint."""


class MemoryNotFound(NotFound):
    """Nothing was memorized under this id or tag."""


class WrongState(SegueError):
    """It is not in a state for this."""


class IllegalMove(WrongState):
    """This move is not in the table of legal moves."""


class NothingToAnswer(WrongState):
    """No question is open."""


class WorktreeInUse(WrongState):
    """Another workflow is at work in this checkout."""


class MemoryUnclear(WrongState):
    """A similar entry exists, and it is not clear whether this replaces it."""


class AgentError(SegueError):
    """The agent did not do its part."""

    failure: Failure = Failure.OTHER


class AgentMissing(AgentError):
    """The agent's program was not found."""

    failure = Failure.PROGRAM_MISSING


class AgentExited(AgentError):
    """The agent's process ended."""

    failure = Failure.PROCESS_EXITED


class TransportLost(AgentError):
    """The connection to the agent broke, though its process was still there."""

    failure = Failure.TRANSPORT_LOST


class HandshakeFailed(AgentError):
    """The agent started but did not answer as an agent."""

    failure = Failure.HANDSHAKE_FAILED


class HandshakeTimeout(HandshakeFailed):
    """The agent started but did not answer in time."""

    failure = Failure.HANDSHAKE_TIMEOUT


class TokenRejected(AgentError):
    """The agent does not know this conversation any more."""

    failure = Failure.TOKEN_REJECTED


class ConversationMismatch(TokenRejected):
    """The agent answered with another conversation than the one asked for."""

    failure = Failure.OTHER_CONVERSATION


class TranscriptCorrupt(AgentError):
    """The agent's own record of this conversation cannot be used any more."""

    failure = Failure.TRANSCRIPT_CORRUPT


class QuotaExceeded(AgentError):
    """The agent's quota is used up, or it asked too often."""

    failure = Failure.QUOTA

    def __init__(
        self, message: str | None = None, *, hint: str | None = None, reset_at: datetime | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.reset_at = reset_at


class LoginRequired(AgentError):
    """The agent wants you to log in."""

    failure = Failure.LOGIN_REQUIRED


class NeverAnswered(AgentError):
    """The agent came up and never reacted to its prompt."""

    failure = Failure.NEVER_ANSWERED


class NotRestored(AgentError):
    """The agent came back, but not with the model, mode or servers that were chosen for it."""

    failure = Failure.NOT_RESTORED


class WorkspaceError(SegueError):
    """The workspace could not be read or changed."""


class WorktreeMissing(WorkspaceError):
    """The worktree is gone, and so is the branch it could be made from."""

    failure = Failure.WORKTREE_MISSING


class StoreError(SegueError):
    """The database refused."""


class DatabaseTooNew(StoreError):
    """The database was written by a newer Segue."""

    hint = "Install that version of Segue, or use another SEGUE_HOME."


class DatabaseUnusable(StoreError):
    """The database cannot be opened."""


class WriteFailed(StoreError):
    """Nothing was written: the database could not store it."""


class ChainBroken(StoreError):
    """The journal's hash chain does not hold."""


class ServerError(SegueError):
    """The server cannot do this."""


class AlreadyServing(ServerError):
    """Another Segue server uses this data."""


class PortInUse(ServerError):
    """This port is in use."""


class TokenUnreadable(ServerError):
    """The token file cannot be read."""


class NotRunning(ServerError):
    """No Segue server is running."""


class UnsupportedPlatform(ServerError):
    """Segue cannot run on this machine."""

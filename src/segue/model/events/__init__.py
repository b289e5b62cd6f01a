"""Events of the journal, as one closed union of frozen values.

An event records one thing that happened; its number, time, session and run belong to the journal's `Record`. A class
may get a better name; its `kind` and stored fields never change, because the bodies are hashed. Names imported `as`
themselves are only re-exported; they stay with the other names of their module.
"""

# ruff: noqa: I001

from dataclasses import dataclass
from datetime import datetime

from segue.model.events.conversation import (
    AgentExited,
    OutputRecorded,
    AgentMessage,
    AgentReported,
    AgentSummarised,
    AgentThought,
    Compacted,
    FileAction as FileAction,
    FilesChanged,
    JsonObject as JsonObject,
    PermissionOption as PermissionOption,
    PermissionRequested,
    WorkLocation,
    StopReason as StopReason,
    TextDelta,
    TodoEntry as TodoEntry,
    TodoUpdated,
    ToolCalled,
    ToolFinished,
    ToolProgressed,
    ToolStatus as ToolStatus,
    TurnEnded,
    TurnFailed,
    UsageReported,
    UserSpoke,
)
from segue.model.events.session import (
    AgentStarted,
    CapacityReached,
    ContextCarried,
    ContextRefreshed,
    PermissionAnswered,
    PermissionOutcome as PermissionOutcome,
    Price as Price,
    PromptAcknowledged,
    PromptNotSent,
    PromptQueued,
    PromptSent,
    RunEnded,
    RunOutcome as RunOutcome,
    RunQueued,
    RunStarted,
    SessionMoved,
    TokenCaptured,
    TokenRefused,
    TurnJoined,
    WayChanged,
)
from segue.model.events.workflow import (
    ApprovalAwaited,
    CheckpointCreated,
    FeedbackAddressed,
    FixerAdvised,
    IncidentLogged,
    LimitsChanged,
    Origin as Origin,
    PauseRequested,
    PauseWithdrawn,
    PersonAnswered,
    PersonAsked,
    PlanAdopted,
    PlanProposed,
    PlanRejected,
    PlanReopened,
    RetryCancelled,
    RetryScheduled,
    ReviewGiven,
    SessionCreated,
    SessionImported,
    SnapshotStudied,
    StepFailed,
    TaskCompleted,
    TaskFailed,
    TaskInterrupted,
    TaskStarted,
    TestsRan,
    Warned,
    WorkCommitted,
    WorkflowCreated,
    WorkflowMoved,
    WorkflowRewound,
    WorktreeDiscarded,
    WorktreeReady,
)
from segue.model.ids import Seq, SessionId, WorkflowId

AgentEvent = (
    TextDelta
    | ToolCalled
    | ToolFinished
    | TodoUpdated
    | UsageReported
    | PermissionRequested
    | TurnEnded
    | TurnFailed
    | Compacted
    | OutputRecorded
    | AgentExited
)
"""Output of a driver, in order."""

ConversationEvent = (
    AgentMessage
    | AgentThought
    | ToolCalled
    | ToolProgressed
    | ToolFinished
    | FilesChanged
    | TodoUpdated
    | UsageReported
    | PermissionRequested
    | TurnEnded
    | TurnFailed
    | Compacted
    | AgentExited
    | OutputRecorded
    | AgentReported
    | UserSpoke
    | WorkLocation
    | AgentSummarised
)
"""Event in the conversation with an agent."""

SessionEvent = (
    ConversationEvent
    | SessionMoved
    | TokenCaptured
    | TokenRefused
    | RunQueued
    | WayChanged
    | RunStarted
    | RunEnded
    | AgentStarted
    | PromptQueued
    | ContextCarried
    | PromptSent
    | TurnJoined
    | PromptAcknowledged
    | PromptNotSent
    | ContextRefreshed
    | PermissionAnswered
    | CapacityReached
)
"""Event in the life of a session."""

PlanEvent = (
    TaskStarted
    | TaskCompleted
    | TaskFailed
    | TaskInterrupted
    | PlanProposed
    | PlanAdopted
    | PlanRejected
    | PlanReopened
)
"""Event in the making of the plan, or in the work on its tasks."""

VerificationEvent = (
    TestsRan
    | ReviewGiven
    | FeedbackAddressed
    | PersonAsked
    | PersonAnswered
    | StepFailed
    | RetryScheduled
    | RetryCancelled
    | FixerAdvised
)
"""Event in the tests and reviews of a task, and in the handling of failures."""

WorkflowEvent = (
    PlanEvent
    | VerificationEvent
    | WorkflowCreated
    | WorkflowRewound
    | WorkflowMoved
    | WorktreeReady
    | WorktreeDiscarded
    | SessionCreated
    | RunQueued
    | PromptQueued
    | PromptSent
    | PromptNotSent
    | WorkCommitted
    | ApprovalAwaited
    | PauseRequested
    | PauseWithdrawn
    | CheckpointCreated
    | LimitsChanged
    | SnapshotStudied
    | SessionImported
    | Warned
    | IncidentLogged
)
"""Event in the life of a workflow; prompts and queued runs change their session, too."""

Event = WorkflowEvent | SessionEvent
"""Any event of the journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Event with its place in the journal."""

    workflow_id: WorkflowId
    seq: Seq
    at: datetime
    session_id: SessionId | None
    run: int | None
    event: Event
    hash: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """Range of events after one number, up to and including another."""

    after: Seq
    until: Seq

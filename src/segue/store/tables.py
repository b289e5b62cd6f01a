"""Tables of the database. `events` is the journal; the other tables hold statuses for guarded moves, and indexes."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Enum,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
    false,
)
from sqlalchemy.engine.processors import str_to_datetime
from sqlalchemy.types import UserDefinedType

from segue.model.checkpoint import CheckpointType
from segue.model.memories import Keeping
from segue.model.plan import TaskStatus
from segue.model.status import (
    Carrying,
    Permissions,
    PromptStatus,
    Purpose,
    Role,
    RunStatus,
    RuntimeStatus,
    SessionStatus,
    Trigger,
    WaitingFor,
    Way,
    WorkflowStatus,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Time(UserDefinedType[datetime]):
    """Time as ISO 8601 text in UTC: the same sortable bytes on both engines."""

    cache_ok = True

    def get_col_spec(self, **_options: Any) -> str:
        return "VARCHAR"

    def bind_processor(self, dialect: Dialect) -> Any:
        return _write_optional_time

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        # A call of our own for each time in each row would be a third of what a read costs.
        return str_to_datetime


def _write_optional_time(value: datetime | None) -> str | None:
    """Format a time as it is stored; None stays None."""
    return None if value is None else write_time(value)


def write_time(moment: datetime) -> str:
    """Format a time as it is stored: ISO 8601 in UTC with microseconds."""
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return utc.isoformat(timespec="microseconds")


def one_of(kind: type[StrEnum], *, check: bool = True) -> Enum:
    """Return a text column type with a check of its values; without the check where values are still added."""

    def values(members: type[StrEnum]) -> list[str]:
        return [member.value for member in members]

    return Enum(kind, native_enum=False, create_constraint=check, length=32, values_callable=values, name=kind.__name__)


def _of_workflow() -> Column[str]:
    """Build the column that refers to the workflow, which is never empty."""
    return Column("workflow_id", String, ForeignKey("workflows.id"), nullable=False)


workflows = Table(
    "workflows",
    metadata,
    Column("id", String, primary_key=True),
    Column("slug", String, nullable=False, unique=True),
    Column("title", Text, nullable=False),
    Column("status", one_of(WorkflowStatus), nullable=False),
    # The status that a pause left.
    Column("paused_from", String),
    Column("agent", String, nullable=False),
    Column("permissions", one_of(Permissions), nullable=False),
    Column("repository", Text, nullable=False),
    Column("here", Boolean, nullable=False),
    Column("worktree", Text, nullable=False),
    Column("branch", Text, nullable=False),
    Column("base", String),
    Column("session_count", Integer, nullable=False),
    Column("checkpoint_count", Integer, nullable=False),
    # A pause that was requested and has not happened yet.
    Column("pause_trigger", one_of(Trigger)),
    Column("pause_reason", Text),
    Column("force_pause_at", Time),
    Column("paused_at", Time),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    # Model, mode and tool servers, as JSON.
    Column("choices", Text, nullable=False, server_default="{}"),
    # Time of the scheduled retry.
    Column("retry_at", Time),
)
Index("ix_workflows_status", workflows.c.status)
Index("ix_workflows_retry_at", workflows.c.retry_at)
# One writer per worktree: two workflows that have not ended never share one.
_ENDED = ["completed", "cancelled"]
Index(
    "uq_workflows_live_worktree",
    workflows.c.worktree,
    unique=True,
    sqlite_where=workflows.c.status.not_in(_ENDED),
    postgresql_where=workflows.c.status.not_in(_ENDED),
)

journal_heads = Table(
    "journal_heads",
    metadata,
    Column("workflow_id", String, ForeignKey("workflows.id"), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("hash", String, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("workflow_id", String, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    # Text, like the body: these are the exact bytes that were hashed.
    Column("at", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("session_id", String),
    Column("run", Integer),
    Column("body", Text, nullable=False),
    Column("hash", String, nullable=False),
)

tasks = Table(
    "tasks",
    metadata,
    Column("workflow_id", String, ForeignKey("workflows.id"), primary_key=True),
    Column("id", String, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("status", one_of(TaskStatus), nullable=False),
    # The attempt that may report its end.
    Column("attempt", String),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", String, primary_key=True),
    _of_workflow(),
    # Helper sessions have numbers below 0, which are not shown.
    Column("number", Integer, nullable=False),
    Column("agent", String, nullable=False),
    Column("parent", String, ForeignKey("sessions.id")),
    Column("status", one_of(SessionStatus), nullable=False),
    Column("waiting_for", one_of(WaitingFor)),
    Column("reason", Text, nullable=False),
    # The status to which a failed start returns.
    Column("started_from", String),
    Column("run_count", Integer, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("moved_at", Time, nullable=False),
    # Whether the next prompt must carry the earlier conversation.
    Column("carrying", one_of(Carrying), nullable=False, server_default=Carrying.NOTHING),
    Column("role", one_of(Role, check=False), nullable=False, server_default=Role.WRITER),
    UniqueConstraint("workflow_id", "number"),
)

# Latest agent process of a session. The row outlives the process and the server.
runtimes = Table(
    "runtimes",
    metadata,
    Column("session_id", String, ForeignKey("sessions.id"), primary_key=True),
    Column("status", one_of(RuntimeStatus), nullable=False),
    # The resume token, and the number of its changes.
    Column("token", Text),
    Column("generation", Integer, nullable=False),
    # The attempt that may change this row.
    Column("execution", String),
    Column("pid", Integer),
    Column("pid_started", String),
    Column("guardian_pid", Integer),
    Column("machine_boot", String),
    Column("container", String),
    Column("last_seen_at", Time),
    # Number of late events of former attempts, which were dropped.
    Column("dropped_events", Integer, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("session_id", String, ForeignKey("sessions.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    _of_workflow(),
    Column("status", one_of(RunStatus), nullable=False),
    Column("way", one_of(Way, check=False), nullable=False),
    Column("purpose", one_of(Purpose), nullable=False, server_default=Purpose.WORK),
    Column("attempt", String),
    Column("boot", String),
    Column("queued_at", Time, nullable=False),
    Column("started_at", Time),
    Column("ended_at", Time),
    Column("outcome", String),
)
Index("ix_runs_attempt", runs.c.attempt)
# One run at a time for each workflow.
Index(
    "uq_runs_open",
    runs.c.workflow_id,
    unique=True,
    sqlite_where=runs.c.status != RunStatus.ENDED,
    postgresql_where=runs.c.status != RunStatus.ENDED,
)

prompts = Table(
    "prompts",
    metadata,
    Column("id", String, primary_key=True),
    _of_workflow(),
    Column("session_id", String, ForeignKey("sessions.id"), nullable=False),
    # None while the prompt waits for a run.
    Column("run", Integer),
    Column("task_id", String),
    Column("status", one_of(PromptStatus), nullable=False),
    # The event that has the text; the oldest prompt comes first.
    Column("seq", BigInteger, nullable=False, server_default="0"),
    Column("carries", Boolean, nullable=False, server_default=false()),
)
Index("ix_prompts_session_id_run", prompts.c.session_id, prompts.c.run)
Index("ix_prompts_workflow_id_status", prompts.c.workflow_id, prompts.c.status)

questions = Table(
    "questions",
    metadata,
    Column("id", String, primary_key=True),
    _of_workflow(),
    Column("session_id", String, ForeignKey("sessions.id"), nullable=False),
    # The event of the request; the oldest comes first.
    Column("seq", BigInteger, nullable=False),
    Column("title", Text, nullable=False),
    Column("deadline", Time, nullable=False),
    Column("outcome", String),
)
Index("ix_questions_workflow_id", questions.c.workflow_id)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("workflow_id", String, ForeignKey("workflows.id"), primary_key=True),
    Column("id", String, primary_key=True),
    Column("number", Integer, nullable=False),
    Column("session_id", String, ForeignKey("sessions.id"), nullable=False),
    Column("type", one_of(CheckpointType, check=False), nullable=False),
    Column("trigger", one_of(Trigger), nullable=False),
    Column("snapshot", Boolean, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("document", Text, nullable=False),
    Column("hash", String, nullable=False),
    # Findings of the study of a snapshot.
    Column("findings", Text),
    UniqueConstraint("workflow_id", "number"),
)
Index("ix_checkpoints_created_at", checkpoints.c.created_at)

# Session files that became workflows, by the hash of their content.
imports = Table(
    "imports",
    metadata,
    Column("sha256", String, primary_key=True),
    _of_workflow(),
    Column("conversation", String, nullable=False),
    Column("file", Text, nullable=False),
    Column("imported_at", Time, nullable=False),
)
Index("ix_imports_conversation", imports.c.conversation)

# Progress of indexing each workflow's journal. A shelf's number is the upper half of its clippings' ids, so that a
# workflow's clippings have consecutive ids.
shelves = Table(
    "shelves",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("workflow_id", String, ForeignKey("workflows.id"), nullable=False, unique=True),
    Column("seq", BigInteger, nullable=False),
    Column("clippings", Integer, nullable=False),
    # Version of the rules that made the clippings.
    Column("rules", Integer, nullable=False),
)

# Searchable pieces of past work, derived from `events` and `memories`; each engine has its own full-text index.
clippings = Table(
    "clippings",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("workflow_id", String),
    Column("session_id", String),
    Column("seq", BigInteger),
    Column("at", Time, nullable=False),
    Column("kind", String, nullable=False),
    Column("text", Text, nullable=False),
    # Identifiers of the text: one-word identifiers split, those of several words joined.
    Column("names", Text, nullable=False),
)
Index("ix_clippings_workflow_id_seq", clippings.c.workflow_id, clippings.c.seq)
Index("ix_clippings_session_id", clippings.c.session_id)

CLIPPING_INDEX = {
    "sqlite": (
        "CREATE VIRTUAL TABLE clipping_index USING fts5("
        "text, names, content='clippings', content_rowid='id', tokenize='porter unicode61')",
    ),
    "postgresql": (
        "CREATE TABLE clipping_index (id BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)",
        "CREATE INDEX ix_clipping_index_words ON clipping_index USING gin (words)",
    ),
}
for _dialect, _statements in CLIPPING_INDEX.items():
    for _statement in _statements:
        event.listen(clippings, "after_create", DDL(_statement).execute_if(dialect=_dialect))
event.listen(clippings, "before_drop", DDL("DROP TABLE clipping_index"))

# Memory entries. `number` is the id of the entry's clipping.
memories = Table(
    "memories",
    metadata,
    Column("id", String, primary_key=True),
    Column("number", Integer, nullable=False, unique=True),
    Column("tag", String, nullable=False, unique=True),
    Column("tags", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("content_sha256", String, nullable=False),
    Column("importance", Float, nullable=False),
    Column("domain", String, nullable=False),
    Column("keeping", one_of(Keeping), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    Column("expires_at", Time),
    Column("key", String, unique=True),
    # Provenance.
    Column("workflow_id", String, ForeignKey("workflows.id")),
    Column("session_id", String, ForeignKey("sessions.id")),
    Column("seq", BigInteger),
)

Index("ix_memories_content_sha256", memories.c.content_sha256)
Index("ix_memories_workflow_id", memories.c.workflow_id)
Index("ix_memories_expires_at", memories.c.expires_at)

# Log of all accesses to memories and to the search, refusals included.
memory_log = Table(
    "memory_log",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Time, nullable=False),
    Column("operation", String, nullable=False),
    Column("outcome", String, nullable=False),
    Column("memory_id", String),
    Column("detail", Text, nullable=False),
)
Index("ix_memory_log_memory_id", memory_log.c.memory_id)

# Copies of agents' own conversations; entries are added and never changed.
kept_conversations = Table(
    "kept_conversations",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("project", Text, nullable=False),
    Column("conversation", String, nullable=False),
    Column("part", Text, nullable=False),
    # The session in which the conversation began.
    Column("session_id", String, ForeignKey("sessions.id"), nullable=False),
    Column("entries", Integer, nullable=False),
    Column("last", String),
    Column("at", Time, nullable=False),
    UniqueConstraint("conversation", "project", "part"),
)
Index("ix_kept_conversations_project", kept_conversations.c.project)

kept_entries = Table(
    "kept_entries",
    metadata,
    Column("kept_id", Integer, ForeignKey("kept_conversations.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    # The agent's id of the entry; some have none.
    Column("name", String),
    Column("entry", Text, nullable=False),
    UniqueConstraint("kept_id", "name"),
)

# Pictures sent to agents; the event that queued the prompt has name, kind and size.
pictures = Table(
    "pictures",
    metadata,
    Column("workflow_id", String, ForeignKey("workflows.id"), primary_key=True),
    Column("sha256", String, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

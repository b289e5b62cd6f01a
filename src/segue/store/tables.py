"""The tables. Statuses stand here for guarded moves; what happened stands in `events`."""

from datetime import UTC, datetime
from enum import StrEnum

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
    TypeDecorator,
    UniqueConstraint,
    event,
    false,
)

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


class Time(TypeDecorator[datetime]):
    """A moment as ISO 8601 text in UTC: the same bytes on both engines, and they sort."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        return None if value is None else write_time(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)


def write_time(moment: datetime) -> str:
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return utc.isoformat(timespec="microseconds")


def one_of(kind: type[StrEnum], *, check: bool = True) -> Enum:
    """Text with a check, so that a new value is a migration and not a new type; without, where values still join."""

    def values(members: type[StrEnum]) -> list[str]:
        return [member.value for member in members]

    return Enum(kind, native_enum=False, create_constraint=check, length=32, values_callable=values, name=kind.__name__)


def _of_workflow() -> Column[str]:
    return Column("workflow_id", String, ForeignKey("workflows.id"), nullable=False)


workflows = Table(
    "workflows",
    metadata,
    Column("id", String, primary_key=True),
    Column("slug", String, nullable=False, unique=True),
    Column("title", Text, nullable=False),
    Column("status", one_of(WorkflowStatus), nullable=False),
    # Where a pause came from.
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
    # A pause that was asked for and has not happened yet.
    Column("pause_trigger", one_of(Trigger)),
    Column("pause_reason", Text),
    Column("force_pause_at", Time),
    Column("paused_at", Time),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    # Model, mode and servers of tools, as JSON.
    Column("choices", Text, nullable=False, server_default="{}"),
    # When the work goes on by itself.
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
    # The physical try that may report its end.
    Column("attempt", String),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", String, primary_key=True),
    _of_workflow(),
    # Those that only help have numbers below 0, and show none.
    Column("number", Integer, nullable=False),
    Column("agent", String, nullable=False),
    Column("parent", String, ForeignKey("sessions.id")),
    Column("status", one_of(SessionStatus), nullable=False),
    Column("waiting_for", one_of(WaitingFor)),
    Column("reason", Text, nullable=False),
    # The state a start returns to when it fails.
    Column("started_from", String),
    Column("run_count", Integer, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("moved_at", Time, nullable=False),
    # Whether it has yet to be told what was said before it.
    Column("carrying", one_of(Carrying), nullable=False, server_default=Carrying.NOTHING),
    Column("role", one_of(Role, check=False), nullable=False, server_default=Role.WRITER),
    UniqueConstraint("workflow_id", "number"),
)

# What is known of a session's agent process. It outlives the process and the server.
runtimes = Table(
    "runtimes",
    metadata,
    Column("session_id", String, ForeignKey("sessions.id"), primary_key=True),
    Column("status", one_of(RuntimeStatus), nullable=False),
    # The agent's own id for the conversation, and how often it changed.
    Column("token", Text),
    Column("generation", Integer, nullable=False),
    # The physical try that may change this row.
    Column("execution", String),
    Column("pid", Integer),
    Column("pid_started", String),
    Column("guardian_pid", Integer),
    Column("machine_boot", String),
    Column("container", String),
    Column("last_seen_at", Time),
    # What a dead execution still had to say, and nobody wrote down.
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
    # None while it waits for a run to take it.
    Column("run", Integer),
    Column("task_id", String),
    Column("status", one_of(PromptStatus), nullable=False),
    # The event that has its words, so that the oldest comes first.
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
    # The event that asked, so that the oldest comes first.
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
    # The second look at a snapshot, once it was taken.
    Column("findings", Text),
    UniqueConstraint("workflow_id", "number"),
)
Index("ix_checkpoints_created_at", checkpoints.c.created_at)

# Session files that were made into workflows, by what is in them.
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

# How far each workflow's journal has been clipped for searching. The shelf's number is the upper half of its clippings'
# ids, so that what stood side by side in the journal stands side by side in the index.
shelves = Table(
    "shelves",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("workflow_id", String, ForeignKey("workflows.id"), nullable=False, unique=True),
    Column("seq", BigInteger, nullable=False),
    Column("clippings", Integer, nullable=False),
    # The rules it was clipped by.
    Column("rules", Integer, nullable=False),
)

# Past work in pieces, derived from `events` and `memories`; the index over their words is the engine's own.
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
    # The identifiers of the text, split into words where they are one and joined where they are several.
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

# What was put down to be remembered. `number` is its place among the clippings.
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
    # Where it comes from.
    Column("workflow_id", String, ForeignKey("workflows.id")),
    Column("session_id", String, ForeignKey("sessions.id")),
    Column("seq", BigInteger),
)

Index("ix_memories_content_sha256", memories.c.content_sha256)
Index("ix_memories_workflow_id", memories.c.workflow_id)
Index("ix_memories_expires_at", memories.c.expires_at)

# Everything that was done with memories and with the search, refusals included.
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

# Agents' own conversations, kept for them as they write them down; entries are added and never changed.
kept_conversations = Table(
    "kept_conversations",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("project", Text, nullable=False),
    Column("conversation", String, nullable=False),
    Column("part", Text, nullable=False),
    # The session in which it was first spoken.
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
    # The agent's own; some entries have none.
    Column("name", String),
    Column("entry", Text, nullable=False),
    UniqueConstraint("kept_id", "name"),
)

# What was shown to agents; the event that queued the prompt has the name, the kind and the size.
pictures = Table(
    "pictures",
    metadata,
    Column("workflow_id", String, ForeignKey("workflows.id"), primary_key=True),
    Column("sha256", String, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

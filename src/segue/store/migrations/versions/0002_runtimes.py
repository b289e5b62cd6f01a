"""Agent processes of sessions, waiting messages, and the choices made for an agent."""

from collections.abc import Callable

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the table of runtimes with the sessions' tokens, the workflows' choices, and columns to runs and prompts."""
    op.add_column("workflows", sa.Column("choices", sa.Text(), server_default="{}", nullable=False))
    _sessions()
    _rebuild("runs", _runs, before="session_id, number, workflow_id, status, way", after=_AFTER_WAY, new="'work'")
    _rebuild("prompts", _prompts, before="id, workflow_id, session_id, run, task_id, status", after="", new="0, FALSE")


def _sessions() -> None:
    """Move the sessions' tokens to the new table of runtimes, and add the column `carrying`."""
    op.create_table(
        "runtimes",
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("status", _one_of("RuntimeStatus", "none", "live", "ended"), nullable=False),
        sa.Column("token", sa.Text(), nullable=True),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("execution", sa.String(), nullable=True),
        sa.Column("pid", sa.Integer(), nullable=True),
        sa.Column("pid_started", sa.String(), nullable=True),
        sa.Column("guardian_pid", sa.Integer(), nullable=True),
        sa.Column("machine_boot", sa.String(), nullable=True),
        sa.Column("container", sa.String(), nullable=True),
        sa.Column("last_message", sa.String(), nullable=True),
        sa.Column("last_seen_at", sa.String(), nullable=True),
        sa.Column("dropped_events", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_runtimes_session_id")),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_runtimes")),
    )
    op.execute(
        "INSERT INTO runtimes (session_id, status, token, generation, dropped_events) "
        "SELECT id, CASE WHEN token IS NULL THEN 'none' ELSE 'ended' END, token, "
        "CASE WHEN token IS NULL THEN 0 ELSE 1 END, 0 FROM sessions"
    )
    op.drop_column("sessions", "token")
    # SQLite takes a check only together with its column.
    op.execute(
        "ALTER TABLE sessions ADD COLUMN carrying VARCHAR(32) DEFAULT 'nothing' NOT NULL "
        "CONSTRAINT \"ck_sessions_Carrying\" CHECK (carrying IN ('nothing', 'needed', 'done'))"
    )


_AFTER_WAY = ", attempt, boot, queued_at, started_at, ended_at, outcome"


def _runs() -> None:
    """Create the table of runs with the column `purpose`."""
    op.create_table(
        "runs",
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("status", _one_of("RunStatus", "queued", "active", "ended"), nullable=False),
        sa.Column("way", sa.String(length=32), nullable=False),
        sa.Column("purpose", _one_of("Purpose", "work", "talk", "leaving"), server_default="work", nullable=False),
        sa.Column("attempt", sa.String(), nullable=True),
        sa.Column("boot", sa.String(), nullable=True),
        sa.Column("queued_at", sa.String(), nullable=False),
        sa.Column("started_at", sa.String(), nullable=True),
        sa.Column("ended_at", sa.String(), nullable=True),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_runs_session_id")),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_runs_workflow_id")),
        sa.PrimaryKeyConstraint("session_id", "number", name=op.f("pk_runs")),
    )
    op.create_index("ix_runs_attempt", "runs", ["attempt"], unique=False)
    op.create_index(
        "uq_runs_open",
        "runs",
        ["workflow_id"],
        unique=True,
        sqlite_where=sa.text("status != 'ended'"),
        postgresql_where=sa.text("status != 'ended'"),
    )


def _prompts() -> None:
    """Create the table of prompts with `seq` and `carries`, where the run may be missing."""
    op.create_table(
        "prompts",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=True),
        sa.Column("task_id", sa.String(), nullable=True),
        sa.Column("status", _one_of("PromptStatus", "queued", "sent", "acknowledged", "not_sent"), nullable=False),
        sa.Column("seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("carries", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_prompts_session_id")),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_prompts_workflow_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prompts")),
    )
    op.create_index("ix_prompts_session_id_run", "prompts", ["session_id", "run"], unique=False)
    op.create_index("ix_prompts_workflow_id_status", "prompts", ["workflow_id", "status"], unique=False)


def _one_of(name: str, *values: str) -> sa.Enum:
    """Build a text column type with a check of its values."""
    return sa.Enum(*values, name=name, native_enum=False, create_constraint=True, length=32)


def _rebuild(table: str, create: Callable[[], None], *, before: str, after: str, new: str) -> None:
    """Rebuild a table with columns between its old ones; `new` has their values for existing rows."""
    op.execute(f"CREATE TABLE {table}_kept AS SELECT * FROM {table}")
    op.drop_table(table)
    create()
    op.execute(f"INSERT INTO {table} SELECT {before}, {new}{after} FROM {table}_kept")
    op.drop_table(f"{table}_kept")

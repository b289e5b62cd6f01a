"""First tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the first tables."""
    op.create_table(
        "events",
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=True),
        sa.Column("run", sa.Integer(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("workflow_id", "seq", name=op.f("pk_events")),
    )
    op.create_table(
        "workflows",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("slug", sa.String(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column(
            "status",
            sa.Enum(
                "pending",
                "in_progress",
                "blocked",
                "review",
                "paused",
                "completed",
                "failed",
                "cancelled",
                name="WorkflowStatus",
                native_enum=False,
                create_constraint=True,
                length=32,
            ),
            nullable=False,
        ),
        sa.Column("paused_from", sa.String(), nullable=True),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column(
            "permissions",
            sa.Enum(
                "ask",
                "edits",
                "all",
                "read-only",
                name="Permissions",
                native_enum=False,
                create_constraint=True,
                length=32,
            ),
            nullable=False,
        ),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("here", sa.Boolean(), nullable=False),
        sa.Column("worktree", sa.Text(), nullable=False),
        sa.Column("branch", sa.Text(), nullable=False),
        sa.Column("base", sa.String(), nullable=True),
        sa.Column("session_count", sa.Integer(), nullable=False),
        sa.Column("checkpoint_count", sa.Integer(), nullable=False),
        sa.Column(
            "pause_trigger",
            sa.Enum(
                "pause",
                "task_complete",
                "exhaustion",
                "timeout",
                "crash",
                "cancel",
                name="Trigger",
                native_enum=False,
                create_constraint=True,
                length=32,
            ),
            nullable=True,
        ),
        sa.Column("pause_reason", sa.Text(), nullable=True),
        sa.Column("force_pause_at", sa.String(), nullable=True),
        sa.Column("paused_at", sa.String(), nullable=True),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("updated_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workflows")),
        sa.UniqueConstraint("slug", name=op.f("uq_workflows_slug")),
    )
    with op.batch_alter_table("workflows", schema=None) as batch_op:
        batch_op.create_index("ix_workflows_status", ["status"], unique=False)
        batch_op.create_index(
            "uq_workflows_live_worktree",
            ["worktree"],
            unique=True,
            sqlite_where=sa.text("(status NOT IN ('completed', 'cancelled'))"),
            postgresql_where=sa.text("(status NOT IN ('completed', 'cancelled'))"),
        )

    op.create_table(
        "journal_heads",
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_journal_heads_workflow_id")),
        sa.PrimaryKeyConstraint("workflow_id", name=op.f("pk_journal_heads")),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("parent", sa.String(), nullable=True),
        sa.Column(
            "status",
            sa.Enum(
                "created",
                "starting",
                "running",
                "waiting_for_input",
                "suspended",
                "completed",
                "failed",
                "cancelled",
                "expired",
                "terminated",
                name="SessionStatus",
                native_enum=False,
                create_constraint=True,
                length=32,
            ),
            nullable=False,
        ),
        sa.Column(
            "waiting_for",
            sa.Enum("prompt", "permission", name="WaitingFor", native_enum=False, create_constraint=True, length=32),
            nullable=True,
        ),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("started_from", sa.String(), nullable=True),
        sa.Column("token", sa.Text(), nullable=True),
        sa.Column("run_count", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("moved_at", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["parent"], ["sessions.id"], name=op.f("fk_sessions_parent")),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_sessions_workflow_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("workflow_id", "number", name=op.f("uq_sessions_workflow_id_number")),
    )
    op.create_table(
        "tasks",
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column(
            "status",
            sa.Enum(
                "pending",
                "in_progress",
                "completed",
                "failed",
                "skipped",
                name="TaskStatus",
                native_enum=False,
                create_constraint=True,
                length=32,
            ),
            nullable=False,
        ),
        sa.Column("attempt", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_tasks_workflow_id")),
        sa.PrimaryKeyConstraint("workflow_id", "id", name=op.f("pk_tasks")),
    )
    op.create_table(
        "checkpoints",
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column(
            "type",
            sa.Enum(
                "task_complete",
                "pause",
                "interrupted",
                "session_end",
                "cancel",
                name="CheckpointType",
                native_enum=False,
                create_constraint=True,
                length=32,
            ),
            nullable=False,
        ),
        sa.Column(
            "trigger",
            sa.Enum(
                "pause",
                "task_complete",
                "exhaustion",
                "timeout",
                "crash",
                "cancel",
                name="Trigger",
                native_enum=False,
                create_constraint=True,
                length=32,
            ),
            nullable=False,
        ),
        sa.Column("snapshot", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_checkpoints_session_id")),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_checkpoints_workflow_id")),
        sa.PrimaryKeyConstraint("workflow_id", "id", name=op.f("pk_checkpoints")),
        sa.UniqueConstraint("workflow_id", "number", name=op.f("uq_checkpoints_workflow_id_number")),
    )
    with op.batch_alter_table("checkpoints", schema=None) as batch_op:
        batch_op.create_index("ix_checkpoints_created_at", ["created_at"], unique=False)

    op.create_table(
        "prompts",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.String(), nullable=True),
        sa.Column(
            "status",
            sa.Enum(
                "queued",
                "sent",
                "acknowledged",
                "not_sent",
                name="PromptStatus",
                native_enum=False,
                create_constraint=True,
                length=32,
            ),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_prompts_session_id")),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_prompts_workflow_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prompts")),
    )
    with op.batch_alter_table("prompts", schema=None) as batch_op:
        batch_op.create_index("ix_prompts_session_id_run", ["session_id", "run"], unique=False)

    op.create_table(
        "questions",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("deadline", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_questions_session_id")),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_questions_workflow_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_questions")),
    )
    with op.batch_alter_table("questions", schema=None) as batch_op:
        batch_op.create_index("ix_questions_workflow_id", ["workflow_id"], unique=False)

    op.create_table(
        "runs",
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column(
            "status",
            sa.Enum(
                "queued", "active", "ended", name="RunStatus", native_enum=False, create_constraint=True, length=32
            ),
            nullable=False,
        ),
        sa.Column(
            "way",
            sa.Enum("first", "native", "fresh", name="Way", native_enum=False, create_constraint=True, length=32),
            nullable=False,
        ),
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
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index(
            "uq_runs_open",
            ["workflow_id"],
            unique=True,
            sqlite_where=sa.text("status != 'ended'"),
            postgresql_where=sa.text("status != 'ended'"),
        )

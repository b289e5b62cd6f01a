"""Helper sessions, checkpoints of more kinds, and scheduled retries."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the sessions' role and the workflows' time of a retry, and remove the check of checkpoint types."""
    op.add_column("sessions", sa.Column("role", sa.String(length=32), server_default="writer", nullable=False))
    op.add_column("workflows", sa.Column("retry_at", sa.String(), nullable=True))
    op.create_index("ix_workflows_retry_at", "workflows", ["retry_at"])
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint(op.f("ck_checkpoints_CheckpointType"), "checkpoints", type_="check")
    else:
        _rebuild_checkpoints()


def _rebuild_checkpoints() -> None:
    """Rebuild the table without the check of its types, because SQLite cannot remove a check from one."""
    op.execute("CREATE TABLE checkpoints_kept AS SELECT * FROM checkpoints")
    op.drop_table("checkpoints")
    op.create_table(
        "checkpoints",
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
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
        sa.Column("findings", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_checkpoints_session_id")),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_checkpoints_workflow_id")),
        sa.PrimaryKeyConstraint("workflow_id", "id", name=op.f("pk_checkpoints")),
        sa.UniqueConstraint("workflow_id", "number", name=op.f("uq_checkpoints_workflow_id_number")),
    )
    op.create_index("ix_checkpoints_created_at", "checkpoints", ["created_at"])
    op.execute("INSERT INTO checkpoints SELECT * FROM checkpoints_kept")
    op.drop_table("checkpoints_kept")

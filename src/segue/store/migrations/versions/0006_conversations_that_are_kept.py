"""Copies of agents' own conversations."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the tables of conversation copies and of their entries."""
    op.create_table(
        "kept_conversations",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("conversation", sa.String(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("entries", sa.Integer(), nullable=False),
        sa.Column("last", sa.String(), nullable=True),
        sa.Column("at", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_kept_conversations_session_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kept_conversations")),
        sa.UniqueConstraint(
            "conversation", "project", "part", name=op.f("uq_kept_conversations_conversation_project_part")
        ),
    )
    op.create_index("ix_kept_conversations_project", "kept_conversations", ["project"])
    op.create_table(
        "kept_entries",
        sa.Column("kept_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["kept_id"], ["kept_conversations.id"], name=op.f("fk_kept_entries_kept_id")),
        sa.PrimaryKeyConstraint("kept_id", "number", name=op.f("pk_kept_entries")),
        sa.UniqueConstraint("kept_id", "name", name=op.f("uq_kept_entries_kept_id_name")),
    )

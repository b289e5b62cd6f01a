"""Findings of the study of a snapshot, and session files that became workflows."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the findings of checkpoints and the table of imports, drop `last_message`, and fill in the events of old
    prompts."""
    op.add_column("checkpoints", sa.Column("findings", sa.Text(), nullable=True))
    op.create_table(
        "imports",
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("conversation", sa.String(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("imported_at", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_imports_workflow_id")),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_imports")),
    )
    op.create_index("ix_imports_conversation", "imports", ["conversation"])
    op.drop_column("runtimes", "last_message")
    # Prompts of the first schema did not record which event holds their text.
    op.execute(
        "UPDATE prompts SET seq = COALESCE((SELECT events.seq FROM events "
        "WHERE events.workflow_id = prompts.workflow_id AND events.kind = 'prompt.queued' "
        "AND events.body LIKE '%\"prompt_id\":\"' || prompts.id || '\"%'), 0) WHERE seq = 0"
    )

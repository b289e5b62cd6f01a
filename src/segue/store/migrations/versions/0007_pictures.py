"""Pictures sent with prompts."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add a table of pictures: bytes by workflow and sha256."""
    op.create_table(
        "pictures",
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_pictures_workflow_id")),
        sa.PrimaryKeyConstraint("workflow_id", "sha256", name=op.f("pk_pictures")),
    )

"""Search index over past work, and memory entries."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the tables of the search index, of memory entries and of the log of accesses."""
    _clippings()
    _memories()


def _clippings() -> None:
    """Create the tables of shelves and clippings, and the full-text index of the database's kind."""
    op.create_table(
        "shelves",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("clippings", sa.Integer(), nullable=False),
        sa.Column("rules", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_shelves_workflow_id")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_shelves")),
        sa.UniqueConstraint("workflow_id", name=op.f("uq_shelves_workflow_id")),
    )
    op.create_table(
        "clippings",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("workflow_id", sa.String(), nullable=True),
        sa.Column("session_id", sa.String(), nullable=True),
        sa.Column("seq", sa.BigInteger(), nullable=True),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("names", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_clippings")),
    )
    op.create_index("ix_clippings_workflow_id_seq", "clippings", ["workflow_id", "seq"], unique=False)
    op.create_index("ix_clippings_session_id", "clippings", ["session_id"], unique=False)
    for statement in _INDEX[op.get_context().dialect.name]:
        op.execute(statement)


_INDEX = {
    "sqlite": (
        "CREATE VIRTUAL TABLE clipping_index USING fts5("
        "text, names, content='clippings', content_rowid='id', tokenize='porter unicode61')",
    ),
    "postgresql": (
        "CREATE TABLE clipping_index (id BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)",
        "CREATE INDEX ix_clipping_index_words ON clipping_index USING gin (words)",
    ),
}


def _memories() -> None:
    """Create the tables of memory entries and of the log of accesses to them."""
    keepings = ("short-term", "working", "long-term", "persistent")
    op.create_table(
        "memories",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("tag", sa.String(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("content_sha256", sa.String(), nullable=False),
        sa.Column("importance", sa.Float(), nullable=False),
        sa.Column("domain", sa.String(), nullable=False),
        sa.Column(
            "keeping",
            sa.Enum(*keepings, name="Keeping", native_enum=False, create_constraint=True, length=32),
            nullable=False,
        ),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("updated_at", sa.String(), nullable=False),
        sa.Column("expires_at", sa.String(), nullable=True),
        sa.Column("key", sa.String(), nullable=True),
        sa.Column("workflow_id", sa.String(), nullable=True),
        sa.Column("session_id", sa.String(), nullable=True),
        sa.Column("seq", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_memories_session_id")),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_memories_workflow_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memories")),
        sa.UniqueConstraint("key", name=op.f("uq_memories_key")),
        sa.UniqueConstraint("number", name=op.f("uq_memories_number")),
        sa.UniqueConstraint("tag", name=op.f("uq_memories_tag")),
    )
    for column in ("content_sha256", "workflow_id", "expires_at"):
        op.create_index(f"ix_memories_{column}", "memories", [column], unique=False)
    op.create_table(
        "memory_log",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("operation", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("memory_id", sa.String(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memory_log")),
    )
    op.create_index("ix_memory_log_memory_id", "memory_log", ["memory_id"], unique=False)

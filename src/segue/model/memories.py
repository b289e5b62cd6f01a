"""Search results in past work, and memory entries."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal, NewType

from segue.model.ids import Seq, SessionId, WorkflowId

MemoryId = NewType("MemoryId", str)

ClippingKind = Literal[
    "issue",
    "prompt",
    "message",
    "thought",
    "tool",
    "output",
    "todo",
    "decision",
    "error",
    "checkpoint",
    "summary",
    "memory",
]
Verdict = Literal["recalled", "several", "not_found"]
MemorizeMode = Literal["new", "update", "auto"]

STALE_AFTER = timedelta(days=180)
"""Age from which a result is shown with a warning."""
RETENTION = timedelta(days=180)
"""Time after its expiry at which an entry is erased."""


class Keeping(StrEnum):
    """Intended lifetime of an entry."""

    SHORT_TERM = "short-term"
    WORKING = "working"
    LONG_TERM = "long-term"
    PERSISTENT = "persistent"


LIFETIMES: Mapping[Keeping, timedelta | None] = {
    Keeping.SHORT_TERM: timedelta(hours=24),
    Keeping.WORKING: timedelta(days=7),
    Keeping.LONG_TERM: timedelta(days=90),
    Keeping.PERSISTENT: None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Clipping:
    """Searchable piece of past work, cut out of the journal."""

    kind: ClippingKind
    text: str
    at: datetime
    session_id: SessionId | None = None
    seq: Seq | None = None


# ── recalling ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """Search in past work."""

    query: str
    limit: int = 5
    workflow: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Origin of a clipping or an entry."""

    workflow_id: WorkflowId | None = None
    workflow: str | None = None
    """The workflow's slug."""
    session_id: SessionId | None = None
    seq: Seq | None = None
    memory_id: MemoryId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Search result."""

    kind: ClippingKind
    text: str
    excerpt: str
    at: datetime
    score: float
    """Share of the query's terms, weighted by rarity, that occur here or in the neighbouring clippings."""
    stale: bool
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """Results of a search. Below the bands nothing counts as found; the nearest results are shown as such."""

    verdict: Verdict
    query: str
    results: tuple[Found, ...] = ()
    found: int = 0
    """Number of results, from the first one on, that reach the verdict's band."""
    access_log_id: int


# ── memorizing ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Content to memorize; a field that is None keeps its value, or gets a default."""

    content: str
    tag: str | None = None
    tags: tuple[str, ...] | None = None
    importance: float | None = None
    domain: str | None = None
    keeping: Keeping | None = None
    workflow: str | None = None
    """Workflow that it comes from, by id or slug."""
    key: str | None = None
    """Idempotency key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    """Memory entry, as stored."""

    id: MemoryId
    tag: str
    tags: tuple[str, ...]
    content: str
    content_sha256: str
    importance: float
    domain: str
    keeping: Keeping
    revision: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Memorized:
    """Result of memorizing a note."""

    status: Literal["stored", "updated", "unchanged"]
    memory: MemoryEntry
    access_log_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Result of deleting an entry."""

    memory_id: MemoryId
    access_log_id: int
    status: Literal["deleted"] = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRecord:
    """Log entry of a write, read, search or deletion in the memory."""

    id: int
    at: datetime
    operation: str
    outcome: str
    memory_id: MemoryId | None = None
    detail: Mapping[str, str] = field(default_factory=dict[str, str])

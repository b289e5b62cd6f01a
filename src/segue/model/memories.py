"""Past work as it is found again, and what was put down to be remembered."""

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
"""What is older is found with a warning."""
RETENTION = timedelta(days=180)
"""How long an entry that has expired is kept before it is erased."""


class Keeping(StrEnum):
    """How long an entry is meant to be found."""

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
    """A piece of past work, cut out of the journal so that it can be found again."""

    kind: ClippingKind
    text: str
    at: datetime
    session_id: SessionId | None = None
    seq: Seq | None = None


# ── recalling ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """What somebody wants to know of past work."""

    query: str
    limit: int = 5
    workflow: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where something comes from."""

    workflow_id: WorkflowId | None = None
    workflow: str | None = None
    """The workflow's slug."""
    session_id: SessionId | None = None
    seq: Seq | None = None
    memory_id: MemoryId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One answer to a question."""

    kind: ClippingKind
    text: str
    excerpt: str
    at: datetime
    score: float
    """The share of the question's words, weighted by how rare they are, that stand here or right beside it."""
    stale: bool
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """What was found. Below the bands nothing counts as found, and the nearest is shown as such."""

    verdict: Verdict
    query: str
    results: tuple[Found, ...] = ()
    found: int = 0
    """So many of the results, the first ones, reach the verdict's band; the others are only the nearest."""
    access_log_id: int


# ── memorizing ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that somebody wants remembered; what is None stays as it was, or is chosen."""

    content: str
    tag: str | None = None
    tags: tuple[str, ...] | None = None
    importance: float | None = None
    domain: str | None = None
    keeping: Keeping | None = None
    workflow: str | None = None
    """The workflow it comes from, by id or slug."""
    key: str | None = None
    """Storing twice under one key stores once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    """Something that was put down to be remembered."""

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
    """What became of a note."""

    status: Literal["stored", "updated", "unchanged"]
    memory: MemoryEntry
    access_log_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    memory_id: MemoryId
    access_log_id: int
    status: Literal["deleted"] = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRecord:
    """Somebody stored, changed, read, searched or deleted something."""

    id: int
    at: datetime
    operation: str
    outcome: str
    memory_id: MemoryId | None = None
    detail: Mapping[str, str] = field(default_factory=dict[str, str])

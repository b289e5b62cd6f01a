"""Events, checkpoints and findings as c8e0383 stored them.

The recording has two workflows. The first one is paused after one of three tasks, with checkpoints of every type. The
second one has each of the 68 kinds of events: with its required fields, with all fields, and with each value of its
enumerations.
"""

import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest

from segue.journal import open_journal
from segue.model import codec
from segue.model.events import Event
from segue.model.ids import SessionId, WorkflowId
from segue.model.plan import TaskStatus
from segue.model.status import SessionStatus, WorkflowStatus
from tests import recordings
from tests.journal.workflows import TickingClock

PAUSED, EVERY_KIND = WorkflowId("workflow-2026-11-19-aaaaaa"), WorkflowId("workflow-2026-11-19-cccccc")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    recording = Path(recordings.__file__).with_name("journal-c8e0383.db.gz")
    (file := tmp_path / "segue.db").write_bytes(gzip.decompress(recording.read_bytes()))
    return file


@pytest.fixture
def stored(database: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(database)) as connection:
        yield connection


def test_every_recorded_event_is_encoded_to_the_bytes_it_was_read_from(stored: sqlite3.Connection) -> None:
    bodies = stored.execute("SELECT kind, body FROM events").fetchall()
    assert len(bodies) == 338
    # A text with half a surrogate pair was mended on its way in, by another encoder.
    mended = [body for _, body in bodies if "half a pair" in body]
    for kind, body in bodies:
        event = codec.decode_event(body)
        encoded = codec.encode_event(event).decode()
        assert event.kind == kind
        assert encoded == body if body not in mended else json.loads(encoded) == json.loads(body)
    assert len(mended) == 1


def test_every_kind_of_event_of_that_time_is_recorded_and_known(stored: sqlite3.Connection) -> None:
    recorded = {kind for (kind,) in stored.execute("SELECT kind FROM events")}
    assert len(recorded) == 68
    assert recorded <= {kind.__dataclass_fields__["kind"].default for kind in get_args(Event)}


def test_checkpoints_and_findings_are_encoded_to_the_bytes_they_were_read_from(stored: sqlite3.Connection) -> None:
    documents = stored.execute("SELECT type, document, findings FROM checkpoints").fetchall()
    assert len(documents) == 16
    assert len({kind for kind, _, _ in documents}) == 10
    for _, document, findings in documents:
        assert codec.encode_checkpoint(codec.decode_checkpoint(document)).decode() == document
        assert findings is None or codec.encode_findings(codec.decode_findings(findings)).decode() == findings
    assert sum(findings is not None for _, _, findings in documents) == 2


@pytest.mark.anyio
async def test_the_recorded_journal_opens_and_its_hash_chains_hold(database: Path) -> None:
    async with open_journal(f"sqlite:///{database}", TickingClock()) as journal:
        for workflow, events in ((PAUSED, 44), (EVERY_KIND, 294)):
            verdict = await journal.verify(workflow)
            assert (verdict.verified, verdict.events) == (True, events)
        assert len(await journal.checkpoints.snapshots(PAUSED)) == 6


@pytest.mark.anyio
async def test_the_recorded_journal_gives_the_state_that_it_gave(database: Path) -> None:
    async with open_journal(f"sqlite:///{database}", TickingClock()) as journal:
        paused = await journal.state(PAUSED)
        every = await journal.state(EVERY_KIND)
    assert paused.status is WorkflowStatus.PAUSED
    assert list(paused.tasks.values()) == [TaskStatus.COMPLETED, TaskStatus.PENDING, TaskStatus.PENDING]
    assert (paused.usage.context_tokens, paused.usage.tool_calls, paused.usage.turns) == (12_000, 2, 1)
    session = paused.session
    assert session is not None and session.status is SessionStatus.SUSPENDED
    assert list(session.calls) == ["call-2"]
    assert every.seq == 294
    assert (every.replans, len(every.judgements), len(every.failures), every.snapshots) == (2, 10, 2, 12)
    session = every.sessions[SessionId("session-2026-11-19-cccccc")]
    assert (session.status, session.runs, session.usage.turns) == (SessionStatus.CREATED, 12, 25)

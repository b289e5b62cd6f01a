"""A database of a server that queued its runs with DBOS and was killed: one run had ended, one was active, one queued.

The recording was made with revision c8e0383: three workflows with `agents_at_once=1`, copied with `VACUUM INTO`.
"""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from segue.model import events as e
from segue.model.status import WorkflowStatus
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

RECORDING = Path(__file__).parent.parent / "recordings" / "queued-with-dbos.db.gz"
SLUGS = ("come-first", "hold-the-place", "wait-for-it")
QUICK = "turns: [{do: [{say: Done.}]}]"


@pytest.fixture
def database(theatre: Theatre) -> Path:
    """The recording, with the workflows moved to the test's own repository."""
    path = theatre.root / "segue.db"
    path.write_bytes(gzip.decompress(RECORDING.read_bytes()))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "UPDATE workflows SET repository = ?, worktree = ? || slug",
            (str(theatre.repository), f"{theatre.root}/worktrees/"),
        )
        connection.commit()
    return path


def foreign_rows(database: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("SELECT workflow_uuid, status FROM workflow_status ORDER BY 1").fetchall()


async def test_it_opens_and_its_queued_run_goes_on_when_it_is_asked_for(theatre: Theatre, database: Path) -> None:
    before = foreign_rows(database)
    assert [status for _, status in before] == ["PENDING", "SUCCESS", "PENDING"]
    theatre.script.write_text(QUICK)
    async with theatre.open():
        workflows = {slug: await theatre.orchestrator.workflow(slug) for slug in SLUGS}
        assert {slug: view.status for slug, view in workflows.items()} == {
            "come-first": WorkflowStatus.COMPLETED,
            "hold-the-place": WorkflowStatus.PAUSED,
            "wait-for-it": WorkflowStatus.PENDING,
        }
        assert theatre.diary("started") == []
        await theatre.resume_until("wait-for-it", "completed")
        assert [each.outcome for each in await theatre.events("wait-for-it", e.RunEnded)] == [
            "not_started",
            "completed",
        ]
        for view in workflows.values():
            assert (await theatre.services.journal.verify(view.id)).problem is None
    assert len(theatre.diary("started")) == 1
    assert foreign_rows(database) == before

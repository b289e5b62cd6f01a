"""The second look at snapshots, and what can be had of one through the service."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from segue.model import events as e
from segue.model.errors import CheckpointNotFound, DatabaseTooNew
from segue.model.snapshots import GitChanges, MessagePage, Part
from segue.resume.handover import PARTS
from segue.snapshot.forms import session_form
from tests.orchestrator.races import failing, reading_two_messages_at_once
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

CHOICE = "I'll use a regular expression instead of a parser generator because the grammar is tiny."
TESTS = "def test_a(): pass\\ndef test_b(): assert False\\n"
PLAN = "[{id: a, title: Do A}, {id: b, title: Do B}, {id: c, title: Do C}]"
SCRIPT = f"""
turns:
  - match: Do A
    do:
      - say: "{CHOICE}"
      - write: {{path: test_it.py, content: "{TESTS}"}}
      - run: "{sys.executable} -m pytest -q -p no:cacheprovider test_it.py"
      - say: A is there.
      - wait_for: go
  - match: Do B
    do: [{{write: {{path: b.txt, content: "B"}}}}, {{say: B is there.}}, {{wait_for: go on}}]
"""


@asynccontextmanager
async def paused(theatre: Theatre) -> AsyncIterator[None]:
    """A workflow that stands between its first two tasks."""
    async with theatre.open():
        await theatre.begin(SCRIPT, plan=PLAN)
        await stop(theatre, "go")
        yield


async def stop(theatre: Theatre, signal: str, after: int = 0) -> None:
    await theatre.event("build-it", e.ToolFinished, after=after)
    await theatre.pause("build-it", "lunch")
    (worktree_of(theatre) / signal).touch()
    await theatre.until("build-it", "paused")


async def paused_again(theatre: Theatre) -> None:
    """After one more task."""
    head = (await theatre.orchestrator.workflow("build-it")).head
    await theatre.resume("build-it")
    await stop(theatre, "go on", head)


async def test_a_pause_is_followed_by_findings_and_an_exam_in_the_journal(theatre: Theatre, database_url: str) -> None:
    theatre.database_url = database_url
    async with paused(theatre):
        found = (await theatre.first("build-it", e.SnapshotStudied)).findings
        assert [(each.description, each.task_id) for each in found.decisions] == [(CHOICE, "a")]
        assert found.tests is not None
        assert (found.tests.phase, found.tests.passing, found.tests.failing) == ("red", 1, 1)
        assert found.exam is not None and 0 < found.exam.score <= 1
        (kept,) = await theatre.orchestrator.snapshots("build-it")
        assert kept.findings == found


async def test_looking_twice_writes_one_event(theatre: Theatre) -> None:
    async with paused(theatre):
        await theatre.event("build-it", e.SnapshotStudied)
        first = await theatre.orchestrator.snapshot("build-it", "latest")
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(theatre.orchestrator.snapshot, "build-it", "latest")
        assert await theatre.orchestrator.snapshot("build-it", first.checkpoint.id) == first
        assert len(await theatre.events("build-it", e.SnapshotStudied)) == 1


async def test_a_snapshot_whose_study_was_cut_off_is_studied_on_request(theatre: Theatre, database_url: str) -> None:
    theatre.database_url = database_url
    async with theatre.open():
        await theatre.begin(SCRIPT, plan=PLAN)
        await theatre.services.studying.acquire()  # nobody gets to look before the server is gone
        await stop(theatre, "go")
    async with theatre.open():
        (kept,) = await theatre.orchestrator.snapshots("build-it")
        assert (kept.findings, kept.checkpoint.reason, kept.checkpoint.tasks_completed) == (None, "lunch", 1)
        asked = await theatre.orchestrator.detailed_history("build-it", kept.checkpoint.id, Part.DECISIONS)
        assert isinstance(asked, tuple) and len(asked) == 1
        assert len(await theatre.events("build-it", e.SnapshotStudied)) == 1


async def test_a_failed_study_keeps_the_snapshot_and_says_so(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, "study", RuntimeError("out of paper"))
    async with paused(theatre):
        kept = await theatre.orchestrator.snapshot("build-it", "latest")
        assert kept.checkpoint.reason == "lunch"
        assert kept.findings is not None
        assert kept.findings.problem == "The second look at it failed: out of paper"
        assert await theatre.events("build-it", e.SnapshotStudied) == []


async def test_a_snapshot_is_made_from_the_state_it_was_taken_in(theatre: Theatre) -> None:
    async with paused(theatre):
        form = session_form(await theatre.orchestrator.snapshot("build-it", "latest"))
        assert form.task_dag.original_issue is not None
        assert form.task_dag.original_issue.title == "Build it"
        assert (form.tasks_completed, form.next_task_id, form.pause_reason) == (1, "b", "lunch")
        assert form.git_state is not None and "test_it.py" in form.git_state.files_modified
        assert form.usage.session_duration_seconds is not None


async def test_a_snapshot_tells_what_was_committed_from_what_was_not(opened: Theatre) -> None:
    commit = "git add . && git -c user.name=a -c user.email=a@b commit -qm A"
    await opened.begin(f"turns: [{{match: Do A, do: [{{touch: a.txt}}, {{run: {commit}}}, {{wait_for: go}}]}}]")
    await stop(opened, "go", after=(await opened.event("build-it", e.ToolFinished)).seq)
    git = (await opened.orchestrator.snapshot("build-it", "latest")).checkpoint.git
    assert git is not None
    assert [each.path for each in git.committed] == ["a.txt"]
    assert [each.path for each in git.changes] == ["go"]


async def test_findings_of_a_newer_segue_are_refused(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    async with paused(theatre):
        await theatre.orchestrator.snapshot("build-it", "latest")
        monkeypatch.setattr("segue.journal.checkpoints.FINDINGS_VERSION", 0)
        with pytest.raises(DatabaseTooNew, match="written by a newer Segue"):
            await theatre.orchestrator.snapshots("build-it")


async def test_git_changes_are_those_of_the_snapshot_and_not_of_now(theatre: Theatre) -> None:
    async with paused(theatre):
        (worktree_of(theatre) / "later.txt").touch()
        changes = await theatre.orchestrator.detailed_history("build-it", "latest", Part.GIT_CHANGES)
        assert isinstance(changes, GitChanges)
        paths = [each.path for each in changes.uncommitted]
        assert "test_it.py" in paths and "later.txt" not in paths


async def test_messages_end_where_the_snapshot_was_taken_and_can_be_had_page_by_page(theatre: Theatre) -> None:
    async with paused(theatre):
        first = (await theatre.orchestrator.workflow("build-it")).last_snapshot
        await paused_again(theatre)

        async def told(name: str, page: MessagePage | None = None) -> list[Any]:
            found = await theatre.orchestrator.detailed_history("build-it", name, Part.MESSAGES, page)
            assert isinstance(found, tuple)
            return list(found)

        early, late = await told(str(first)), await told("latest")
        assert [(each.role, each.task_id) for each in early] == [("user", "a"), ("agent", None), ("agent", None)]
        assert [each.text for each in early[1:]] == [CHOICE, "A is there."]
        assert late[:3] == early
        assert [(each.role, each.task_id) for each in late[3:]] == [("user", "b"), ("agent", None)]
        page = await told("latest", MessagePage(limit=2))
        assert page == late[-2:]
        assert await told("latest", MessagePage(limit=2, before=page[0].seq)) == late[-4:-2]


async def test_long_conversations_are_read_in_several_goes(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    async with paused(theatre):
        whole = await theatre.orchestrator.detailed_history("build-it", "latest", Part.MESSAGES)
        reading_two_messages_at_once(monkeypatch)
        assert await theatre.orchestrator.detailed_history("build-it", "latest", Part.MESSAGES) == whole


async def test_two_snapshots_are_compared(theatre: Theatre) -> None:
    async with paused(theatre):
        with pytest.raises(CheckpointNotFound, match="one snapshot, and none before it"):
            await theatre.orchestrator.snapshot_diff("build-it", "previous", "latest")
        await paused_again(theatre)
        diff = await theatre.orchestrator.snapshot_diff("build-it", "previous", "latest")
        assert ("tasks", "~", "[b] Do B", "pending", "completed") in [
            (each.about, each.sign, each.name, each.before, each.after) for each in diff.changes
        ]
        assert ("files", "+", "b.txt") in [(each.about, each.sign, each.name) for each in diff.changes]


async def test_another_workflows_snapshot_is_not_this_ones(theatre: Theatre) -> None:
    async with paused(theatre):
        theirs = (await theatre.orchestrator.workflow("build-it")).last_snapshot
        await theatre.begin("turns: [{do: [{wait_for: never}]}]", title="Other")
        with pytest.raises(CheckpointNotFound, match="no snapshot yet"):
            await theatre.orchestrator.detailed_history("other", str(theirs), Part.DECISIONS)
        await theatre.cancel("other")


def test_every_part_that_a_successor_is_told_of_can_be_had() -> None:
    assert tuple(Part) == PARTS

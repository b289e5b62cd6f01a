"""The paths under /api that lead into snapshots.

A snapshot is named by its id, by the number it ends in (`003`), or by its place: `latest`, `previous`.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from segue.model.bounds import MOST
from segue.model.findings import Decision, ErrorRecord, ReviewerFeedback, TestState
from segue.model.snapshots import MESSAGES_SHOWN, GitChanges, History, Message, Page, Part, Snapshot
from segue.server.documents import SnapshotList, SnapshotSummary
from segue.server.routes import WithService
from segue.snapshot.compare import SnapshotDiff
from segue.snapshot.forms import CheckpointEnvelope, SessionSnapshot, checkpoint_form, session_form

api = APIRouter(prefix="/api/workflows/{name}/snapshots")
MOST_MESSAGES = 1_000

Form = Literal["whole", "session", "checkpoint"]
FORMS: dict[Form, Callable[[Snapshot], Snapshot | SessionSnapshot | CheckpointEnvelope]] = {
    "whole": lambda snapshot: snapshot,
    "session": session_form,
    "checkpoint": checkpoint_form,
}


@api.get("")
async def snapshots(name: str, service: WithService) -> SnapshotList:
    """The workflow's snapshots, newest first."""
    view = await service.workflow(name)
    found = await service.snapshots(name)
    return SnapshotList(workflow_id=view.id, snapshots=[SnapshotSummary.of(item) for item in found])


@api.get("/{snapshot_id}")
async def snapshot(
    name: str, snapshot_id: str, service: WithService, form: Form = "whole"
) -> Snapshot | SessionSnapshot | CheckpointEnvelope:
    """A snapshot: all that is stored (`form=whole`), as a session's state (`session`), or in short (`checkpoint`)."""
    return FORMS[form](await service.snapshot(name, snapshot_id))


@api.get("/{snapshot_id}/diff/{other_id}")
async def snapshot_diff(name: str, snapshot_id: str, other_id: str, service: WithService) -> SnapshotDiff:
    """What changed from one snapshot to another: tasks, decisions, errors, files, tests, usage."""
    return await service.snapshot_diff(name, snapshot_id, other_id)


@api.get("/{snapshot_id}/messages", response_model=list[Message])
async def snapshot_messages(
    name: str,
    snapshot_id: str,
    service: WithService,
    limit: Annotated[int, Query(ge=1, le=MOST_MESSAGES)] = MESSAGES_SHOWN,
    before: Annotated[int | None, Query(ge=1, le=MOST)] = None,
) -> History:
    """What was said up to the snapshot, the latest last; with `before`, what came before that event."""
    return await service.detailed_history(name, snapshot_id, Part.MESSAGES, Page(limit=limit, before=before))


PARTS: dict[Part, tuple[Any, str]] = {
    Part.DECISIONS: (list[Decision], "The decisions up to the snapshot, with those that were taken back."),
    Part.ERRORS: (list[ErrorRecord], "What went wrong up to the snapshot, and what became of it."),
    Part.GIT_CHANGES: (GitChanges, "What git said at the snapshot: branch, commits, files."),
    Part.REVIEWER_FEEDBACK: (list[ReviewerFeedback], "What reviewers said up to the snapshot."),
    Part.TESTS: (TestState | None, "Where the tests stood at the snapshot; null if none were run."),
}


def _reader(part: Part) -> Callable[..., Any]:
    async def read(name: str, snapshot_id: str, service: WithService) -> History:
        return await service.detailed_history(name, snapshot_id, part)

    return read


for _part, (_shape, _description) in PARTS.items():
    api.add_api_route(
        f"/{{snapshot_id}}/{_part}",
        _reader(_part),
        response_model=_shape,
        name=f"snapshot_{_part.replace('-', '_')}",
        description=_description,
    )

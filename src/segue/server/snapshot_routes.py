"""The routes of snapshots.

A snapshot is named by its id, by the number at its end (`003`), or by its position: `latest`, `previous`.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from segue.model.bounds import MOST
from segue.model.findings import Decision, ErrorRecord, ReviewerFeedback, TestState
from segue.model.snapshots import MESSAGES_SHOWN, GitChanges, History, Message, MessagePage, Part, Snapshot
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
    """List the workflow's snapshots, newest first."""
    view = await service.workflow(name)
    found = await service.snapshots(name)
    return SnapshotList(workflow_id=view.id, snapshots=[SnapshotSummary.of(item) for item in found])


@api.get("/{snapshot_id}")
async def snapshot(
    name: str, snapshot_id: str, service: WithService, form: Form = "whole"
) -> Snapshot | SessionSnapshot | CheckpointEnvelope:
    """Return a snapshot: complete (`form=whole`), as a session's state (`session`), or in short (`checkpoint`)."""
    return FORMS[form](await service.snapshot(name, snapshot_id))


@api.get("/{snapshot_id}/diff/{other_id}")
async def snapshot_diff(name: str, snapshot_id: str, other_id: str, service: WithService) -> SnapshotDiff:
    """Compare two snapshots: tasks, decisions, errors, files, tests, usage."""
    return await service.snapshot_diff(name, snapshot_id, other_id)


@api.get("/{snapshot_id}/messages", response_model=list[Message])
async def snapshot_messages(
    name: str,
    snapshot_id: str,
    service: WithService,
    limit: Annotated[int, Query(ge=1, le=MOST_MESSAGES)] = MESSAGES_SHOWN,
    before: Annotated[int | None, Query(ge=1, le=MOST)] = None,
) -> History:
    """Return the last messages up to the snapshot, the latest last; with `before`, those before that event."""
    return await service.detailed_history(name, snapshot_id, Part.MESSAGES, MessagePage(limit=limit, before=before))


PARTS: dict[Part, tuple[Any, str]] = {
    Part.DECISIONS: (list[Decision], "Decisions up to the snapshot, withdrawn ones included."),
    Part.ERRORS: (list[ErrorRecord], "Errors up to the snapshot, with their outcomes."),
    Part.GIT_CHANGES: (GitChanges, "State of git at the snapshot: branch, commits, files."),
    Part.REVIEWER_FEEDBACK: (list[ReviewerFeedback], "Comments of reviewers up to the snapshot."),
    Part.TESTS: (TestState | None, "Test results at the snapshot; null if no tests were run."),
}


def _reader(part: Part) -> Callable[..., Any]:
    """Return the function of a route that answers with this part of a snapshot."""

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

"""Queries of snapshots: whole, one part, or a comparison of two."""

import logging
from collections.abc import Callable, Mapping, Sequence

from segue.model.checkpoint import Checkpoint
from segue.model.errors import CheckpointNotFound
from segue.model.events import PromptSent, Record, Stretch
from segue.model.findings import Findings
from segue.model.ids import NOTHING_SEEN, CheckpointId, Seq
from segue.model.snapshots import History, Message, MessagePage, Part, Snapshot
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.runtime.snapshot_studies import findings
from segue.snapshot.compare import SnapshotDiff, compare
from segue.snapshot.forms import git_changes
from segue.snapshot.messages import KINDS, messages

log = logging.getLogger("segue")

PLACES = {"latest": 0, "previous": 1}
MOST_READ = 500
"""Events that one query reads in the search for messages."""
FOUND: Mapping[Part, Callable[[Findings], History]] = {
    Part.DECISIONS: lambda found: found.decisions,
    Part.ERRORS: lambda found: found.errors,
    Part.REVIEWER_FEEDBACK: lambda found: found.feedback,
    Part.TESTS: lambda found: found.tests,
}


async def snapshots(services: RuntimeServices, name: str) -> list[Snapshot]:
    """Return the workflow's snapshots, newest first, with the findings of those that were studied; study none."""
    workflow = await services.journal.workflows.get(name)
    known = await services.journal.checkpoints.all_findings(workflow.id)
    return [
        Snapshot(checkpoint=each, findings=known.get(each.id))
        for each in await services.journal.checkpoints.snapshots(workflow.id)
    ]


async def snapshot(services: RuntimeServices, name: str, wanted: str) -> Snapshot:
    """Return one snapshot with its findings; study it now if that is not done yet."""
    checkpoint = await _named(services, name, wanted)
    return Snapshot(checkpoint=checkpoint, findings=await _studied(services, checkpoint))


async def difference(services: RuntimeServices, name: str, before: str, after: str) -> SnapshotDiff:
    """Compare two snapshots, each named as `snapshot` takes it."""
    return compare(await snapshot(services, name, before), await snapshot(services, name, after))


async def detailed_history(
    services: RuntimeServices, name: str, wanted: str, category: Part, page: MessagePage
) -> History:
    """Return one part of a snapshot in full; only messages come in pages."""
    checkpoint = await _named(services, name, wanted)
    match category:
        case Part.GIT_CHANGES:
            return git_changes(checkpoint)
        case Part.MESSAGES:
            return await _messages(services, checkpoint, page)
        case _:
            return FOUND[category](await _studied(services, checkpoint))


async def _studied(services: RuntimeServices, checkpoint: Checkpoint) -> Findings:
    """Return the findings of a snapshot; if its study fails, log that and return findings with only the problem."""
    try:
        return await findings(services, checkpoint)
    except Exception as error:  # the snapshot is complete without findings, and can be studied again
        log.exception("snapshot %s could not be studied", checkpoint.id)
        return Findings(checkpoint_id=checkpoint.id, problem=f"The second look at it failed: {error}")


# ── choosing one ────────────────────────────────────────────────────────────────────────────────────


async def _named(services: RuntimeServices, name: str, wanted: str) -> Checkpoint:
    """Return the workflow's checkpoint that this name means; raise CheckpointNotFound if there is none."""
    workflow = await services.journal.workflows.get(name)
    ids = await services.journal.checkpoints.snapshot_ids(workflow.id)
    return await services.journal.checkpoints.get(workflow.id, meant(ids, wanted))


def meant(ids: Sequence[CheckpointId], wanted: str) -> CheckpointId:
    """Return the one of these ids, newest first, that is named as latest or previous, by id, or by its final number;
    raise CheckpointNotFound if there is none."""
    if not ids:
        raise CheckpointNotFound("This workflow has no snapshot yet.", hint="A pause makes one: segue pause")
    if wanted in PLACES:
        if PLACES[wanted] >= len(ids):
            raise CheckpointNotFound("This workflow has one snapshot, and none before it.")
        return ids[PLACES[wanted]]
    for each in ids:
        if wanted in (each, number := each.rpartition("-")[2], number.lstrip("0")):
            return each
    raise CheckpointNotFound(
        f"This workflow has no snapshot {wanted!r}.", hint="`segue snapshots list` lists those it has."
    )


# ── messages ────────────────────────────────────────────────────────────────────────────────────────


async def _messages(services: RuntimeServices, checkpoint: Checkpoint, page: MessagePage) -> tuple[Message, ...]:
    """Return the last `page.limit` messages up to the page's start and the snapshot. One more is read, so that the
    first is complete."""
    before = checkpoint.after + 1 if page.before is None else min(page.before, checkpoint.after + 1)
    records: list[Record] = []
    while True:
        stretch = Stretch(NOTHING_SEEN, Seq(before - 1))
        older = await services.journal.last_records(checkpoint.workflow_id, KINDS, limit=MOST_READ, within=stretch)
        records = [*reversed(older), *records]
        sent = [record.event.prompt_id for record in records if isinstance(record.event, PromptSent)]
        told = messages(records, await services.journal.prompts.all_queued(sent))
        if len(older) < MOST_READ or len(told) > page.limit:
            return told[-page.limit :]
        before = records[0].seq

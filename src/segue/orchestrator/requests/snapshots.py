"""Looking into snapshots: whole, part by part, and one against another."""

import logging
from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import Connection

from segue.journal.reading import all_findings, last_records, queued_prompt, snapshot_ids
from segue.model.checkpoint import Checkpoint
from segue.model.errors import CheckpointNotFound
from segue.model.events import PromptQueued, PromptSent, Record, Stretch
from segue.model.findings import Findings
from segue.model.ids import NOTHING_SEEN, CheckpointId, PromptId, Seq
from segue.model.snapshots import History, Message, Page, Part, Snapshot
from segue.orchestrator.runtime.house import House
from segue.orchestrator.runtime.studies import findings
from segue.snapshot.compare import SnapshotDiff, compare
from segue.snapshot.forms import git_changes
from segue.snapshot.messages import KINDS, messages

log = logging.getLogger("segue")

PLACES = {"latest": 0, "previous": 1}
MOST_READ = 500
"""Events that are read at a time when messages are looked for."""
FOUND: Mapping[Part, Callable[[Findings], History]] = {
    Part.DECISIONS: lambda found: found.decisions,
    Part.ERRORS: lambda found: found.errors,
    Part.REVIEWER_FEEDBACK: lambda found: found.feedback,
    Part.TESTS: lambda found: found.tests,
}


async def snapshots(house: House, name: str) -> list[Snapshot]:
    """Newest first; nobody takes a second look only for a list."""
    workflow = await house.journal.workflow(name)
    known = await house.journal.read(lambda c: all_findings(c, workflow.id))
    return [
        Snapshot(checkpoint=each, findings=known.get(each.id)) for each in await house.journal.snapshots(workflow.id)
    ]


async def snapshot(house: House, name: str, wanted: str) -> Snapshot:
    """Everything about one, looked at again if nobody has."""
    checkpoint = await _named(house, name, wanted)
    return Snapshot(checkpoint=checkpoint, findings=await _studied(house, checkpoint))


async def difference(house: House, name: str, before: str, after: str) -> SnapshotDiff:
    return compare(await snapshot(house, name, before), await snapshot(house, name, after))


async def detailed_history(house: House, name: str, wanted: str, category: Part, page: Page) -> History:
    """One part of a snapshot in full, for a successor that wants to know more."""
    checkpoint = await _named(house, name, wanted)
    match category:
        case Part.GIT_CHANGES:
            return git_changes(checkpoint)
        case Part.MESSAGES:
            return await house.journal.read(lambda c: _messages(c, checkpoint, page))
        case _:
            return FOUND[category](await _studied(house, checkpoint))


async def _studied(house: House, checkpoint: Checkpoint) -> Findings:
    try:
        return await findings(house, checkpoint)
    except Exception as error:  # the snapshot is whole without it, and the look can be taken again
        log.exception("snapshot %s could not be studied", checkpoint.id)
        return Findings(checkpoint_id=checkpoint.id, problem=f"The second look at it failed: {error}")


# ── which one ───────────────────────────────────────────────────────────────────────────────────────


async def _named(house: House, name: str, wanted: str) -> Checkpoint:
    workflow = await house.journal.workflow(name)
    ids = await house.journal.read(lambda c: snapshot_ids(c, workflow.id))
    return await house.journal.checkpoint(workflow.id, meant(ids, wanted))


def meant(ids: Sequence[CheckpointId], wanted: str) -> CheckpointId:
    """The one of these, newest first, that is named by its id, by the number it ends in, or by its place."""
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


def _messages(connection: Connection, checkpoint: Checkpoint, page: Page) -> tuple[Message, ...]:
    """The last ones up to the snapshot. One more is looked for, so that the first is not a torn-off end of one."""
    before = checkpoint.after + 1 if page.before is None else min(page.before, checkpoint.after + 1)
    records: list[Record] = []
    while True:
        older = last_records(
            connection, checkpoint.workflow_id, KINDS, MOST_READ, Stretch(NOTHING_SEEN, Seq(before - 1))
        )
        records = [*reversed(older), *records]
        told = messages(records, _words(connection, records))
        if len(older) < MOST_READ or len(told) > page.limit:
            return told[-page.limit :]
        before = records[0].seq


def _words(connection: Connection, records: Sequence[Record]) -> dict[PromptId, PromptQueued]:
    sent = [record.event.prompt_id for record in records if isinstance(record.event, PromptSent)]
    return {prompt_id: queued_prompt(connection, prompt_id) for prompt_id in sent}

"""Periodic checkpoints, and a snapshot before compaction."""

import logging
from dataclasses import replace

from segue.journal import Transaction
from segue.memory import Memory
from segue.model.checkpoint import Checkpoint, CheckpointType
from segue.model.crash import crash_point
from segue.model.errors import SegueError
from segue.model.events import ContextRefreshed, Warned
from segue.model.findings import Findings
from segue.model.ids import checkpoint_id
from segue.model.status import Trigger
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.settling.recovery import write_checkpoint
from segue.protocol.capacity import Reached, Refresh
from segue.snapshot.findings import decisions_of, errors_of, tests_of
from segue.snapshot.gather import Occasion, Place, make_checkpoint

log = logging.getLogger("segue")


async def refresh(lease: Lease, due: Refresh) -> None:
    """Write a checkpoint and a memory entry; no model is called, and the conversation stays as it is.

    The entry is stored first: a crash in between leaves the entry, and the interrupted work gets a checkpoint anyway.
    """
    checkpoint = await _draft(lease, due)
    memory_id = await _memorize(lease, checkpoint)
    crash_point("refresh.memorized")

    def keep(t: Transaction) -> None:
        kept = replace(checkpoint, id=t.checkpoints.next_id(), after=t.head)
        t.checkpoints.save(kept, lease.number)
        event = ContextRefreshed(new_tokens=due.new_tokens, checkpoint_id=kept.id, memory_id=memory_id)
        t.append(event, session_id=lease.session_id, run=lease.number)

    await lease.write("context.refresh", keep)
    log.info("[segue] Context refresh complete (tokens_flushed=%d)", due.new_tokens)


async def _draft(lease: Lease, due: Refresh) -> Checkpoint:
    """Save the worktree's files and build a checkpoint of the present state, with the id that is next; nothing is
    journalled."""
    state, workspace = await lease.gather()
    row = await lease.services.journal.workflows.get(lease.workflow_id)
    session = await lease.services.journal.sessions.get(lease.session_id)
    now = lease.services.clock.now()
    place = Place(
        # Only the owner of the run writes checkpoints, so the id is known in advance.
        id=checkpoint_id(now, row.checkpoint_count + 1),
        workflow_id=row.id,
        session_id=lease.session_id,
        at=now,
        after=state.seq,
        session_began=session.created_at,
    )
    occasion = Occasion(
        type=CheckpointType.CONTEXT_REFRESH,
        trigger=Trigger.EXHAUSTION,
        reason=f"{due.new_tokens:,} tokens are new in the conversation",
        snapshot=False,
        clean_boundary=False,
    )
    return make_checkpoint(place, occasion, state, list(state.tasks.items()), workspace)


async def _memorize(lease: Lease, checkpoint: Checkpoint) -> str | None:
    """Store a memory entry of the work up to the checkpoint and return its id; None, with a warning, if that fails."""
    digest, calendar = await lease.services.facts.facts_at(checkpoint)
    facts = digest.facts
    findings = Findings(
        checkpoint_id=checkpoint.id,
        tests=tests_of(facts, calendar),
        decisions=decisions_of(facts, calendar),
        errors=errors_of(facts, calendar),
    )
    try:
        return (await Memory(lease.services.journal).memorize_checkpoint(checkpoint, findings)).memory.id
    except SegueError as error:
        warning = Warned(code="not_memorized", message=f"The work so far was not memorized: {error.message}")
        await lease.transact(lambda t: t.append(warning, session_id=lease.session_id, run=lease.number))
        return None


async def save_before_compaction(lease: Lease, reached: Reached) -> None:
    """Write a snapshot while the agent still has its whole conversation, and queue the workflow for a study of it."""
    state, workspace = await lease.gather()
    occasion = Occasion(
        type=CheckpointType.BEFORE_COMPACTION,
        trigger=Trigger.EXHAUSTION,
        reason=f"the agent may soon summarise its conversation. {reached.sentence}",
        snapshot=True,
        clean_boundary=False,
    )
    await lease.write(
        "compaction.ahead",
        lambda t: write_checkpoint(t, lease.session_id, lease.number, occasion, t.catch_up(state), workspace),
    )
    lease.services.unstudied.put_nowait(lease.workflow_id)

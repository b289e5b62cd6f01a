"""Studies of snapshots: decisions, errors, and the exam of a successor's context."""

import logging
from dataclasses import replace

from segue.model.checkpoint import Checkpoint
from segue.model.findings import Findings
from segue.model.ids import WorkflowId
from segue.orchestrator.runtime.contexts import Present, compile_facts, handover_of, with_own_tests
from segue.orchestrator.runtime.extraction import extract
from segue.orchestrator.runtime.facts_cache import Digest
from segue.orchestrator.runtime.services import RuntimeServices
from segue.resume.budget import budget_for
from segue.snapshot.extraction import KINDS
from segue.snapshot.findings import decisions_of, errors_of, reviews_of, tests_of

log = logging.getLogger("segue")


async def study_forever(services: RuntimeServices) -> None:
    """Study the last snapshot of each workflow that is queued for it, until cancelled; errors are logged."""
    while True:
        workflow_id = await services.unstudied.get()
        try:
            await study_latest(services, workflow_id)
        except Exception:  # one failed study must not end the others; it is repeated on demand
            log.exception("the last snapshot of %s could not be studied", workflow_id)
        finally:
            services.unstudied.task_done()


async def study_latest(services: RuntimeServices, workflow_id: WorkflowId) -> None:
    """Study the workflow's last snapshot by rule, and by a model or the agent's report where switched on; do nothing
    without one."""
    for checkpoint in await services.journal.checkpoints.snapshots(workflow_id, limit=1):
        await _extract(services, checkpoint, await findings(services, checkpoint))


async def _extract(services: RuntimeServices, checkpoint: Checkpoint, found: Findings) -> None:
    """Add a model's or the agent's findings to a snapshot's, once, and store them; do nothing where only rules are
    wanted."""
    extraction, workflow_id = services.rules.extraction, checkpoint.workflow_id
    if extraction.by == "rules" or found.spending.calls or found.problem:
        return
    aside = (await services.journal.state(workflow_id)).helpers
    records = await services.journal.last_records(workflow_id, KINDS, aside=aside)
    more = await extract(found, [record for record in records[::-1] if record.seq <= checkpoint.after], extraction)
    if more != found:
        await services.journal.transact(workflow_id, lambda t: t.checkpoints.save_findings(more, checkpoint.session_id))


async def findings(services: RuntimeServices, checkpoint: Checkpoint) -> Findings:
    """Return the stored findings of a snapshot; if there are none, study it now by rule and store the result."""
    workflow_id = checkpoint.workflow_id
    async with services.studying:
        known = await services.journal.checkpoints.findings(workflow_id, checkpoint.id)
        if known is not None:
            return known
        found = await _study(services, checkpoint)
        await services.journal.transact(
            workflow_id, lambda t: t.checkpoints.save_findings(found, checkpoint.session_id)
        )
        return found


async def _study(services: RuntimeServices, checkpoint: Checkpoint) -> Findings:
    """Collect a snapshot's tests, decisions, errors and reviews by rule, with the exam of its context; nothing is
    stored."""
    digest, calendar = await services.facts.facts_at(checkpoint)
    facts = digest.facts
    judged = await services.facts.judgements_at(checkpoint)
    found = Findings(
        checkpoint_id=checkpoint.id,
        # Segue's own test runs cover everything, and know the failures that the plan expects.
        tests=judged.tests.tests if judged.tests else tests_of(facts, calendar),
        decisions=decisions_of(facts, calendar),
        errors=errors_of(facts, calendar),
        feedback=tuple(each.feedback for each in judged.reviews),
    )
    return await _examined(services, checkpoint, replace(digest, facts=with_own_tests(facts, judged)), found)


async def _examined(services: RuntimeServices, checkpoint: Checkpoint, digest: Digest, found: Findings) -> Findings:
    """Return the findings with the exam of the context that this snapshot gives."""
    state = await services.journal.state(checkpoint.workflow_id)
    present = Present(git=checkpoint.git, at=checkpoint.created_at)
    handover = handover_of(state, checkpoint.workflow_id, checkpoint, present, services.rules.lengths)
    handover = replace(
        handover,
        session_number=checkpoint.session_number,
        divergence=(),
        tasks=checkpoint.tasks,
        current_task=checkpoint.current_task,
        next_task=checkpoint.next_task,
        feedback=tuple(reviews_of(found.feedback)),
    )
    budget = services.rules.context_budget or budget_for(state.usage.window)
    compiled = await compile_facts(digest.facts, handover, budget, digest.evidence)
    return replace(found, exam=compiled.exam)

"""The conversation and the files that a fork comes from."""

from segue.orchestrator.runtime.services import RuntimeServices
from segue.resume.planner import Original
from segue.state.fold import WorkflowState


async def original(services: RuntimeServices, state: WorkflowState) -> Original | None:
    """Return the conversation that a fork comes from, or None for other workflows."""
    origin = state.forked_from
    if origin is None:
        return None
    there = (await services.journal.state(origin.workflow_id)).sessions[origin.session_id]
    checkpoint = await services.journal.checkpoints.get(origin.workflow_id, origin.checkpoint_id)
    return Original(
        session=there,
        clean=checkpoint.clean_boundary,
        moved=there.last_prompted > origin.after,
        bookmark=checkpoint.bookmark,
        tokens=checkpoint.usage.context_tokens,
    )

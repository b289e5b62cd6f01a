"""Choices of a new workflow: from the request, then the environment, the repository, and the user's settings."""

from dataclasses import replace

from anyio.to_thread import run_sync

from segue.model.agents import Choices
from segue.model.requests import RunRequest
from segue.model.work_settings import DEFAULTS, WorkSettings, choices_of
from segue.settings import Settings, work_in, work_of_repository


async def choices_for(request: RunRequest, own: Settings, spoken: WorkSettings) -> tuple[str, Choices]:
    """Choose the agent and the choices of a workflow; `spoken` are those of the server's own environment variables.
    The caller's variables have precedence over the server's. The repository's files are read once, here: later
    changes of them do not affect this workflow."""
    first = request.said.over(work_in(request.environment)).over(spoken)
    repository = await run_sync(work_of_repository, request.repository)
    work = first.over(repository).over(own).over(DEFAULTS)
    assert work.agent is not None
    choices = choices_of(work, request.choices.of_the_conversation)
    return work.agent, replace(choices, from_repository=repository.without(first).lines)

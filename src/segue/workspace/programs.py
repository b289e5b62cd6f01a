"""Programs on the user's PATH."""

import os
import shutil
from collections.abc import Mapping

from segue.model.agents import AgentConfiguration
from segue.model.errors import AgentMissing


def require_program_of(agent: AgentConfiguration, environment: Mapping[str, str]) -> None:
    """Raise AgentMissing if the agent's program is not on this PATH; an agent in a container is not checked."""
    if agent.container is None:
        require_program(agent.program, environment, hint=agent.install)


def require_program(program: str, environment: Mapping[str, str], hint: str = "") -> str:
    """Return the path of a program on the caller's PATH, which may differ from ours; raise AgentMissing if it is not
    found."""
    found = shutil.which(program, path=environment.get("PATH", os.defpath))
    if found is None:
        raise AgentMissing(
            f"The program {program!r} was not found.",
            hint=f"Install it{f' ({hint})' if hint else ''}, or put the directory it is in on your PATH.",
        )
    return found

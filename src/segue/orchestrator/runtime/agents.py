"""The configured agents: their programs on this machine, and what those report."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

from segue import drivers
from segue.drivers import Capabilities, Introduction, Launch
from segue.drivers.environment import variables_for
from segue.journal.rows import WorkflowRow
from segue.model.agents import AgentConfiguration, Choices
from segue.model.codec import decode
from segue.model.errors import BadInput, BadSettings, SegueError, UnknownAgent
from segue.model.requests import SuccessorRequest
from segue.model.views import AgentCheck, AgentView
from segue.model.work_settings import OFF, SAME
from segue.orchestrator.runtime.containers import engine_of
from segue.orchestrator.runtime.services import RuntimeServices
from segue.workspace.programs import require_program_of


def agent_named(services: RuntimeServices, name: str) -> AgentConfiguration:
    """Return the configuration of this agent; raise UnknownAgent with the known names if there is none."""
    if name not in services.agents:
        known = f"Known agents: {', '.join(sorted(services.agents))}."
        hint = f"{known} A server that runs has read its settings when it started: after a change, `segue down` first."
        raise UnknownAgent(f"No agent is called {name!r}.", hint=hint)
    return services.agents[name]


def require(agent: AgentConfiguration, environment: Mapping[str, str]) -> None:
    """Raise if the agent cannot be started here: its driver, its container support or its program is missing. Start
    nothing."""
    drivers.load(agent.driver)
    if agent.container is not None:
        drivers.require_containers(agent.driver)
    require_program_of(agent, environment)


def helpers(services: RuntimeServices, choices: Choices) -> list[AgentConfiguration]:
    """Return the agents that are chosen to review or to fix; none for `off` and for the writer's own agent."""
    named = [choices.review.agent if choices.review else OFF, choices.fixer]
    return [agent_named(services, name) for name in named if name not in (OFF, SAME)]


def fixer_of(services: RuntimeServices, row: WorkflowRow) -> AgentConfiguration | None:
    """Return the agent that is asked for advice; None if it is off, not configured, or only works (plans = false)."""
    chosen = decode(Choices, row.choices).fixer
    fixer = None if chosen == OFF else services.agents.get(row.agent if chosen == SAME else chosen)
    return fixer if fixer is not None and fixer.plans else None


def choices_for(request: SuccessorRequest, row: WorkflowRow) -> Choices | None:
    """Return the choices for an agent that takes over, None if the same goes on.

    Tools are kept; a model and a mode have a meaning for one agent only.
    """
    if request.agent not in (None, row.agent):
        return replace(decode(Choices, row.choices), model=request.model, mode=request.mode)
    if request.model or request.mode:
        raise BadInput(
            f"{row.agent} is at work on this already, and keeps the model and mode it began with.",
            hint="Leave --model and --mode away, or name another agent.",
        )
    return None


def agents(services: RuntimeServices, environment: Mapping[str, str]) -> list[AgentView]:
    """List all agents with their programs on the given PATH, without starting any."""
    return [_view(agent, environment) for agent in services.agents.values()]


async def check(services: RuntimeServices, name: str, environment: Mapping[str, str]) -> AgentCheck:
    """Start the agent's program, let it introduce itself, end it, and return the result; problems are in it, not
    raised. No conversation is opened, no model called. An unknown name is raised."""
    agent = agent_named(services, name)
    view = _view(agent, environment)
    try:
        driver = drivers.load(agent.driver)
        if agent.container is not None:
            drivers.require_containers(agent.driver)
    except SegueError as error:
        return AgentCheck(agent=view, ok=False, problem=error.message, hint=error.hint)
    if view.program is None:
        hint = f"Install it: {agent.install}" if agent.install else "Install it, or set its command in segue.toml."
        return AgentCheck(agent=view, ok=False, problem=f"The program {agent.program} was not found.", hint=hint)
    try:
        # A container must not have the user's whole home in it for that.
        with TemporaryDirectory(prefix="check-", dir=services.home) as empty:
            place = Path(empty) if agent.container else Path(environment.get("HOME", "/"))
            introduction = await driver.introduce(_launch(services, agent, environment, place))
    except SegueError as error:
        return AgentCheck(agent=view, ok=False, problem=error.message, hint=error.hint)
    return _checked(agent, view, introduction)


def _launch(
    services: RuntimeServices, agent: AgentConfiguration, environment: Mapping[str, str], directory: Path
) -> Launch:
    """Build a launch for the check of an agent, in this directory and under a random execution id."""
    return Launch(
        command=agent.command,
        directory=directory,
        environment=variables_for(agent, environment),
        execution=f"check-{token_hex(6)}",
        handshake_timeout=services.rules.handshake_timeout,
        container=agent.container,
        engine=engine_of(services) if agent.container else "",
    )


def _checked(agent: AgentConfiguration, view: AgentView, introduction: Introduction) -> AgentCheck:
    """Build the result of a check that succeeded, from the agent's introduction."""
    login = f"If it asks you to log in: {agent.login}" if agent.login else ""
    return AgentCheck(
        agent=view,
        ok=True,
        version=introduction.version,
        reported=introduction.name,
        capabilities=introduction.capabilities.names(),
        logins=introduction.logins,
        resume=_way(agent, introduction.capabilities),
        hint=login,
    )


def _view(agent: AgentConfiguration, environment: Mapping[str, str]) -> AgentView:
    """Build the view of an agent; `program` is None if it is not found, or its driver cannot be used."""
    found = shutil.which(agent.program, path=environment.get("PATH", os.defpath))
    if agent.container is not None:
        found = f"in the image {agent.container.image}"
    problem = _problem(agent)
    return AgentView(
        name=agent.name,
        driver=agent.driver,
        command=agent.command,
        program=None if problem or drivers.missing(agent.driver) else found,
        problem=problem,
        resume=_way(agent, None),
        install=agent.install,
        login=agent.login,
    )


def _problem(agent: AgentConfiguration) -> str:
    """Return the problem of a user's own driver, or an empty string; built-in drivers are not imported for that."""
    if agent.driver in drivers.DRIVERS:
        return ""
    try:
        drivers.load(agent.driver)
    except BadSettings as error:
        return error.message
    return ""


def _way(agent: AgentConfiguration, capabilities: Capabilities | None) -> str:
    """Describe how a conversation comes back, by the agent's own report, or by its configuration where
    `capabilities` is None."""
    other = "a new conversation begins with a compiled context"
    if not agent.native_resume:
        return f"{other}; its own way back was seen to lose conversations"
    if capabilities is None:
        return f"natively, if it says that it can; else {other}"
    if not capabilities.native:
        return f"{other}; it says that it cannot go back to a conversation"
    return f"natively, by session/{'resume' if capabilities.resume else 'load'}"

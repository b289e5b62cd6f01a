"""An agent that has started: its journal event, and its process record."""

from segue.drivers import Agent
from segue.journal import Process
from segue.model.events import AgentStarted
from segue.model.ids import AttemptId
from segue.workspace.processes import identity


def started_of(agent: Agent, execution: AttemptId, *, resumed: bool) -> AgentStarted:
    return AgentStarted(
        name=agent.name,
        version=agent.version,
        pid=agent.pid,
        guardian_pid=agent.guardian_pid,
        execution=execution,
        resumed=resumed,
        capabilities=agent.capabilities.names(),
    )


def process_of(agent: Agent, execution: AttemptId, container: str | None = None) -> Process:
    known = identity(agent.pid)
    return Process(
        execution=execution,
        pid=agent.pid,
        pid_started=str(known.started) if known else None,
        guardian_pid=agent.guardian_pid,
        machine_boot=known.boot if known else None,
        container=container,
    )

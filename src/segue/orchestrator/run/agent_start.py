"""Start of a run's agent: a new one, or one that goes back to its conversation."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from segue.drivers import Agent, Driver, Launch, Left
from segue.drivers.environment import variables_for
from segue.journal import Journal, Process
from segue.model.agents import AgentConfiguration, Choices
from segue.model.codec import decode
from segue.model.conversations import ConversationKey, ConversationSummary, EntryPage
from segue.model.crash import crash_point
from segue.model.errors import AgentError, TokenRejected, TransportLost
from segue.model.events import AgentStarted, JsonObject, Warned, WayChanged
from segue.model.ids import AttemptId
from segue.model.status import Carrying, Failure, Way
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.runtime import containers, fork_origins
from segue.resume.planner import Original
from segue.workspace.processes import identity

UNCOPIED = frozenset(
    {
        Failure.TOKEN_REJECTED,
        Failure.OTHER_CONVERSATION,
        Failure.TRANSCRIPT_CORRUPT,
        Failure.HANDSHAKE_FAILED,
        Failure.NOT_RESTORED,
        Failure.OTHER,
    }
)
"""Failures to copy a conversation after which the agent may well begin another."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """Store of an agent's conversations in the journal's database, beside the events."""

    journal: Journal
    recorder: Recorder

    async def keep(self, key: ConversationKey, entries: Sequence[JsonObject]) -> None:
        now, session_id = self.journal.clock.now(), self.recorder.session_id
        await self.journal.conversations.add(key, entries, session_id, now)

    async def read(self, key: ConversationKey, after: int = 0) -> EntryPage:
        return await self.journal.conversations.page(key, after)

    async def find(self, *, project: str | None = None, conversation: str | None = None) -> list[ConversationSummary]:
        return await self.journal.conversations.find(project, conversation)

    async def warn(self, message: str) -> None:
        await self.recorder.record(Warned(code="conversation_copy", message=message))


def launch_for(lease: Lease, agent: AgentConfiguration, environment: Mapping[str, str], recorder: Recorder) -> Launch:
    """Build the launch of the run's agent."""
    services, choices = lease.services, decode(Choices, lease.workflow.choices)
    return Launch(
        command=agent.command,
        directory=Path(lease.workflow.worktree),
        environment=variables_for(agent, environment, choices.variables),
        execution=lease.attempt,
        handshake_timeout=services.rules.handshake_timeout,
        mode=choices.mode or agent.modes.get(lease.workflow.permissions),
        model=choices.model,
        mcp_servers=choices.mcp_servers,
        serves=agent.serves,
        counts_since_start=agent.counts_since_start,
        keeper=Keeper(services.journal, recorder) if agent.keep_conversations else None,
        container=agent.container,
        engine=containers.engine_of(services) if agent.container else "",
        now=services.clock.now,
    )


async def agent_to_join(lease: Lease, way: Way) -> Left | None:
    """Return the agent that is to be joined again; on every other way, end the containers that are left over."""
    if way is not Way.REATTACH:
        await containers.end_all(lease.services, lease.workflow_id)
        return None
    left = await containers.left(lease.services, lease.workflow_id, lease.session_id)
    if left is None:
        raise TransportLost("The container that the agent was in does not run any more.")
    return left


async def open_agent(
    stack: AsyncExitStack, lease: Lease, driver: Driver, way: Way, launch: Launch, left: Left | None
) -> tuple[Agent, Way]:
    """Open the agent on the planned way; return it with the way that was taken in fact.

    A fork whose conversation cannot be copied begins a new conversation with a compiled context.
    """
    if left is not None and lease.token is not None:
        return await stack.enter_async_context(driver.reattach(launch, lease.token, left)), way
    if way is Way.FORK:
        try:
            return await stack.enter_async_context(_copied(lease, driver, launch)), way
        except AgentError as error:
            if error.failure not in UNCOPIED:
                raise
            way = Way.CONTEXT
            changed = WayChanged(before=Way.FORK, after=way, reason=error.message)
        await lease.transact(lambda t: t.runs.change_way(lease.session_id, lease.number, changed, Carrying.NEEDED))
    if way is Way.NATIVE and lease.token is not None:
        return await stack.enter_async_context(driver.resume(launch, lease.token)), way
    return await stack.enter_async_context(driver.start(launch)), way


@asynccontextmanager
async def _copied(lease: Lease, driver: Driver, launch: Launch) -> AsyncGenerator[Agent]:
    """Copy the original's conversation up to the snapshot into a new agent."""
    original = await _original(lease)
    token, at = original.session.token, original.bookmark
    if token is None:
        raise TokenRejected("The original has no conversation any more.")
    # Drivers whose agents know no bookmarks need not take one.
    async with driver.fork(launch, token, at) if at else driver.fork(launch, token) as agent:
        if at is None and (await _original(lease)).moved:
            raise TokenRejected("The original's conversation went on before it was copied.")
        crash_point("fork.copied")
        yield agent


async def _original(lease: Lease) -> Original:
    journal = lease.services.journal
    original = await fork_origins.original(lease.services, await journal.state(lease.workflow_id))
    assert original is not None, "only a fork is queued to begin with a copy"
    return original


async def container_of(lease: Lease, agent: AgentConfiguration, way: Way) -> str | None:
    """Return the name of the agent's container; an agent that was joined again keeps its own."""
    if agent.container is None:
        return None
    if way is Way.REATTACH:
        return (await lease.services.journal.sessions.runtime(lease.session_id)).container
    return await containers.begun(lease.services, lease.attempt)


def started_of(agent: Agent, execution: AttemptId, *, resumed: bool) -> AgentStarted:
    """Return the event of an agent that has started."""
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
    """Return the record of an agent's process."""
    known = identity(agent.pid)
    return Process(
        execution=execution,
        pid=agent.pid,
        pid_started=str(known.started) if known else None,
        guardian_pid=agent.guardian_pid,
        machine_boot=known.boot if known else None,
        container=container,
    )

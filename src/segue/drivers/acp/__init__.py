"""Talks to any agent that speaks the Agent Client Protocol on its standard input and output.

The library pairs requests with their answers. It also gives every incoming message a task of its own, in the order of
arrival; that order survives because a message becomes events without waiting for anything on the way
(`UpdateTranslation`, `Events`).
"""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar

from acp import RequestError

from segue.drivers import Agent, Introduction, Launch, Left, ListedConversation
from segue.drivers.acp.handle import AcpAgent
from segue.drivers.acp.handshake import Handshake, Target
from segue.drivers.acp.link import Link
from segue.drivers.acp.request_ids import RequestIds
from segue.drivers.stream import Events
from segue.drivers.task_groups import tasks_for_the_body
from segue.model.events import AgentExited, JsonObject
from segue.model.ids import PromptId
from segue.workspace.containers import contained, rejoined
from segue.workspace.processes import RunningProcess, guarded


class AcpDriver:
    """Starts agents that speak the Agent Client Protocol."""

    containers: ClassVar[bool] = True

    def start(self, launch: Launch) -> AbstractAsyncContextManager[Agent]:
        """Start the agent with a new conversation, and yield it."""
        return _running(launch, Target())

    def resume(self, launch: Launch, token: str) -> AbstractAsyncContextManager[Agent]:
        """Start the agent with the conversation of this token, and yield it."""
        return _running(launch, Target(token))

    def fork(self, launch: Launch, token: str, at: str | None = None) -> AbstractAsyncContextManager[Agent]:
        """Start the agent with a copy of the conversation of this token, up to bookmark `at` if given, and yield it."""
        return _running(launch, Target(token, copy=True, at=at))

    def reattach(self, launch: Launch, token: str, left: Left) -> AbstractAsyncContextManager[Agent]:
        """Connect to the agent that still runs in its container, and yield it."""
        return _rejoined(launch, token, left)

    async def introduce(self, launch: Launch) -> Introduction:
        """Start the agent, return its name, version and capabilities, and end it; no conversation is opened."""
        async with _introduced(launch) as opening:
            return opening.agent

    async def conversations(self, launch: Launch) -> list[ListedConversation]:
        """Start the agent, return its conversations of the launch's directory, and end it."""
        async with _introduced(launch) as opening:
            with opening.in_time():
                return await opening.conversations()


@asynccontextmanager
async def _running(launch: Launch, way: Target) -> AsyncGenerator[Agent]:
    """Start an agent, open the conversation, and yield the agent; on exit end its process and its events."""
    events = Events()
    try:
        async with (
            _process(launch) as process,
            tasks_for_the_body() as tasks,
            AcpAgent(process, Link(process, _names(launch)), launch, events, tasks) as agent,
        ):
            await agent.open(way)
            yield agent
    finally:
        # Whoever still follows the stream sees it end.
        events.end(AgentExited(code=None, detail="Segue ended the agent."))


@asynccontextmanager
async def _rejoined(launch: Launch, token: str, left: Left) -> AsyncGenerator[Agent]:
    """Connect to an agent in its container, continue its conversation, and yield it; on exit end container and
    events."""
    events = Events()
    try:
        async with (
            rejoined(left.container, engine=launch.engine) as process,
            tasks_for_the_body() as tasks,
            AcpAgent(process, Link(process, _names(launch, left.turn)), launch, events, tasks, left) as agent,
        ):
            await agent.go_on(token, left)
            yield agent
    finally:
        events.end(AgentExited(code=None, detail="Segue ended the agent."))


@asynccontextmanager
async def _introduced(launch: Launch) -> AsyncGenerator[Handshake]:
    """Start an agent, exchange introductions without a conversation, and yield the handshake; on exit end the agent."""
    async with _process(launch) as process, tasks_for_the_body() as tasks:
        link = Link(process)
        link.connect(_deaf)
        tasks.start_soon(link.watch)
        opening = Handshake(link, launch)
        try:
            with opening.in_time():
                await opening.introduce()
            yield opening
        finally:
            await link.close()


async def _deaf(method: str, parameters: Any, is_notification: bool) -> JsonObject | None:
    """Raise `method not found` for every request of the agent; return None for notifications."""
    if not is_notification:
        raise RequestError.method_not_found(method)
    return None


def _names(launch: Launch, joined: PromptId | None = None) -> RequestIds | None:
    """Return request ids that survive a reconnection for an agent in a container, else None."""
    return RequestIds(launch.execution, joined) if launch.container else None


def _process(launch: Launch) -> AbstractAsyncContextManager[RunningProcess]:
    """Start the agent's command, in a container if the launch names one."""
    if launch.container is not None:
        return contained(
            launch.command,
            directory=launch.directory,
            environment=launch.environment,
            execution=launch.execution,
            container=launch.container,
            engine=launch.engine,
        )
    return guarded(
        launch.command, directory=launch.directory, environment=launch.environment, execution=launch.execution
    )

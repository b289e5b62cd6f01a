"""An agent without a process: it sends scripted events, and waits before the end of each turn.

A driver like any other, named in an agent's configuration as `benchmarks.scripted:ScriptedDriver`.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from segue.drivers import Capabilities, Image, Launch
from segue.model.events import AgentEvent, AgentExited, TurnEnded
from segue.model.ids import PromptId, RequestId


@dataclass(slots=True)
class Script:
    """Events of every turn, and two signals for the synchronization of agent and author."""

    turn: tuple[AgentEvent, ...]
    under_way: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the agent when all events but the end of the turn are sent."""
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the author; the agent clears it at the end of the turn."""


class ScriptedAgent:
    """Agent that sends the events of its script."""

    name = "scripted"
    version = "1"
    capabilities = Capabilities(load=True, resume=True)
    # There is no process: a pid that is never used.
    pid = guardian_pid = 2**22 + 1

    def __init__(self, script: Script, token: str) -> None:
        self.token = token
        self._script = script
        self._events: asyncio.Queue[AgentEvent] = asyncio.Queue()
        self._ending: asyncio.Task[None] | None = None

    async def events(self) -> AsyncIterator[AgentEvent]:
        while True:
            event = await self._events.get()
            yield event
            if isinstance(event, AgentExited):
                return

    async def prompt(self, prompt_id: PromptId, text: str, images: Sequence[Image] = ()) -> None:
        for event in self._script.turn:
            self._events.put_nowait(event)
        self._script.under_way.set()
        self._ending = asyncio.create_task(self._end(TurnEnded(prompt_id=prompt_id, reason="end_turn")))

    async def _end(self, ended: TurnEnded) -> None:
        await self._script.may_end.wait()
        self._script.may_end.clear()
        self._events.put_nowait(ended)

    async def cancel(self) -> None:
        self._script.may_end.set()

    async def answer(self, request_id: RequestId, option: str | None) -> None:
        """Do nothing: this agent has no requests."""

    async def close(self) -> None:
        """Do nothing: there is no process to close."""

    def end(self) -> None:
        if self._ending is not None:
            self._ending.cancel()


class ScriptedDriver:
    """Driver of scripted agents."""

    script: ClassVar[Script]
    """Script of all agents: drivers are created by name, without arguments."""

    @asynccontextmanager
    async def start(self, launch: Launch) -> AsyncGenerator[ScriptedAgent]:
        agent = ScriptedAgent(self.script, token=f"conversation-of-{launch.execution}")
        try:
            yield agent
        finally:
            agent.end()

    @asynccontextmanager
    async def resume(self, launch: Launch, token: str) -> AsyncGenerator[ScriptedAgent]:
        agent = ScriptedAgent(self.script, token)
        try:
            yield agent
        finally:
            agent.end()

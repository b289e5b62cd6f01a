"""A long conversation that an agent replays when it is loaded: none of it may become an event."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from random import Random
from statistics import median
from time import monotonic, process_time
from typing import Any

import anyio

from benchmarks import replaying
from benchmarks.bare import BareAgent
from benchmarks.replaying import CALL, OUTPUT, TITLE, TOKEN, WORDS, line_of
from benchmarks.sample_events import SIZE, passage
from segue.drivers import Agent, Launch
from segue.drivers.acp import AcpDriver
from segue.drivers.environment import allowed
from segue.model.events import AgentEvent, TextDelta, ToolCalled, ToolFinished, TurnEnded
from segue.testing.rehearsal.launch import turn

UPDATES = 10_000
TIMES = 7
QUIET = 0.3
"""Seconds of silence after which nothing more is given."""

THE_TURN: list[AgentEvent] = [
    TextDelta(role="message", text=WORDS),
    ToolCalled(call_id=CALL, title=TITLE, tool="execute"),
    ToolFinished(call_id=CALL, status="completed", output=OUTPUT),
]


@dataclass(frozen=True, slots=True)
class Replay:
    """Time until all updates were received, and the resulting events."""

    seconds: float
    cpu: float
    given: int = 0
    """Events from the replay."""
    turn_once: bool = True
    """The next turn gave its own events, each once, and no others."""


async def measure(directory: Path, updates: int = UPDATES, times: int = TIMES) -> dict[str, Any]:
    """Measure the driver in turns with a bare parser of the lines; the first round does not count."""
    agent = Replaying(directory, updates)
    pairs = [(await agent.through_the_driver(), agent.bare()) for _ in range(times + 1)][1:]
    ours, raw = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return {
        "updates": updates,
        "bytes": agent.updates.stat().st_size,
        "count": times,
        "driver": _rate(ours, updates),
        "bare": _rate(raw, updates),
        "given": max(each.given for each in ours),
        "turn_once": all(each.turn_once for each in ours),
    }


def _rate(replays: Sequence[Replay], updates: int) -> dict[str, float]:
    return {
        "per_second": median(updates / each.seconds for each in replays),
        "cpu_us": median(each.cpu / updates for each in replays) * 1e6,
    }


class Replaying:
    """An agent whose conversation was long."""

    def __init__(self, directory: Path, updates: int) -> None:
        self.directory = directory
        self.updates = directory / "updates.jsonl"
        self.updates.write_bytes(b"".join(line_of(update) for update in islice(conversation(), updates)))
        self._count = updates
        self._moment = directory / "moment"
        self._command = (sys.executable, replaying.__file__, str(self.updates), str(self._moment))
        self._environment = allowed(os.environ)

    async def through_the_driver(self) -> Replay:
        """Load the conversation through the driver, and run one turn."""
        launch = Launch(
            command=self._command, directory=self.directory, environment=self._environment, execution="replay"
        )
        cpu = process_time()
        async with AcpDriver().resume(launch, TOKEN) as agent:
            seconds, cpu = self._since_asked(), process_time() - cpu
            given = await given_by(agent)
            events = await turn(agent, "Go on.")
        once = events[:-1] == THE_TURN and isinstance(events[-1], TurnEnded)
        return Replay(seconds, cpu, given, once)

    def bare(self) -> Replay:
        """Measure the building block: read the lines, parse them, drop them."""
        with BareAgent(self._command, self.directory, self._environment) as agent:
            agent.introduce()
            cpu = process_time()
            agent.ask("session/load", {"sessionId": TOKEN, "cwd": str(self.directory), "mcpServers": []})
            replay = Replay(self._since_asked(), process_time() - cpu)
        if agent.heard != self._count:
            raise AssertionError(f"{agent.heard} updates were heard of {self._count}")
        return replay

    def _since_asked(self) -> float:
        """Return the seconds since the request to load; the agent uses the same clock."""
        return monotonic() - float(self._moment.read_text())


async def given_by(agent: Agent) -> int:
    """Return the events that precede the first prompt."""
    given = 0
    with anyio.move_on_after(QUIET):
        async for _ in agent.events():
            given += 1
    return given


def conversation() -> Iterator[dict[str, Any]]:
    """Yield messages, thoughts, and two tool calls to a prompt, of three updates each; the same in every run."""
    random = Random(4)
    numbers = count(1)
    while True:
        yield _words("user_message_chunk", passage(random, SIZE // 2))
        yield _words("agent_thought_chunk", passage(random, SIZE // 5))
        for number in islice(numbers, 2):
            yield from _call(f"call-{number}", passage(random, SIZE))
            yield _words("agent_message_chunk", passage(random, SIZE // 5))


def _words(kind: str, text: str) -> dict[str, Any]:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def _call(name: str, output: str) -> Iterator[dict[str, Any]]:
    content = [{"type": "content", "content": {"type": "text", "text": output}}]
    begun = {"title": "pytest -q", "kind": "execute", "status": "pending", "rawInput": {"command": "pytest -q"}}
    yield {"sessionUpdate": "tool_call", "toolCallId": name, **begun}
    yield {"sessionUpdate": "tool_call_update", "toolCallId": name, "status": "in_progress"}
    yield {"sessionUpdate": "tool_call_update", "toolCallId": name, "status": "completed", "content": content}

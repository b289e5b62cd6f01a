"""Start of the rehearsal agent through a driver, for tests."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import anyio

from segue.drivers import Agent, Launch
from segue.drivers.environment import allowed
from segue.model.events import AgentEvent, AgentExited, TurnEnded, TurnFailed
from segue.model.ids import new_prompt_id
from segue.testing.rehearsal.diary import DiaryEntry, read_diary

COMMAND = (sys.executable, "-m", "segue.testing.rehearsal")


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Directory of one agent: its script, home, diary and working directory."""

    root: Path

    @property
    def directory(self) -> Path:
        return self.root / "work"

    @property
    def home(self) -> Path:
        return self.root / "home"

    def launch(self, script: str, *, execution: str | None = None, handshake_timeout: float = 60.0) -> Launch:
        """Write the script and return the agent's launch; a later launch may use another script in the same home."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.root / "script.yaml"
        path.write_text(script)
        return Launch(
            command=(*COMMAND, "--script", str(path), "--home", str(self.home)),
            directory=self.directory,
            environment=allowed(os.environ),
            execution=execution or f"rehearsal-{token_hex(4)}",
            handshake_timeout=handshake_timeout,
        )

    def diary(self, kind: str | None = None) -> list[DiaryEntry]:
        """Read the agent's diary, or its entries of one kind."""
        entries = read_diary(self.home / "diary.jsonl")
        return [entry for entry in entries if kind in (None, entry.kind)]


async def turn(agent: Agent, text: str, within: float = 30.0) -> list[AgentEvent]:
    """Prompt the agent and collect its events until its turn or its process ends."""
    await agent.prompt(new_prompt_id(), text)
    return await rest_of_turn(agent, within)


async def rest_of_turn(agent: Agent, within: float = 30.0) -> list[AgentEvent]:
    """Collect the agent's events until its turn or its process ends, at most `within` seconds."""
    collected: list[AgentEvent] = []
    with anyio.fail_after(within):
        async for event in agent.events():
            collected.append(event)
            if isinstance(event, TurnEnded | TurnFailed | AgentExited):
                break
    return collected

"""An agent that puts the store at the other end of its connection to the SDK's own suite, and says how it went."""

import sys
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import count
from typing import Any, cast

from claude_agent_sdk.testing import run_session_store_conformance

from segue.drivers.claude.client_store import ClientStore, keeps
from segue.drivers.skeleton.agent_program import AgentProgram, Channel, Starter, Turn
from segue.drivers.skeleton.entry import run
from segue.drivers.skeleton.jsonrpc import Message, Parameters
from segue.drivers.skeleton.payloads import Payload, introduction, message, turn_ended
from segue.drivers.skeleton.wire import Wire

_numbers = count()


class Alone(ClientStore):
    """One database serves all of the suite's stores: each has projects of its own in it."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self._number = next(_numbers)

    def _own(self, key: Any) -> Any:
        return {**key, "project_key": self._project(key["project_key"])}

    def _project(self, project: str) -> str:
        return f"{self._number}-{project}"

    async def append(self, key: Any, entries: Any) -> None:
        await super().append(self._own(key), entries)

    async def load(self, key: Any) -> Any:
        return await super().load(self._own(key))

    async def list_sessions(self, project_key: str) -> Any:
        return await super().list_sessions(self._project(project_key))

    async def list_subkeys(self, key: Any) -> Any:
        return await super().list_subkeys(self._own(key))


class Examination(Turn):
    """The only turn of the agent: all of the suite."""

    def __init__(self, wire: Wire, kept: bool) -> None:
        self.token = "examination"
        self._wire = wire
        self._kept = kept

    async def play(self, content: Sequence[Message]) -> Payload:
        try:
            await run_session_store_conformance(lambda: cast(Any, Alone(self._wire)))
            result = f"passed, {next(_numbers)} stores" if self._kept else "nobody keeps anything"
        except Exception:  # noqa: BLE001 - the test shows it
            result = traceback.format_exc()
        await Channel(self._wire, self.token).update(message(result))
        return turn_ended("end_turn")

    async def cancel(self) -> None:
        """Let the suite come to its end."""


class Examiner(AgentProgram[Examination]):
    def __init__(self, wire: Wire, client: Parameters) -> None:
        super().__init__(wire)
        self._kept = keeps(client)

    async def begin(self, cwd: str, servers: Sequence[Message]) -> Examination:
        return Examination(self.wire, self._kept)

    async def resume(self, token: str, cwd: str, servers: Sequence[Message], at: str | None) -> Examination:
        return Examination(self.wire, self._kept)

    def turn(self, conversation: Examination) -> Turn:
        return conversation


def load() -> Starter:
    return lambda wire, client: nullcontext(Examiner(wire, client))


if __name__ == "__main__":
    sys.exit(run(lambda: introduction("examiner", "1"), load))

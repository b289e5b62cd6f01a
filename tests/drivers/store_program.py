"""An agent that puts the store at the other end of its connection to the SDK's own suite, and says how it went."""

import asyncio
import traceback
from itertools import count
from typing import Any, cast

from acp import PROTOCOL_VERSION, run_agent, update_agent_message_text
from acp.interfaces import Agent, Client
from acp.schema import ClientCapabilities, InitializeResponse, NewSessionResponse, PromptResponse
from claude_agent_sdk.testing import run_session_store_conformance

from segue.drivers.claude.store import Store, keeps

_numbers = count()


class Alone(Store):
    """One database serves all of the suite's stores: each has projects of its own in it."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
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


class Examiner:
    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(self, client_capabilities: ClientCapabilities | None = None, **_: Any) -> InitializeResponse:
        self._kept = keeps(client_capabilities)
        return InitializeResponse(protocol_version=PROTOCOL_VERSION)

    async def new_session(self, **_: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id="examination")

    async def prompt(self, session_id: str, **_: Any) -> PromptResponse:
        try:
            await run_session_store_conformance(lambda: cast(Any, Alone(self._client)))
            said = f"passed, {next(_numbers)} stores" if self._kept else "nobody keeps anything"
        except Exception:  # noqa: BLE001 - the test shows it
            said = traceback.format_exc()
        await self._client.session_update(session_id, update_agent_message_text(said))
        return PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    asyncio.run(run_agent(cast(Agent, Examiner())))

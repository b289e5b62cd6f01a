"""The agent's side of the Agent Client Protocol."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from acp import PROTOCOL_VERSION, RequestError, run_agent
from acp.interfaces import Agent, Client
from acp.schema import (
    AgentCapabilities,
    HttpMcpServer,
    ImageContentBlock,
    Implementation,
    InitializeResponse,
    McpCapabilities,
    McpServerStdio,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    TextContentBlock,
)

from segue.drivers.amp.program import Amp
from segue.drivers.amp.turns import Setting, Turn

MODES = ("low", "medium", "high", "ultra")
"""Amp's modes choose the model, so that is what they are here; plugins bring others."""

_OPEN_LIST: dict[str, Any] = {"segue": {"open": True}}


async def serve(amp: Amp) -> None:
    """Be the agent until standard input ends."""
    await run_agent(cast(Agent, AmpAgent(amp)), use_unstable_protocol=True)


class AmpAgent:
    """Opens threads, and hands prompts to a turn."""

    def __init__(self, amp: Amp) -> None:
        self._amp = amp
        self._client: Client | None = None
        self._settings: dict[str, Setting] = {}
        self._turns: dict[str, Turn] = {}

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="amp", version=await self._amp.version()),
            agent_capabilities=AgentCapabilities(
                prompt_capabilities=PromptCapabilities(image=True),
                mcp_capabilities=McpCapabilities(http=True),
                session_capabilities=SessionCapabilities(resume=SessionResumeCapabilities()),
            ),
        )

    # ── threads ─────────────────────────────────────────────────────────────────────────────────────

    async def new_session(self, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any) -> NewSessionResponse:
        thread = await self._amp.begin(cwd)
        self._enter(thread, cwd, mcp_servers)
        return NewSessionResponse(session_id=thread, config_options=_offers(None))

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        await self._amp.find(session_id, cwd)
        self._enter(session_id, cwd, mcp_servers)
        return ResumeSessionResponse(config_options=_offers(None))

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        setting = self._open(session_id)
        if config_id != "model" or not isinstance(value, str):
            raise RequestError.invalid_params({"details": f"There is no option {config_id}."})
        self._settings[session_id] = replace(setting, mode=value)
        return SetSessionConfigOptionResponse(config_options=_offers(value))

    # ── turns ───────────────────────────────────────────────────────────────────────────────────────

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> PromptResponse:
        setting = self._open(session_id)
        if session_id in self._turns:
            raise RequestError.invalid_params({"details": "The conversation is in its turn."})
        turn = self._turns[session_id] = Turn(setting)
        try:
            return await turn.play(list(_content(prompt)))
        finally:
            del self._turns[session_id]

    async def cancel(self, session_id: str, **_: Any) -> None:
        if turn := self._turns.get(session_id):
            turn.cancel()

    # ── helpers ─────────────────────────────────────────────────────────────────────────────────────

    def _open(self, token: str) -> Setting:
        if token not in self._settings:
            raise RequestError.invalid_params({"details": f"Session not open: {token}"})
        return self._settings[token]

    def _enter(self, thread: str, cwd: str, servers: Sequence[Any] | None) -> None:
        if self._client is None:
            raise RequestError.invalid_request({"details": "Nobody is connected."})
        self._settings[thread] = Setting(
            amp=self._amp, client=self._client, thread=thread, directory=cwd, servers=dict(map(_server, servers or ()))
        )


def _offers(current: str | None) -> list[Any]:
    option = SessionConfigOptionSelect(
        id="model",
        name="Mode",
        category="model",
        type="select",
        options=[SessionConfigSelectOption(value=mode, name=mode) for mode in MODES],
        current_value=current or "",
        field_meta=_OPEN_LIST,
    )
    return [option]


def _server(server: Any) -> tuple[str, dict[str, Any]]:
    """A server of tools, as Amp writes it."""
    match server:
        case McpServerStdio():
            variables = {each.name: each.value for each in server.env}
            return server.name, {"command": server.command, "args": server.args, "env": variables}
        case HttpMcpServer():
            return server.name, {"url": server.url, "headers": {each.name: each.value for each in server.headers}}
        case _:
            raise RequestError.invalid_params({"details": "Amp takes MCP servers over stdio and http."})


def _content(blocks: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        match block:
            case TextContentBlock():
                yield {"type": "text", "text": block.text}
            case ImageContentBlock():
                source = {"type": "base64", "media_type": block.mime_type, "data": block.data}
                yield {"type": "image", "source": source}
            case _:
                # Links and embedded files come as text, or not at all.
                said = getattr(getattr(block, "resource", block), "text", None) or getattr(block, "uri", "")
                yield {"type": "text", "text": str(said)}

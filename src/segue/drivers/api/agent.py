"""The agent's side of the Agent Client Protocol."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from acp import PROTOCOL_VERSION, RequestError, run_agent
from acp.interfaces import Agent, Client
from acp.schema import (
    AgentCapabilities,
    CloseSessionResponse,
    ForkSessionResponse,
    ImageContentBlock,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    TextContentBlock,
)
from pydantic_ai.messages import BinaryContent, UserContent

from segue import __version__
from segue.drivers.api.history import Damaged, History, Memory
from segue.drivers.api.models import Models
from segue.drivers.api.place import Place
from segue.drivers.api.turns import Setting, Turn

_OPEN_LIST: dict[str, Any] = {"segue": {"open": True}}
"""Says that other values than those on offer will do too: nobody can list all models there are."""


async def serve(home: Path, models: Models) -> None:
    """Be the agent until standard input ends."""
    await run_agent(cast(Agent, ApiAgent(Memory(home), models)), use_unstable_protocol=True)


class ApiAgent:
    """Opens conversations, and hands prompts to a turn."""

    def __init__(self, memory: Memory, models: Models) -> None:
        self._memory = memory
        self._models = models
        self._client: Client | None = None
        self._settings: dict[str, Setting] = {}
        self._turns: dict[str, Turn] = {}

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="api", version=__version__),
            agent_capabilities=AgentCapabilities(
                prompt_capabilities=PromptCapabilities(image=True),
                session_capabilities=SessionCapabilities(
                    close=SessionCloseCapabilities(),
                    fork=SessionForkCapabilities(),
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                ),
            ),
        )

    # ── conversations ───────────────────────────────────────────────────────────────────────────────

    async def new_session(self, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any) -> NewSessionResponse:
        _refuse(mcp_servers)
        history = self._enter(self._memory.begin(cwd), cwd)
        return NewSessionResponse(session_id=history.token, config_options=self._offers(history))

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        _refuse(mcp_servers)
        history = self._enter(self._find(session_id), cwd)
        return ResumeSessionResponse(config_options=self._offers(history))

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        mcp_servers: Sequence[Any] | None = None,
        segue: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> ForkSessionResponse:
        _refuse(mcp_servers)
        original, at = self._find(session_id), (segue or {}).get("at")
        history = self._enter(self._memory.copy(original, cwd, _place_in(original, at)), cwd)
        return ForkSessionResponse(
            session_id=history.token, config_options=self._offers(history), field_meta={"segue": {"at": at}}
        )

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> ListSessionsResponse:
        return ListSessionsResponse(
            sessions=[
                SessionInfo(session_id=each.token, cwd=each.directory, title=each.title, updated_at=each.updated_at)
                for each in self._memory.all(cwd or "")
            ]
        )

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        self._settings.pop(session_id, None)
        return CloseSessionResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        history = self._open(session_id).history
        if config_id != "model" or not isinstance(value, str):
            raise RequestError.invalid_params({"details": f"There is no option {config_id}."})
        self._models.find(value)
        history.choose(value)
        return SetSessionConfigOptionResponse(config_options=self._offers(history))

    # ── turns ───────────────────────────────────────────────────────────────────────────────────────

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> PromptResponse:
        setting = self._open(session_id)
        if session_id in self._turns:
            raise RequestError.invalid_params({"details": "The conversation is in its turn."})
        model = self._models.find(setting.history.model or self._models.default)
        turn = self._turns[session_id] = Turn(setting, model)
        try:
            return await turn.play(list(_content(prompt)))
        finally:
            del self._turns[session_id]

    async def cancel(self, session_id: str, **_: Any) -> None:
        if turn := self._turns.get(session_id):
            turn.cancel()

    # ── helpers ─────────────────────────────────────────────────────────────────────────────────────

    def _find(self, token: str) -> History:
        try:
            history = self._memory.find(token)
        except Damaged as error:
            raise RequestError(-32603, str(error)) from error
        if history is None:
            raise RequestError(-32002, f"Session not found: {token}")
        return history

    def _open(self, token: str) -> Setting:
        if token not in self._settings:
            raise RequestError.invalid_params({"details": f"Session not open: {token}"})
        return self._settings[token]

    def _enter(self, history: History, cwd: str) -> History:
        if self._client is None:
            raise RequestError.invalid_request({"details": "Nobody is connected."})
        self._settings[history.token] = Setting(
            history=history, place=Place(Path(cwd)), client=self._client, models=self._models
        )
        return history

    def _offers(self, history: History) -> list[Any]:
        current = history.model or self._models.default
        option = SessionConfigOptionSelect(
            id="model",
            name="Model",
            category="model",
            type="select",
            options=[SessionConfigSelectOption(value=current, name=current)] if current else [],
            current_value=current or "",
            field_meta=_OPEN_LIST,
        )
        return [option]


def _place_in(history: History, at: str | None) -> int | None:
    if at is None:
        return None
    if not at.isdecimal() or int(at) > history.length:
        raise RequestError(-32002, f"Session {history.token} has no place {at}")
    return int(at)


def _refuse(servers: Sequence[Any] | None) -> None:
    if servers:
        raise RequestError.invalid_params({"details": "This agent takes no MCP servers."})


def _content(blocks: Sequence[Any]) -> Iterator[UserContent]:
    for block in blocks:
        match block:
            case TextContentBlock():
                yield block.text
            case ImageContentBlock():
                yield BinaryContent(data=base64.b64decode(block.data), media_type=block.mime_type)
            case _:
                # Links and embedded files come as text, or not at all.
                yield str(getattr(getattr(block, "resource", block), "text", None) or getattr(block, "uri", ""))

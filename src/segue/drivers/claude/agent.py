"""The agent's side of the Agent Client Protocol."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4

import claude_agent_sdk as sdk
from acp import PROTOCOL_VERSION, RequestError, run_agent
from acp.interfaces import Agent, Client
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    CloseSessionResponse,
    ForkSessionResponse,
    ImageContentBlock,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    McpCapabilities,
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
    SessionMode,
    SessionModeState,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
    TextContentBlock,
)

from segue.drivers.claude.conversation import Conversation
from segue.drivers.claude.files import NOT_FOUND, copied
from segue.drivers.claude.history import reconstruct, should_resume
from segue.drivers.claude.mirror import Mirror, restore
from segue.drivers.claude.options import Setup, Wanted
from segue.drivers.claude.register import Register
from segue.drivers.claude.store import Store, keeps

_OPEN_LIST: dict[str, Any] = {"segue": {"open": True}}
"""Says that other values than those on offer will do too."""

_MODES = {
    "default": "Ask",
    "acceptEdits": "Accept edits",
    "plan": "Plan only",
}


async def serve(setup: Setup) -> None:
    """Be the agent until standard input ends."""
    await run_agent(cast(Agent, ClaudeAgent(setup, Register(setup.home))), use_unstable_protocol=True)


class ClaudeAgent:
    """Opens conversations, and hands prompts to them."""

    def __init__(self, setup: Setup, register: Register) -> None:
        self._setup = setup
        self._register = register
        self._client: Client | None = None
        self._kept = False
        self._open: dict[str, Conversation] = {}

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: ClientCapabilities | None = None, **_: Any
    ) -> InitializeResponse:
        self._kept = keeps(client_capabilities)
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="claude-sdk", version=sdk.__version__),
            agent_capabilities=AgentCapabilities(
                prompt_capabilities=PromptCapabilities(image=True),
                mcp_capabilities=McpCapabilities(http=True, sse=True),
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
        token = str(uuid4())
        self._register.begin(token, cwd)
        conversation = await self._begin(Wanted(token=token, cwd=cwd, mcp_servers=mcp_servers or ()))
        return NewSessionResponse(session_id=token, modes=_modes(), config_options=await self._offers(conversation))

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        mcp_servers: Sequence[Any] | None = None,
        segue: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> ResumeSessionResponse:
        conversation = await self._go_back(session_id, cwd, mcp_servers, at=(segue or {}).get("at"))
        return ResumeSessionResponse(modes=_modes(), config_options=await self._offers(conversation))

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        mcp_servers: Sequence[Any] | None = None,
        segue: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> ForkSessionResponse:
        at = (segue or {}).get("at")
        copy = await self._copied(session_id, cwd, at)
        known = self._register.find(session_id)
        self._register.begin(copy, cwd, known.model if known else None)
        conversation = await self._go_back(copy, cwd, mcp_servers)
        return ForkSessionResponse(
            session_id=copy,
            modes=_modes(),
            config_options=await self._offers(conversation),
            field_meta={"segue": {"at": at}},
        )

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> ListSessionsResponse:
        return ListSessionsResponse(
            sessions=[
                SessionInfo(
                    session_id=each.session_id,
                    cwd=cwd or each.cwd or "",
                    title=each.summary,
                    updated_at=datetime.fromtimestamp(each.last_modified / 1000, UTC).isoformat(),
                )
                for each in sdk.list_sessions(cwd, include_worktrees=False)
            ]
        )

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        if conversation := self._open.pop(session_id, None):
            await conversation.close()
        return CloseSessionResponse()

    async def set_session_mode(self, mode_id: str, session_id: str, **_: Any) -> SetSessionModeResponse:
        if mode_id not in _MODES:
            raise RequestError.invalid_params(
                {"details": f"There is no mode {mode_id}; there are {', '.join(_MODES)}."}
            )
        await self._find(session_id).choose_mode(mode_id)
        return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        conversation = self._find(session_id)
        if config_id != "model" or not isinstance(value, str):
            raise RequestError.invalid_params({"details": f"There is no option {config_id}."})
        await conversation.choose_model(value)
        return SetSessionConfigOptionResponse(config_options=await self._offers(conversation))

    # ── turns ───────────────────────────────────────────────────────────────────────────────────────

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> PromptResponse:
        conversation = self._find(session_id)
        if conversation.busy:
            raise RequestError.invalid_params({"details": "The conversation is in its turn."})
        return await conversation.play(list(_content(prompt)))

    async def cancel(self, session_id: str, **_: Any) -> None:
        if conversation := self._open.get(session_id):
            await conversation.cancel()

    # ── helpers ─────────────────────────────────────────────────────────────────────────────────────

    def _connected(self) -> Client:
        if self._client is None:
            raise RequestError.invalid_request({"details": "Nobody is connected."})
        return self._client

    def _store(self) -> Store | None:
        return Store(self._connected()) if self._kept else None

    def _conversation(self, wanted: Wanted) -> Conversation:
        store = self._store()
        return Conversation(self._setup, wanted, self._register, self._connected(), Mirror(store) if store else None)

    async def _begin(self, wanted: Wanted) -> Conversation:
        conversation = self._conversation(wanted)
        await conversation.open()
        self._open[wanted.token] = conversation
        return conversation

    async def _go_back(
        self, token: str, cwd: str, servers: Sequence[Any] | None, at: str | None = None
    ) -> Conversation:
        known = self._register.find(token)
        stored = reconstruct(sdk.get_session_messages(token, cwd), at)
        wanted = Wanted(
            token=token, cwd=cwd, resume=True, at=at, model=known.model if known else None, mcp_servers=servers or ()
        )
        if known is not None and not known.message_count and not should_resume(token, stored.messages):
            # Nothing was ever said in it: there is nothing to lose, and its name is still free.
            return await self._begin(Wanted(token=token, cwd=cwd, model=known.model, mcp_servers=servers or ()))
        try:
            conversation = await self._resumed(wanted)
        except RequestError as error:
            if not await self._put_back(error, token, sdk.project_key_for_directory(cwd)):
                raise
            stored = reconstruct(sdk.get_session_messages(token, cwd), at)
            conversation = await self._resumed(wanted)
        if known is None:
            self._register.begin(token, cwd)
            self._register.update(token, message_count=len(stored.messages))
        conversation.tell_first(stored.interrupted, stored.gaps)
        self._open[token] = conversation
        return conversation

    async def _resumed(self, wanted: Wanted) -> Conversation:
        conversation = self._conversation(wanted)
        await conversation.safe_resume()
        return conversation

    async def _copied(self, token: str, cwd: str, at: str | None) -> str:
        try:
            return copied(token, cwd, at)
        except RequestError as error:
            if not await self._put_back(error, token):
                raise
            return copied(token, cwd, at)

    async def _put_back(self, error: RequestError, token: str, project: str | None = None) -> bool:
        """Whether a conversation that Claude Code does not have was brought back from Segue's copy."""
        store = self._store()
        return error.code == NOT_FOUND and store is not None and await restore(store, token, project)

    def _find(self, token: str) -> Conversation:
        if token not in self._open:
            raise RequestError.invalid_params({"details": f"Session not open: {token}"})
        return self._open[token]

    async def _offers(self, conversation: Conversation) -> list[Any]:
        offered = [
            SessionConfigSelectOption(value=each["value"], name=each.get("displayName") or each["value"])
            for each in await conversation.models()
        ]
        known = self._register.find(conversation.token)
        chosen = (known.model if known else None) or self._setup.model or (offered[0].value if offered else "")
        option = SessionConfigOptionSelect(
            id="model",
            name="Model",
            category="model",
            type="select",
            options=offered,
            current_value=chosen,
            field_meta=_OPEN_LIST,
        )
        return [option]


def _modes() -> SessionModeState:
    modes = [SessionMode(id=mode, name=name) for mode, name in _MODES.items()]
    return SessionModeState(current_mode_id="default", available_modes=modes)


def _content(blocks: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for block in blocks:
        match block:
            case TextContentBlock():
                yield {"type": "text", "text": block.text}
            case ImageContentBlock():
                source = {"type": "base64", "media_type": block.mime_type, "data": block.data}
                yield {"type": "image", "source": source}
            case _:
                # Links and embedded files come as text, or not at all.
                pass

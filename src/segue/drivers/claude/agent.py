"""The agent's conversations: each is one of the SDK's, and may be kept by the client."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime
from uuid import uuid4

import claude_agent_sdk as sdk

from segue.drivers.claude.client_store import ClientStore, keeps
from segue.drivers.claude.mirror import Mirror, restore
from segue.drivers.claude.options import WantedConversation
from segue.drivers.claude.reconstruction import reconstruct, should_resume
from segue.drivers.claude.register import Register
from segue.drivers.claude.sdk_conversation import SdkConversation
from segue.drivers.claude.session_files import copied
from segue.drivers.claude.setup import Setup
from segue.drivers.skeleton.agent_program import OPEN_LIST, AgentProgram, Channel
from segue.drivers.skeleton.jsonrpc import NOT_FOUND, Message, Parameters, RequestError, invalid_params
from segue.drivers.skeleton.payloads import Payload, model_option, modes
from segue.drivers.skeleton.wire import Wire

_MODES = {
    "default": "Ask",
    "acceptEdits": "Accept edits",
    "plan": "Plan only",
}


def start(setup: Setup, wire: Wire, client: Parameters) -> AbstractAsyncContextManager["ClaudeAgent"]:
    """Return the agent; it keeps copies of conversations if the client declares a keeper."""
    return nullcontext(ClaudeAgent(wire, setup, Register(setup.home), ClientStore(wire) if keeps(client) else None))


class ClaudeAgent(AgentProgram[SdkConversation]):
    """Agent that is Claude Code, through the SDK."""

    def __init__(self, wire: Wire, setup: Setup, register: Register, store: ClientStore | None = None) -> None:
        super().__init__(wire)
        self._setup = setup
        self._register = register
        self._store = store

    async def begin(self, cwd: str, servers: Sequence[Message]) -> SdkConversation:
        """Start a new conversation, and register it."""
        token = str(uuid4())
        self._register.begin(token, cwd)
        return await self._begin(WantedConversation(token=token, cwd=cwd, mcp_servers=servers))

    async def resume(self, token: str, cwd: str, servers: Sequence[Message], at: str | None) -> SdkConversation:
        """Resume the SDK's conversation, restored from Segue's copy if Claude Code has lost it; one without a message
        begins anew."""
        known = self._register.find(token)
        stored = reconstruct(sdk.get_session_messages(token, cwd), at)
        model = known.model if known else None
        if known is not None and not known.message_count and not should_resume(token, stored.messages):
            # No message was ever sent in it: there is nothing to lose, and its name is still free.
            return await self._begin(WantedConversation(token=token, cwd=cwd, model=model, mcp_servers=servers))
        wanted = WantedConversation(token=token, cwd=cwd, resume=True, at=at, model=model, mcp_servers=servers)
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
        conversation.report_first(stored.interrupted, stored.gaps)
        return conversation

    async def copy(self, token: str, cwd: str, servers: Sequence[Message], at: str | None) -> SdkConversation:
        """Copy the SDK's conversation, up to `at` if given, restored first if lost; open and return the copy."""
        try:
            copy = copied(token, cwd, at)
        except RequestError as error:
            if not await self._put_back(error, token):
                raise
            copy = copied(token, cwd, at)
        known = self._register.find(token)
        self._register.begin(copy, cwd, known.model if known else None)
        return await self.resume(copy, cwd, servers, None)

    async def conversations(self, cwd: str | None) -> list[Payload]:
        """List the SDK's conversations of a directory, or all without one."""
        return [
            {
                "sessionId": each.session_id,
                "cwd": cwd or each.cwd or "",
                "title": each.summary,
                "updatedAt": datetime.fromtimestamp(each.last_modified / 1000, UTC).isoformat(),
            }
            for each in sdk.list_sessions(cwd, include_worktrees=False)
        ]

    async def release(self, conversation: SdkConversation) -> None:
        """Stop listening to the conversation, and end its Claude Code."""
        await conversation.close()

    async def offers(self, conversation: SdkConversation) -> Payload:
        """Return the permission modes, and the models with the chosen one."""
        offered = {each["value"]: each.get("displayName") or each["value"] for each in await conversation.models()}
        known = self._register.find(conversation.token)
        chosen = (known.model if known else None) or self._setup.model or next(iter(offered), "")
        return {"modes": modes(_MODES, "default"), "configOptions": [model_option(offered, chosen, meta=OPEN_LIST)]}

    async def choose_mode(self, conversation: SdkConversation, mode: str) -> None:
        """Set the permission mode; raise an error if there is no such mode."""
        if mode not in _MODES:
            raise invalid_params(f"There is no mode {mode}; there are {', '.join(_MODES)}.")
        await conversation.choose_mode(mode)

    async def choose_model(self, conversation: SdkConversation, model: str) -> None:
        """Set the conversation's model, and store it for a later resume."""
        await conversation.choose_model(model)

    def turn(self, conversation: SdkConversation) -> SdkConversation:
        return conversation

    # ── ways into a conversation ────────────────────────────────────────────────────────────────────

    def _conversation(self, wanted: WantedConversation) -> SdkConversation:
        """Return a conversation that is not open yet, with a mirror if the client keeps conversations."""
        mirror = Mirror(self._store) if self._store else None
        return SdkConversation(self._setup, wanted, self._register, Channel(self.wire, wanted.token), mirror)

    async def _begin(self, wanted: WantedConversation) -> SdkConversation:
        """Open a new conversation."""
        conversation = self._conversation(wanted)
        await conversation.open()
        return conversation

    async def _resumed(self, wanted: WantedConversation) -> SdkConversation:
        """Open an existing conversation; raise an error if Claude Code does not resume it."""
        conversation = self._conversation(wanted)
        await conversation.safe_resume()
        return conversation

    async def _put_back(self, error: RequestError, token: str, project: str | None = None) -> bool:
        """Restore a conversation that Claude Code lacks from Segue's copy; False for another error or without a
        copy."""
        return error.code == NOT_FOUND and self._store is not None and await restore(self._store, token, project)

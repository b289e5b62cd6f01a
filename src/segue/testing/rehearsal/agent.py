"""The agent's side of the protocol: opening conversations as the script says, and handing prompts to a performance."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import acp
import anyio
from acp.core import AgentSideConnection
from acp.schema import (
    AgentCapabilities,
    ImageContentBlock,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    McpCapabilities,
    PromptCapabilities,
    PromptResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    TextContentBlock,
    Usage,
)
from acp.stdio import stdio_streams

from segue import __version__
from segue.testing.rehearsal.conversation import Conversation, Memory
from segue.testing.rehearsal.diary import Diary
from segue.testing.rehearsal.lines import Line
from segue.testing.rehearsal.performance import Performance, Stage, leave, mute
from segue.testing.rehearsal.script import DEFAULT_TURN, Opening, Script, Turn

_LONGEST_LINE = 64 * 1024 * 1024


async def serve(script: Script, memory: Memory, diary: Diary) -> None:
    """Be the agent until standard input ends."""
    reader, writer = await stdio_streams(limit=_LONGEST_LINE)
    # What was sent before a crash must have left this process.
    writer.transport.set_write_buffer_limits(0)
    agent = RehearsalAgent(script, memory, diary, lambda line: writer.write(f"{line}\n".encode()))
    await AgentSideConnection(
        cast(acp.Agent, agent), writer, reader, listening=False, use_unstable_protocol=True
    ).listen()


class RehearsalAgent:
    """Knows its script, its memory and its diary; methods it does not have are answered with "method not found"."""

    def __init__(self, script: Script, memory: Memory, diary: Diary, print_line: Callable[[str], None]) -> None:
        self._script = script
        self._memory = memory
        self._diary = diary
        self._print_line = print_line
        self._stages: dict[str, Stage] = {}
        self._performances: dict[str, Performance] = {}

    def on_connect(self, conn: acp.Client) -> None:
        self._client = conn

    async def initialize(self, **_: Any) -> InitializeResponse:
        await self._open(self._script.on_initialize)
        advertised = self._script.capabilities
        return InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=advertised.load,
                prompt_capabilities=PromptCapabilities(image=advertised.images),
                mcp_capabilities=McpCapabilities(http=True),
                session_capabilities=SessionCapabilities(
                    resume=SessionResumeCapabilities() if advertised.resume else None,
                    fork=SessionForkCapabilities() if advertised.fork else None,
                    list=SessionListCapabilities() if advertised.list else None,
                    close=SessionCloseCapabilities() if advertised.close else None,
                ),
            ),
            agent_info=Implementation(name="rehearsal", version=__version__),
        )

    async def new_session(self, cwd: str, mcp_servers: Any = None, **_: Any) -> dict[str, Any]:
        await self._open(self._script.on_new)
        stage = self._enter(self._memory.begin(), cwd)
        stage.conversation.add("opened", directory=cwd)
        stage.note("started", **_servers(mcp_servers))
        return {"sessionId": stage.conversation.token, **self._offers(stage.conversation)}

    async def load_session(self, cwd: str, session_id: str, mcp_servers: Any = None, **_: Any) -> dict[str, Any]:
        stage = await self._go_on(cwd, session_id, mcp_servers)
        if self._script.on_load.replay:
            await self._replay(stage)
        return self._answer(stage)

    async def resume_session(self, cwd: str, session_id: str, mcp_servers: Any = None, **_: Any) -> dict[str, Any]:
        return self._answer(await self._go_on(cwd, session_id, mcp_servers))

    async def fork_session(self, cwd: str, session_id: str, mcp_servers: Any = None, **_: Any) -> dict[str, Any]:
        await self._open(self._script.on_load)
        copy = self._memory.copy(self._find(session_id))
        self._enter(copy, cwd).note("forked", of=session_id, prompts=len(copy.prompts), **_servers(mcp_servers))
        return {"sessionId": copy.token, **self._offers(copy)}

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> ListSessionsResponse:
        return ListSessionsResponse(
            sessions=[
                SessionInfo(session_id=each.token, cwd=cwd or "", title=" ".join(each.prompts[:1]), updated_at=at)
                for each, at in self._memory.all(cwd or "")
            ]
        )

    async def close_session(self, session_id: str, **_: Any) -> dict[str, Any]:
        if session_id in self._stages:
            self._stages.pop(session_id).note("closed")
        return {}

    async def set_session_mode(self, mode_id: str, session_id: str, **_: Any) -> dict[str, Any]:
        await self._choose("mode", mode_id, session_id, self._script.modes)
        return {}

    async def set_config_option(self, config_id: str, session_id: str, value: Any, **_: Any) -> dict[str, Any]:
        if config_id != "model":
            raise acp.RequestError.invalid_params({"details": f"Unknown option: {config_id}"})
        await self._choose("model", value, session_id, self._script.models)
        return {"configOptions": self._offers(self._stages[session_id].conversation)["configOptions"]}

    async def prompt(self, session_id: str, prompt: Sequence[Any], **meta: Any) -> PromptResponse:
        stage = self._stages.get(session_id)
        if stage is None or session_id in self._performances:
            raise acp.RequestError.invalid_params({"details": "Unknown session, or one that is in its turn."})
        text = "".join(block.text for block in prompt if isinstance(block, TextContentBlock))
        prompt_id = meta.get("segue", {}).get("promptId")
        images = sum(isinstance(block, ImageContentBlock) for block in prompt)
        stage.note("prompt", prompt_id=prompt_id, text=text, **({"images": images} if images else {}))
        stage.conversation.add("prompt", prompt_id=prompt_id, text=text)
        return await self._perform(stage, self._turn(text))

    async def cancel(self, session_id: str, **_: Any) -> None:
        if session_id in self._performances:
            self._performances[session_id].cancel()

    async def _perform(self, stage: Stage, turn: Turn) -> PromptResponse:
        performance = self._performances[stage.conversation.token] = Performance(stage)
        try:
            reason = await performance.play(turn.steps)
        finally:
            del self._performances[stage.conversation.token]
        stage.conversation.add("ended", reason=reason)
        return PromptResponse(stop_reason=reason, usage=_usage(performance))

    def _turn(self, prompt: str) -> Turn:
        for turn in self._script.turns:
            if turn.matches(prompt) and (not turn.once or self._memory.first_time(turn.key)):
                return turn
        return DEFAULT_TURN

    def _enter(self, conversation: Conversation, cwd: str) -> Stage:
        stage = self._stages[conversation.token] = Stage(
            client=self._client,
            conversation=conversation,
            directory=Path(cwd),
            memory=self._memory,
            diary=self._diary,
            print_line=self._print_line,
        )
        return stage

    async def _open(self, opening: Opening) -> None:
        """The mishaps of an opening, in the order in which they can still happen."""
        if opening.delay:
            await anyio.sleep(opening.delay)
        if opening.garbage is not None:
            self._print_line(opening.garbage)
        if opening.exit is not None:
            leave(opening.exit)
        if opening.mute:
            mute()
        if opening.hang:
            await anyio.sleep_forever()
        if opening.login:
            raise acp.RequestError.auth_required()
        if opening.error is not None:
            raise acp.RequestError(-32603, opening.error)

    async def _go_on(self, cwd: str, token: str, servers: Any) -> Stage:
        await self._open(self._script.on_load)
        conversation = self._find(token)
        stage = self._enter(conversation, cwd)
        stage.note("resumed", prompts=len(conversation.prompts), **_servers(servers))
        return stage

    def _find(self, token: str) -> Conversation:
        conversation = None if self._script.on_load.reject else self._memory.find(token)
        if conversation is None:
            raise acp.RequestError(-32002, f"Session not found: {token}")
        return conversation

    def _answer(self, stage: Stage) -> dict[str, Any]:
        token = stage.conversation.token
        other = {"sessionId": f"{token}-other"} if self._script.on_load.other_id == "answer" else {}
        return {**other, **self._offers(stage.conversation)}

    # ── modes and models ────────────────────────────────────────────────────────────────────────────

    async def _choose(self, kind: str, wanted: str, token: str, known: Sequence[str]) -> None:
        await self._open(self._script.on_choose)
        stage = self._stages.get(token)
        if stage is None or wanted not in known:
            raise acp.RequestError.invalid_params({"details": f"Unknown {kind}: {wanted}"})
        stage.conversation.add(kind, id=wanted)
        stage.note(kind, id=wanted)

    def _offers(self, conversation: Conversation) -> dict[str, Any]:
        """What can be chosen, and what is; a conversation remembers it."""
        offers: dict[str, Any] = {}
        if modes := self._script.modes:
            available = [{"id": each, "name": each.title()} for each in modes]
            offers["modes"] = {"currentModeId": _current(conversation, "mode", modes), "availableModes": available}
        if models := self._script.models:
            options = [{"value": each, "name": each.title()} for each in models]
            model = {"id": "model", "name": "Model", "category": "model", "type": "select", "options": options}
            offers["configOptions"] = [{**model, "currentValue": _current(conversation, "model", models)}]
        return offers

    async def _replay(self, stage: Stage) -> None:
        token = stage.conversation.token
        if self._script.on_load.other_id == "updates":
            token = f"{token}-other"
        for update in (_replayed(line) for line in stage.conversation):
            if update is not None:
                await self._client.session_update(session_id=token, update=update)


def _current(conversation: Conversation, kind: str, known: Sequence[str]) -> str:
    chosen = conversation.last(kind, "id")
    return chosen if chosen is not None and chosen in known else known[0]


def _servers(given: Sequence[Any] | None) -> dict[str, Any]:
    return {"servers": [each.name for each in given]} if given else {}


def _replayed(line: Line) -> Any:
    match line["kind"]:
        case "prompt":
            return acp.update_user_message_text(line["text"])
        case "message":
            return acp.update_agent_message_text(line["text"])
        case "thought":
            return acp.update_agent_thought_text(line["text"])
        case "tool":
            return acp.start_tool_call(
                line["call_id"], line["title"], kind=line["tool"], status="pending", raw_input=line["input"]
            )
        case "tool_finished":
            content = [acp.tool_content(acp.text_block(line["output"]))]
            return acp.update_tool_call(line["call_id"], status=line["status"], content=content)
        case _:
            return None


def _usage(performance: Performance) -> Usage | None:
    tokens = performance.tokens
    if tokens is None or tokens.input is None or tokens.output is None:
        return None
    return Usage(input_tokens=tokens.input, output_tokens=tokens.output, total_tokens=tokens.input + tokens.output)

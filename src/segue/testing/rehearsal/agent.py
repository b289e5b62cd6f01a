"""The agent's side of the protocol: it opens conversations, and plays a turn of the script for each prompt."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from segue import __version__
from segue.drivers.skeleton import payloads
from segue.drivers.skeleton.jsonrpc import (
    INTERNAL_ERROR,
    LOGIN_REQUIRED,
    Parameters,
    RequestError,
    invalid_params,
    session_not_found,
)
from segue.drivers.skeleton.payloads import Payload, StopReason, present
from segue.drivers.skeleton.wire import Methods, Wire, open_wire
from segue.testing.rehearsal.conversation_store import ConversationStore, StoredConversation
from segue.testing.rehearsal.diary import Diary
from segue.testing.rehearsal.line_file import Line
from segue.testing.rehearsal.performance import Performance
from segue.testing.rehearsal.script import DEFAULT_TURN, Opening, Script, Tokens, Turn
from segue.testing.rehearsal.session import RehearsalSession, leave, mute


async def serve(script: Script, memory: ConversationStore, diary: Diary) -> None:
    """Serve the agent's side of the protocol until standard input ends."""
    wire = await open_wire()
    await wire.serve(RehearsalAgent(script, memory, diary, wire).methods())


class RehearsalAgent:
    """Rehearsal agent: it answers the protocol's requests as scripted."""

    def __init__(self, script: Script, memory: ConversationStore, diary: Diary, wire: Wire) -> None:
        self._script = script
        self._memory = memory
        self._diary = diary
        self._wire = wire
        self._stages: dict[str, RehearsalSession] = {}
        self._performances: dict[str, Performance] = {}

    def methods(self) -> Methods:
        """Return the handlers of the protocol's methods."""
        return Methods(
            requests={
                "initialize": self._initialize,
                "session/new": self._new,
                "session/load": self._load,
                "session/resume": self._resume,
                "session/fork": self._fork,
                "session/list": self._list,
                "session/close": self._close,
                "session/set_mode": self._set_mode,
                "session/set_config_option": self._set_option,
                "session/prompt": self._prompt,
            },
            notifications={"session/cancel": self._cancel},
        )

    async def _initialize(self, _: Parameters) -> Payload:
        """Perform the scripted failures, and return name and capabilities."""
        await self._open(self._script.on_initialize)
        can = self._script.capabilities
        return payloads.introduction(
            "rehearsal",
            __version__,
            load=can.load,
            images=can.images,
            mcp=("http",),
            sessions=[each for each in ("resume", "fork", "list", "close") if getattr(can, each)],
        )

    async def _new(self, given: Parameters) -> Payload:
        """Begin a conversation after the scripted failures, and return its token with its options."""
        cwd, servers = given.text("cwd"), given.objects("mcpServers")
        await self._open(self._script.on_new)
        stage = self._enter(self._memory.begin(), cwd)
        stage.conversation.add("opened", directory=cwd)
        stage.note("started", **_names(servers))
        return {"sessionId": stage.conversation.token, **self._offers(stage.conversation)}

    async def _load(self, given: Parameters) -> Payload:
        """Continue a conversation, and replay it to the client if the script wants that."""
        stage = await self._go_on(given.text("cwd"), given.text("sessionId"), given.objects("mcpServers"))
        if self._script.on_load.replay:
            await self._replay(stage)
        return self._answer(stage)

    async def _resume(self, given: Parameters) -> Payload:
        """Continue a conversation without a replay."""
        servers = given.optional_objects("mcpServers")
        return self._answer(await self._go_on(given.text("cwd"), given.text("sessionId"), servers))

    async def _fork(self, given: Parameters) -> Payload:
        """Copy a conversation, and return the copy's token with its options."""
        cwd, token, servers = given.text("cwd"), given.text("sessionId"), given.optional_objects("mcpServers")
        await self._open(self._script.on_load)
        copy = self._memory.copy(self._find(token))
        self._enter(copy, cwd).note("forked", of=token, prompts=len(copy.prompts), **_names(servers))
        return {"sessionId": copy.token, **self._offers(copy)}

    async def _list(self, given: Parameters) -> Payload:
        """List the stored conversations of a directory."""
        cwd = given.values.get("cwd") or ""
        return {
            "sessions": [
                {"sessionId": each.token, "cwd": cwd, "title": " ".join(each.prompts[:1]), "updatedAt": at}
                for each, at in self._memory.all(cwd)
            ]
        }

    async def _close(self, given: Parameters) -> Payload:
        """Close a conversation; one that is not open is no error."""
        if stage := self._stages.pop(given.text("sessionId"), None):
            stage.note("closed")
        return {}

    async def _set_mode(self, given: Parameters) -> Payload:
        """Set the mode of a conversation."""
        await self._choose("mode", given.text("modeId"), given.text("sessionId"), self._script.modes)
        return {}

    async def _set_option(self, given: Parameters) -> Payload:
        """Set the model of a conversation, and return the options."""
        option, token = given.text("configId"), given.text("sessionId")
        if option != "model":
            raise invalid_params(f"Unknown option: {option}")
        await self._choose("model", given.text("value"), token, self._script.models)
        return {"configOptions": self._offers(self._stages[token].conversation)["configOptions"]}

    async def _prompt(self, given: Parameters) -> Payload:
        """Note the prompt, play the turn that matches it, and return the turn's end."""
        token, blocks = given.text("sessionId"), given.objects("prompt")
        stage = self._stages.get(token)
        if stage is None or token in self._performances:
            raise invalid_params("Unknown session, or one that is in its turn.")
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        images = sum(block["type"] == "image" for block in blocks)
        prompt_id = given.extension().get("promptId")
        stage.note("prompt", prompt_id=prompt_id, text=text, **({"images": images} if images else {}))
        stage.conversation.add("prompt", prompt_id=prompt_id, text=text)
        return await self._perform(stage, self._turn(text))

    async def _cancel(self, given: Parameters) -> None:
        """Cancel the conversation's turn, if there is one."""
        if performance := self._performances.get(given.text("sessionId")):
            performance.cancel()

    async def _perform(self, stage: RehearsalSession, turn: Turn) -> Payload:
        """Play a turn, note its end, and return the end with its tokens."""
        performance = self._performances[stage.conversation.token] = Performance(stage)
        try:
            reason = await performance.play(turn.steps)
        finally:
            del self._performances[stage.conversation.token]
        stage.conversation.add("ended", reason=reason)
        stage.note("ended", reason=reason)
        return _turn_ended(reason, performance.tokens)

    def _turn(self, prompt: str) -> Turn:
        """Return the first scripted turn that matches, or the default; one marked `once` is played once."""
        for turn in self._script.turns:
            if turn.matches(prompt) and (not turn.once or self._memory.first_time(turn.key)):
                return turn
        return DEFAULT_TURN

    def _enter(self, conversation: StoredConversation, cwd: str) -> RehearsalSession:
        """Return the session of a conversation in this directory, and keep it as open."""
        stage = self._stages[conversation.token] = RehearsalSession(
            wire=self._wire,
            conversation=conversation,
            directory=Path(cwd),
            memory=self._memory,
            diary=self._diary,
        )
        return stage

    async def _open(self, opening: Opening) -> None:
        """Perform the failures of an opening, in the only order in which all can occur."""
        if opening.delay:
            await asyncio.sleep(opening.delay)
        if opening.garbage is not None:
            self._wire.print_line(opening.garbage)
        if opening.exit is not None:
            leave(opening.exit)
        if opening.mute:
            mute()
        if opening.hang:
            await asyncio.Event().wait()
        if opening.login:
            raise RequestError(LOGIN_REQUIRED, "Authentication required")
        if opening.error is not None:
            raise RequestError(INTERNAL_ERROR, opening.error)

    async def _go_on(self, cwd: str, token: str, servers: Sequence[Mapping[str, Any]]) -> RehearsalSession:
        """Continue a stored conversation after the scripted failures; raise an error if it is unknown."""
        await self._open(self._script.on_load)
        conversation = self._find(token)
        stage = self._enter(conversation, cwd)
        stage.note("resumed", prompts=len(conversation.prompts), **_names(servers))
        return stage

    def _find(self, token: str) -> StoredConversation:
        """Return a stored conversation; raise an error if it is unknown or the script rejects it."""
        conversation = None if self._script.on_load.reject else self._memory.find(token)
        if conversation is None:
            raise session_not_found(token)
        return conversation

    def _answer(self, stage: RehearsalSession) -> Payload:
        """Return the options of a conversation, with a wrong token if the script wants that."""
        token = stage.conversation.token
        other = {"sessionId": f"{token}-other"} if self._script.on_load.other_id == "answer" else {}
        return {**other, **self._offers(stage.conversation)}

    # ── modes and models ────────────────────────────────────────────────────────────────────────────

    async def _choose(self, kind: str, wanted: str, token: str, known: Sequence[str]) -> None:
        """Store the choice of a mode or model; raise an error if it is unknown."""
        await self._open(self._script.on_choose)
        stage = self._stages.get(token)
        if stage is None or wanted not in known:
            raise invalid_params(f"Unknown {kind}: {wanted}")
        stage.conversation.add(kind, id=wanted)
        stage.note(kind, id=wanted)

    def _offers(self, conversation: StoredConversation) -> Payload:
        """Return the available modes and models, and the conversation's present ones."""
        offers: Payload = {}
        if modes := self._script.modes:
            offers["modes"] = payloads.modes(_titles(modes), _current(conversation, "mode", modes))
        if models := self._script.models:
            current = _current(conversation, "model", models)
            offers["configOptions"] = [payloads.model_option(_titles(models), current)]
        return offers

    async def _replay(self, stage: RehearsalSession) -> None:
        """Send the conversation's earlier updates, under a wrong token if the script wants that."""
        token = stage.conversation.token
        if self._script.on_load.other_id == "updates":
            token = f"{token}-other"
        for update in (_replayed(line) for line in stage.conversation):
            if update is not None:
                await self._wire.notify("session/update", {"sessionId": token, "update": update})


def _current(conversation: StoredConversation, kind: str, known: Sequence[str]) -> str:
    """Return the chosen mode or model, or the first one."""
    chosen = conversation.last(kind, "id")
    return chosen if chosen is not None and chosen in known else known[0]


def _names(servers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the names of the MCP servers for the diary; empty for none."""
    return {"servers": [each["name"] for each in servers]} if servers else {}


def _titles(names: Sequence[str]) -> dict[str, str]:
    """Return a title for each name."""
    return {name: name.title() for name in names}


def _turn_ended(reason: StopReason, counted: Sequence[Tokens]) -> Payload:
    """Return the end of a turn with its tokens, if they are known, and once more for each model that has a name."""
    if not counted:
        return payloads.turn_ended(reason)
    cached = [each.cached for each in counted if each.cached is not None]
    new, output = sum(each.input for each in counted), sum(each.output for each in counted)
    named = [
        {
            "model": each.model,
            "token_count": present(
                {"inputTokens": each.input, "outputTokens": each.output, "cachedInputTokens": each.cached}
            ),
        }
        for each in counted
        if each.model is not None
    ]
    meta = {"quota": {"model_usage": named}} if named else None
    return payloads.turn_ended(reason, payloads.tokens(new, output, sum(cached) if cached else None), meta)


def _replayed(line: Line) -> Payload | None:
    """Return a stored line as an update; None for lines that are not replayed."""
    match line["kind"]:
        case "prompt":
            return payloads.user_message(line["text"])
        case "message":
            return payloads.message(line["text"])
        case "thought":
            return payloads.thought(line["text"])
        case "tool":
            call = payloads.call(line["call_id"], line["title"], line["tool"], given=line["input"])
            return payloads.call_started(call, "pending")
        case "tool_finished":
            return payloads.call_ended(line["call_id"], line["status"], line["output"])
        case _:
            return None

"""Performance of one turn of the script, on the files and processes of the session's directory."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal, assert_never

from segue.drivers.skeleton import payloads
from segue.drivers.skeleton.jsonrpc import RequestError
from segue.drivers.skeleton.payloads import OPTIONS, StopReason, ToolStatus
from segue.testing.rehearsal.effects import Effects, ReportedCall, describe
from segue.testing.rehearsal.script import (
    Aside,
    Ask,
    Compact,
    Crash,
    ExceedWindow,
    Exit,
    Fail,
    Garbage,
    Hang,
    Mute,
    PlainAction,
    Recall,
    Say,
    Step,
    Stream,
    Think,
    Todo,
    Tokens,
    ToolAction,
    Usage,
    WaitFor,
)
from segue.testing.rehearsal.session import RehearsalSession, die_if, leave, mute

Fate = Literal["before", "after"] | None
"""Crash before or after a step's effect."""

_LOOK_EVERY = 0.01


class TurnStopped(Exception):
    """The script ends the turn before its last step."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason: StopReason = reason


class Performance:
    """Turn that is being played."""

    def __init__(self, stage: RehearsalSession) -> None:
        self._stage = stage
        self._tools = Effects(stage)
        self._task = asyncio.current_task()
        self._cancelled = False
        self._deaf = False
        self.tokens: list[Tokens] = []

    async def play(self, steps: Sequence[Step]) -> StopReason:
        """Play all steps, and return the reason for which the turn ended."""
        try:
            await self._play(steps)
        except TurnStopped as stop:
            return stop.reason
        except asyncio.CancelledError:
            # At the end of the process no client is left to answer.
            if not self._cancelled:
                raise
            return "cancelled"
        return "end_turn"

    def cancel(self) -> None:
        """Cancel the turn once; a step that hangs deaf ignores it."""
        if self._task is not None and not self._deaf and not self._cancelled:
            self._cancelled = True
            self._task.cancel()

    async def _play(self, steps: Sequence[Step]) -> None:
        """Play these steps in order."""
        for step in steps:
            await self._step(step)

    async def _step(self, step: Step, fate: Fate = None) -> None:
        """Play one step; `fate` makes the agent die before or after its effect. A `once` step is skipped if played."""
        spent = step.once and not self._stage.memory.first_time(step.key)
        match step.action:
            case Crash(when, of):
                await self._crash(None if spent else when, of)
            case _ if spent:
                pass
            case action:
                await self._act(step, action, fate)

    async def _act(self, step: Step, action: ToolAction | PlainAction, fate: Fate) -> None:
        """Play an action, and die before or after it if `fate` is so."""
        if isinstance(action, ToolAction):
            await self._use_tool(step, action, fate)
            return
        die_if(fate == "before")
        await self._speak(action)
        die_if(fate == "after")

    async def _crash(self, when: Literal["now", "before", "after"] | None, of: Step | None) -> None:
        """Die at once, or before or after the effect of a step; None plays the step without a crash."""
        die_if(when == "now")
        if of is not None:
            await self._step(of, None if when == "now" else when)

    async def _speak(self, action: PlainAction) -> None:
        """Play an action that is no tool: text, usage, questions, waiting or a failure."""
        match action:
            case Think(text):
                self._stage.conversation.add("thought", text=text)
                await self._stage.send(payloads.thought(text))
            case Say(text):
                await self._say(text)
            case Stream(text, chunks):
                await self._say(*(text.replace("{n}", str(number)) for number in range(1, chunks + 1)))
            case Recall():
                earlier = self._stage.conversation.prompts[:-1]
                await self._say("\n".join(["I remember:", *earlier]) if earlier else "I remember nothing.")
            case Todo(entries):
                await self._stage.send({"sessionUpdate": "plan", "entries": [asdict(each) for each in entries]})
            case Usage():
                if action.tokens is not None:
                    self.tokens.append(action.tokens)
                if action.used is not None and action.size is not None:
                    await self._stage.send(payloads.window(action.used, action.size, action.cost))
            case Compact(before, after):
                await self._compact(before, after)
            case WaitFor(path):
                # There is no portable notification of a new file.
                while not self._stage.path(path).exists():  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_EVERY)
            case Ask():
                await self._ask(action)
            case Aside(steps):
                self._stage.play_aside(self._play(steps))
            case Hang(deaf):
                self._deaf = deaf
                await asyncio.Event().wait()
            case ExceedWindow():
                raise TurnStopped("max_tokens")
            case Fail(message, code):
                raise RequestError(code, message)
            case Mute():
                mute()
            case Garbage(line):
                self._stage.wire.print_line(line)
            case Exit(code):
                leave(code)
            case _:
                assert_never(action)

    async def _say(self, *chunks: str) -> None:
        """Store a message, and send it in these pieces."""
        self._stage.conversation.add("message", text="".join(chunks))
        for chunk in chunks:
            await self._stage.send(payloads.message(chunk))

    async def _compact(self, before: int, after: int) -> None:
        """Send the beginning and the end of a compaction, in the form that claude uses."""
        call = payloads.call(_call_id(), "Compact conversation", "think")
        meta = {"claudeCode": {"toolName": "compact"}}
        await self._stage.send(payloads.call_started(call, "in_progress", meta=meta))
        raw = {"preTokens": before, "postTokens": after}
        await self._stage.send(payloads.call_ended(call["toolCallId"], "completed", raw=raw, meta=meta))

    async def _ask(self, ask: Ask) -> None:
        """Ask the user a question as a call, and play the steps for the answer."""
        call = ReportedCall(title=ask.title, tool="other", input={"question": ask.title})
        call_id = await self._announce(call, "pending")
        allowed = await self._permitted(call_id, call, ask.title)
        await self._finish(call_id, "completed" if allowed else "failed", "Allowed." if allowed else "Refused.")
        await self._play(ask.then if allowed else ask.otherwise)

    # ── tool calls ──────────────────────────────────────────────────────────────────────────────────

    async def _use_tool(self, step: Step, action: ToolAction, fate: Fate) -> None:
        """Report, perform and end a tool call, after permission if the step asks for it."""
        call = describe(action)
        call_id = await self._announce(call, "in_progress" if step.ask is None else "pending")
        if step.ask is not None and not await self._permitted(call_id, call, step.ask or call.title):
            await self._finish(call_id, "failed", "Refused.")
            return
        die_if(fate == "before")
        status, output = await self._effect(call_id, action)
        die_if(fate == "after")
        await self._finish(call_id, status, output)

    async def _announce(self, call: ReportedCall, status: ToolStatus) -> str:
        """Store and report a new call, and return its id."""
        call_id = _call_id()
        self._stage.conversation.add(
            "tool", call_id=call_id, title=call.title, tool=call.tool, input=call.input, paths=call.paths
        )
        paths = [str(self._stage.path(path)) for path in call.paths]
        started = payloads.call(call_id, call.title, call.tool, paths=paths, given=call.input)
        await self._stage.send(payloads.call_started(started, status))
        return call_id

    async def _permitted(self, call_id: str, call: ReportedCall, question: str) -> bool:
        """Ask the client for permission, note the answer, and return True if it is allowed."""
        asked = payloads.call(call_id, question, call.tool, given=call.input)
        answer = await self._stage.request("session/request_permission", toolCall=asked, options=OPTIONS)
        outcome = answer["outcome"]
        option = outcome.get("optionId")
        self._stage.note("answer", call_id=call_id, title=question, outcome=outcome["outcome"], option=option)
        return option == "allow"

    async def _effect(self, call_id: str, action: ToolAction) -> tuple[ToolStatus, str]:
        """Perform an action; if the turn is cancelled the call ends as failed."""
        try:
            return await self._tools.use(action)
        except asyncio.CancelledError:
            if self._cancelled:
                await self._finish(call_id, "failed", "Cancelled.")
            raise

    async def _finish(self, call_id: str, status: ToolStatus, output: str) -> None:
        """Store and report the end of a call."""
        self._stage.conversation.add("tool_finished", call_id=call_id, status=status, output=output)
        await self._stage.send(payloads.call_ended(call_id, status, output))


def _call_id() -> str:
    return f"call-{secrets.token_hex(6)}"

"""Playing one turn of the script: for real, on the files and processes of the session's directory."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, assert_never

import acp
import anyio
from acp.schema import (
    AllowedOutcome,
    Cost,
    PermissionOption,
    StopReason,
    ToolCallLocation,
    ToolCallStatus,
    ToolCallUpdate,
    ToolKind,
    UsageUpdate,
)

from segue.testing.rehearsal.conversation import Conversation, Memory
from segue.testing.rehearsal.diary import Diary
from segue.testing.rehearsal.script import (
    Ask,
    ClientRead,
    ClientRun,
    ClientWrite,
    Compact,
    Crash,
    Edit,
    ExceedWindow,
    Exit,
    Fail,
    Garbage,
    Hang,
    Mute,
    PlainAction,
    Recall,
    Run,
    Say,
    Spawn,
    Step,
    Stream,
    Think,
    Todo,
    ToolAction,
    Touch,
    Usage,
    WaitFor,
    Write,
)

Fate = Literal["before", "after"] | None
"""On which side of a step's effect the process dies."""

OPTIONS = [
    PermissionOption(option_id="allow", name="Allow", kind="allow_once"),
    PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
]

_LOOK_EVERY = 0.01


class TurnStopped(Exception):
    """The script ends the turn before its last step."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason: StopReason = reason


class ToolFailed(Exception):
    """The tool call had no effect; the message is its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where turns are played: one conversation with one client, in one directory."""

    client: acp.Client
    conversation: Conversation
    directory: Path
    memory: Memory
    diary: Diary
    print_line: Callable[[str], None]

    async def send(self, update: Any) -> None:
        await self.client.session_update(session_id=self.conversation.token, update=update)

    def note(self, kind: str, **details: Any) -> None:
        self.diary.write(kind, session=self.conversation.token, **details)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call as the client sees it."""

    title: str
    tool: ToolKind
    input: dict[str, Any]
    paths: tuple[str, ...] = ()


class Performance:
    """One turn being played."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._cancelled = False
        self._deaf = False
        self._scope = anyio.CancelScope()
        self.tokens: Usage | None = None

    async def play(self, steps: Sequence[Step]) -> StopReason:
        try:
            with self._scope:
                await self._play(steps)
                return "end_turn"
        except TurnStopped as stop:
            return stop.reason
        return "cancelled"

    def cancel(self) -> None:
        if not self._deaf:
            self._cancelled = True
            self._scope.cancel()

    async def _play(self, steps: Sequence[Step]) -> None:
        for step in steps:
            await self._step(step)

    async def _step(self, step: Step, fate: Fate = None) -> None:
        spent = step.once and not self._stage.memory.first_time(step.key)
        match step.action:
            case Crash(when, of):
                await self._crash(None if spent else when, of)
            case _ if spent:
                pass
            case action:
                await self._act(step, action, fate)

    async def _act(self, step: Step, action: ToolAction | PlainAction, fate: Fate) -> None:
        if isinstance(action, ToolAction):
            await self._use_tool(step, action, fate)
            return
        _die_if(fate == "before")
        await self._speak(action)
        _die_if(fate == "after")

    async def _crash(self, when: Literal["now", "before", "after"] | None, of: Step | None) -> None:
        _die_if(when == "now")
        if of is not None:
            await self._step(of, None if when == "now" else when)

    async def _speak(self, action: PlainAction) -> None:
        match action:
            case Think(text):
                self._stage.conversation.add("thought", text=text)
                await self._stage.send(acp.update_agent_thought_text(text))
            case Say(text):
                await self._say(text)
            case Stream(text, chunks):
                await self._say(*(text.replace("{n}", str(number)) for number in range(1, chunks + 1)))
            case Recall():
                earlier = self._stage.conversation.prompts[:-1]
                await self._say("\n".join(["I remember:", *earlier]) if earlier else "I remember nothing.")
            case Todo(entries):
                plan = [acp.plan_entry(each.content, status=each.status, priority=each.priority) for each in entries]
                await self._stage.send(acp.update_plan(plan))
            case Usage():
                await self._report_usage(action)
            case Compact(before, after):
                await self._compact(before, after)
            case WaitFor(path):
                await self._wait_for(path)
            case Ask():
                await self._ask(action)
            case Hang(deaf):
                self._deaf = deaf
                await anyio.sleep_forever()
            case ExceedWindow():
                raise TurnStopped("max_tokens")
            case Fail(message, code):
                raise acp.RequestError(code, message)
            case Mute():
                mute()
            case Garbage(line):
                self._stage.print_line(line)
            case Exit(code):
                leave(code)
            case _:
                assert_never(action)

    async def _say(self, *chunks: str) -> None:
        self._stage.conversation.add("message", text="".join(chunks))
        for chunk in chunks:
            await self._stage.send(acp.update_agent_message_text(chunk))

    async def _report_usage(self, usage: Usage) -> None:
        if usage.input is not None:
            self.tokens = usage
        if usage.used is not None and usage.size is not None:
            cost = None if usage.cost is None else Cost(amount=usage.cost, currency="USD")
            await self._stage.send(
                UsageUpdate(session_update="usage_update", used=usage.used, size=usage.size, cost=cost)
            )

    async def _compact(self, before: int, after: int) -> None:
        """As claude tells it."""
        call_id, meta = f"call-{secrets.token_hex(6)}", {"claudeCode": {"toolName": "compact"}}
        start = acp.start_tool_call(call_id, "Compact conversation", kind="think", status="in_progress")
        counted = {"preTokens": before, "postTokens": after}
        end = acp.update_tool_call(call_id, status="completed", raw_output=counted)
        for update in (start, end):
            update.field_meta = meta
            await self._stage.send(update)

    async def _wait_for(self, path: str) -> None:
        # There is no portable way to be told of a file that appears.
        while not self._path(path).exists():  # noqa: ASYNC110
            await anyio.sleep(_LOOK_EVERY)

    async def _ask(self, ask: Ask) -> None:
        call = Call(title=ask.title, tool="other", input={"question": ask.title})
        call_id = await self._announce(call, "pending")
        allowed = await self._permitted(call_id, call, ask.title)
        await self._finish(call_id, "completed" if allowed else "failed", "Allowed." if allowed else "Refused.")
        await self._play(ask.then if allowed else ask.otherwise)

    # ── tool calls ──────────────────────────────────────────────────────────────────────────────────

    async def _use_tool(self, step: Step, action: ToolAction, fate: Fate) -> None:
        call = self._describe(action)
        call_id = await self._announce(call, "in_progress" if step.ask is None else "pending")
        if step.ask is not None and not await self._permitted(call_id, call, step.ask or call.title):
            await self._finish(call_id, "failed", "Refused.")
            return
        _die_if(fate == "before")
        status, output = await self._effect(call_id, action)
        _die_if(fate == "after")
        await self._finish(call_id, status, output)

    def _describe(self, action: ToolAction) -> Call:
        match action:
            case Write(path, content):
                given = {"path": path, "content": content}
                return Call(title=f"Write {path}", tool="edit", input=given, paths=(path,))
            case Edit(path, find, replace):
                given = {"path": path, "find": find, "replace": replace}
                return Call(title=f"Edit {path}", tool="edit", input=given, paths=(path,))
            case Run(command):
                return Call(title=command, tool="execute", input={"command": command})
            case Spawn(command):
                return Call(title=f"{command} &", tool="execute", input={"command": command, "background": True})
            case Touch(path):
                return Call(title=f"Touch {path}", tool="edit", input={"path": path}, paths=(path,))
            case ClientRead(path):
                return Call(title=f"Read {path}", tool="read", input={"path": path}, paths=(path,))
            case ClientWrite(path, content):
                given = {"path": path, "content": content}
                return Call(title=f"Write {path}", tool="edit", input=given, paths=(path,))
            case ClientRun(command):
                return Call(title=command, tool="execute", input={"command": command})
            case _:
                assert_never(action)

    async def _announce(self, call: Call, status: ToolCallStatus) -> str:
        call_id = f"call-{secrets.token_hex(6)}"
        self._stage.conversation.add(
            "tool", call_id=call_id, title=call.title, tool=call.tool, input=call.input, paths=call.paths
        )
        await self._stage.send(
            acp.start_tool_call(
                call_id,
                call.title,
                kind=call.tool,
                status=status,
                locations=[ToolCallLocation(path=str(self._path(path))) for path in call.paths],
                raw_input=call.input,
            )
        )
        return call_id

    async def _permitted(self, call_id: str, call: Call, question: str) -> bool:
        answer = await self._stage.client.request_permission(
            session_id=self._stage.conversation.token,
            tool_call=ToolCallUpdate(tool_call_id=call_id, title=question, kind=call.tool, raw_input=call.input),
            options=OPTIONS,
        )
        option = answer.outcome.option_id if isinstance(answer.outcome, AllowedOutcome) else None
        self._stage.note("answer", call_id=call_id, title=question, outcome=answer.outcome.outcome, option=option)
        return option == "allow"

    async def _effect(self, call_id: str, action: ToolAction) -> tuple[ToolCallStatus, str]:
        try:
            match action:
                case Run(command):
                    return await self._run(command)
                case ClientRun(command):
                    return await self._client_run(command)
                case ClientRead() | ClientWrite():
                    return "completed", await self._client_file(action)
                case _:
                    return "completed", self._do(action)
        except (ToolFailed, OSError, acp.RequestError) as error:
            return "failed", str(error)
        except asyncio.CancelledError:
            # At the end of the process nobody is left to be told.
            if self._cancelled:
                with anyio.CancelScope(shield=True):
                    await self._finish(call_id, "failed", "Cancelled.")
            raise

    def _do(self, action: Write | Edit | Spawn | Touch) -> str:
        match action:
            case Write(path, content):
                self._path(path).parent.mkdir(parents=True, exist_ok=True)
                self._path(path).write_text(content)
                self._stage.note("effect", what="write", path=path)
                return f"Wrote {path}."
            case Edit(path, find, replace):
                self._replace(path, find, replace)
                self._stage.note("effect", what="edit", path=path)
                return f"Edited {path}."
            case Spawn(command):
                pid = self._spawn(command)
                self._stage.note("effect", what="spawn", command=command, pid=pid)
                return f"Started {pid}."
            case Touch(path):
                self._path(path).touch()
                self._stage.note("effect", what="touch", path=path)
                return f"Touched {path}."
            case _:
                assert_never(action)

    def _replace(self, path: str, find: str, replace: str) -> None:
        text = self._path(path).read_text()
        if text.count(find) != 1:
            raise ToolFailed(f"{find!r} stands {text.count(find)} times in {path}; it must stand there once.")
        self._path(path).write_text(text.replace(find, replace))

    def _spawn(self, command: str) -> int:
        return subprocess.Popen(
            command,
            shell=True,
            cwd=self._stage.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ).pid

    async def _run(self, command: str) -> tuple[ToolCallStatus, str]:
        process = await asyncio.create_subprocess_shell(
            command,
            cwd=self._stage.directory,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = await process.communicate()
        except asyncio.CancelledError:
            os.killpg(process.pid, signal.SIGKILL)
            with anyio.CancelScope(shield=True):
                await process.wait()
            raise
        self._stage.note("effect", what="run", command=command, exit_code=process.returncode)
        text = output.decode(errors="replace")
        return ("completed", text) if process.returncode == 0 else ("failed", f"{text}\nExit code {process.returncode}")

    async def _client_file(self, action: ClientRead | ClientWrite) -> str:
        client, token, path = self._stage.client, self._stage.conversation.token, str(self._path(action.path))
        if isinstance(action, ClientRead):
            answer = await client.read_text_file(session_id=token, path=path, line=action.line, limit=action.limit)
            self._stage.note("effect", what="client_read", path=action.path)
            return answer.content
        await client.write_text_file(session_id=token, path=path, content=action.content)
        self._stage.note("effect", what="client_write", path=action.path)
        return f"Wrote {action.path}."

    async def _client_run(self, command: str) -> tuple[ToolCallStatus, str]:
        client, token = self._stage.client, self._stage.conversation.token
        terminal = (await client.create_terminal(session_id=token, command=command)).terminal_id
        end = await client.wait_for_terminal_exit(session_id=token, terminal_id=terminal)
        output = await client.terminal_output(session_id=token, terminal_id=terminal)
        await client.release_terminal(session_id=token, terminal_id=terminal)
        self._stage.note("effect", what="client_run", command=command, exit_code=end.exit_code)
        return "completed" if end.exit_code == 0 else "failed", output.output

    async def _finish(self, call_id: str, status: ToolCallStatus, output: str) -> None:
        self._stage.conversation.add("tool_finished", call_id=call_id, status=status, output=output)
        content = [acp.tool_content(acp.text_block(output))]
        await self._stage.send(acp.update_tool_call(call_id, status=status, content=content))

    def _path(self, path: str) -> Path:
        return self._stage.directory / path


def leave(code: int) -> NoReturn:
    """Exit as the script says, at once."""
    sys.stderr.write(f"rehearsal: exit {code}, as the script says\n")
    sys.stderr.flush()
    os._exit(code)


def mute() -> None:
    """Nobody hears this process any more, and it does not know."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _die_if(condition: bool) -> None:
    if condition:
        os.kill(os.getpid(), signal.SIGKILL)

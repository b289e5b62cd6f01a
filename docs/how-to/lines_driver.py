"""Driver for agents that print one JSON object per line; see `docs/how-to/write-a-driver.md`."""

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio

from segue.drivers import Agent, Capabilities, Driver, Image, Introduction, Launch
from segue.drivers.open_questions import ALLOW, REJECT
from segue.drivers.stream import Events
from segue.drivers.task_groups import tasks_for_the_body
from segue.model import errors
from segue.model import events as e
from segue.model.ids import PromptId, RequestId, new_request_id
from segue.workspace.processes import GuardedProcess, guarded


class LinesAgent:
    name, version, capabilities = "lines", "1", Capabilities(resume=True)

    def __init__(self, process: GuardedProcess, token: str) -> None:
        self.pid, self.guardian_pid, self.token = process.pid, process.guardian_pid, token
        self._process, self._stream, self._gone = process, Events(), False
        self._turn, self._question = PromptId(""), RequestId("")

    def events(self) -> Events:
        return self._stream

    async def prompt(self, prompt_id: PromptId, text: str, images: Sequence[Image] = ()) -> None:
        if self._gone:
            raise errors.AgentExited
        if self._turn:
            raise errors.WrongState("The agent is still in its turn.")
        self._turn = prompt_id
        self._send(prompt=text)

    async def cancel(self) -> None:
        self._question = RequestId("")
        if self._turn and not self._gone:
            self._send(cancel=True)

    async def answer(self, request_id: RequestId, option: str | None, words: str = "") -> None:
        if request_id != self._question:
            raise errors.NothingToAnswer
        if option not in (ALLOW.id, REJECT.id, None):
            raise errors.BadInput(f"{option!r} is no answer to this question.")
        self._question = RequestId("")
        self._send(allowed=option == ALLOW.id)

    async def close(self) -> None: ...

    async def listen(self) -> None:
        async for line in self._process.stdout:
            self._stream.give(*self._parse(json.loads(line)))
        self._gone, self._question = True, RequestId("")
        self._stream.end(e.AgentExited(code=await self._process.wait(), detail=self._process.stderr_tail()))

    def _parse(self, line: e.JsonObject) -> Iterator[e.AgentEvent]:
        match line:
            case {"say": text}:
                yield e.TextDelta(role="message", text=text)
            case {"used": tokens}:
                yield e.UsageReported(context_tokens=tokens)
            case {"call": id, "path": path}:
                self._question, name, two = new_request_id(), f"Write {path}", (ALLOW, REJECT)
                yield e.ToolCalled(call_id=id, title=name, tool="edit", paths=(path,))
                yield e.PermissionRequested(request_id=self._question, call_id=id, title=name, tool="edit", options=two)
            case {"called": id, "status": status}:
                yield e.ToolFinished(call_id=id, status=status)
            case {"end": reason, "why": why}:
                turn, self._turn = self._turn, PromptId("")
                failed = e.TurnFailed(prompt_id=turn, failure=errors.AgentError.failure, message=why)
                yield failed if reason == "failed" else e.TurnEnded(prompt_id=turn, reason=reason)

    def _send(self, **message: object) -> None:
        self._process.stdin.write(f"{json.dumps(message)}\n".encode())


class LinesDriver(Driver):
    @asynccontextmanager
    async def start(self, launch: Launch, *arguments: str) -> AsyncGenerator[Agent]:
        command, home, variables = (*launch.command, *arguments), launch.directory, launch.environment
        async with guarded(command, directory=home, environment=variables, execution=launch.execution) as process:
            with anyio.fail_after(launch.handshake_timeout):
                token = json.loads(await process.stdout.readline() or "{}").get("conversation")
            if arguments and token != arguments[1]:
                raise errors.ConversationMismatch if token else errors.TokenRejected
            async with tasks_for_the_body() as tasks:
                agent = LinesAgent(process, token)
                tasks.start_soon(agent.listen)
                yield agent
        agent.events().end(e.AgentExited(code=None, detail="Segue ended the agent."))

    def resume(self, launch: Launch, token: str) -> AbstractAsyncContextManager[Agent]:
        return self.start(launch, "--resume", token)

    async def introduce(self, launch: Launch) -> Introduction:
        return Introduction(name=LinesAgent.name, version=LinesAgent.version, capabilities=LinesAgent.capabilities)

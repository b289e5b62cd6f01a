"""Talks to any agent that speaks the Agent Client Protocol on its standard input and output.

The library pairs requests with their answers. It also gives every incoming message a task of its own, in the order of
arrival; that order survives because a message becomes events without waiting for anything on the way (`Translation`,
`_Events`). What an agent says while it opens an old conversation is its memory and not news, so it is left out.
"""

import asyncio
import json
import logging
import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeGuard, get_args

import anyio
from acp import PROTOCOL_VERSION, RequestError
from acp.core import Connection
from acp.schema import (
    AgentCapabilities,
    InitializeResponse,
    NewSessionResponse,
    RequestPermissionRequest,
    SessionCapabilities,
)
from anyio.abc import TaskGroup, TaskStatus
from pydantic import ValidationError

from segue import __version__
from segue.drivers import Agent, Capabilities, Image, Launch
from segue.drivers.updates import Translation, is_object, shortened, tokens_of_turn
from segue.model import errors
from segue.model.events import (
    AgentEvent,
    AgentExited,
    JsonObject,
    PermissionOption,
    StopReason,
    TextDelta,
    TurnEnded,
)
from segue.model.ids import PromptId, RequestId, new_request_id
from segue.workspace.processes import GuardedProcess, guarded

# Between the end of a process and the end of its output, or the other way round.
_GRACE = 5.0
# What an agent wrote to its standard error last is enough to see why it ended.
_LAST_WORDS = 2_000

_LOGIN_REQUIRED = -32000
_GOING_BACK = ("session/resume", "session/load")
# Resource not found, method not found, invalid params; and what agents say that have no number for it.
_UNKNOWN_CODES = (-32002, -32601, -32602)
_UNKNOWN_WORDS = re.compile(
    r"(session|conversation|thread|rollout|chat)s?\b.*(not found|unknown|not exist)"
    r"|(unknown|invalid|no|no such|no previous) (session|conversation|thread|rollout|chat)"
    r"|^not found",
    re.IGNORECASE,
)
_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")
_NO_CHOICE: JsonObject = {"outcome": {"outcome": "cancelled"}}

_log = logging.getLogger(__name__)


class AcpDriver:
    """Starts agents that speak the Agent Client Protocol."""

    def start(self, launch: Launch) -> AbstractAsyncContextManager[Agent]:
        return _running(launch, None)

    def resume(self, launch: Launch, token: str) -> AbstractAsyncContextManager[Agent]:
        return _running(launch, token)


@asynccontextmanager
async def _running(launch: Launch, token: str | None) -> AsyncGenerator[Agent]:
    events = _Events()
    try:
        async with (
            guarded(
                launch.command,
                directory=launch.directory,
                environment=launch.environment,
                execution=launch.execution,
            ) as process,
            _tasks_for_the_body() as tasks,
            _Conversation(process, events, tasks) as conversation,
        ):
            await conversation.open(launch, token)
            yield conversation
    finally:
        # Whoever still follows the stream sees it end.
        events.end(AgentExited(code=None, detail="Segue ended the agent."))


@asynccontextmanager
async def _tasks_for_the_body() -> AsyncGenerator[TaskGroup]:
    """A task group that ends with its body, and lets the body's own exception out as it is."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:  # noqa: BLE001 - raised below
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


class _Events:
    """The one ordered stream; giving never waits, and after the last event nothing more is taken."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        self._ended = False

    def give(self, *events: AgentEvent) -> None:
        if not self._ended:
            for event in events:
                self._queue.put_nowait(event)

    def end(self, last: AgentEvent) -> None:
        self.give(last)
        if not self._ended:
            self._queue.put_nowait(None)
        self._ended = True

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return self

    async def __anext__(self) -> AgentEvent:
        event = await self._queue.get()
        if event is None:
            self._queue.put_nowait(None)
            raise StopAsyncIteration
        return event


class _Lines:
    """Messages, one to a line. What is no message is left out: some agents print there too."""

    def __init__(self, process: GuardedProcess) -> None:
        self._process = process
        self.ended = anyio.Event()
        self.stray = ""

    async def send(self, message: JsonObject) -> None:
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        await self._process.stdin.drain()

    async def receive(self) -> JsonObject | None:
        while line := await self._line():
            if message := _message(line):
                return message
            self.stray = line.decode(errors="replace").strip() or self.stray
        self.ended.set()
        return None

    async def close(self) -> None:
        """The process owns the pipes."""

    async def _line(self) -> bytes:
        try:
            return await self._process.stdout.readline()
        except ValueError:
            # Longer than the reader's limit, which is far above any real message.
            _log.warning("an agent's line was too long and is left out")
            return b"\n"


def _message(line: bytes) -> JsonObject | None:
    """What the library can digest: its receiving end does not survive other shapes."""
    try:
        message: object = _mended(line) if _HALF_CHARACTER.search(line) else json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not is_object(message) or not isinstance(message.get("id", 0), int | str | None):
        return None
    if "error" in message and not is_object(message["error"]):
        message["error"] = {"message": str(message["error"])}
    return message


def _mended(line: bytes) -> object:
    """The message with a mark in place of every character that the agent cut in two between its chunks."""
    text = json.dumps(json.loads(line), ensure_ascii=False)
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


@dataclass(slots=True)
class _Question:
    options: tuple[PermissionOption, ...]
    answer: "asyncio.Future[str | None]"


class _Conversation:
    """A running agent with one open conversation."""

    def __init__(self, process: GuardedProcess, events: _Events, tasks: TaskGroup) -> None:
        self._process = process
        self._events = events
        self._tasks = tasks
        self._translation = Translation()
        self._questions: dict[RequestId, _Question] = {}
        self._early: list[JsonObject] = []
        self._logins: list[str] = []
        self._replayed: Counter[str] = Counter()
        self._opened = False
        self._turn: PromptId | None = None
        self._cancelling = False
        self._gone = anyio.Event()
        self._code: int | None = None
        self._lines = _Lines(process)
        self.token = ""
        self.name = ""
        self.version = ""
        self.capabilities = Capabilities()

    async def __aenter__(self) -> "_Conversation":
        self._connection = Connection(self._handle, self._lines)
        self._tasks.start_soon(self._watch)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._drop_questions()
        with anyio.CancelScope(shield=True):
            await self._connection.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def guardian_pid(self) -> int:
        return self._process.guardian_pid

    def events(self) -> AsyncIterator[AgentEvent]:
        return self._events

    # ── opening ─────────────────────────────────────────────────────────────────────────────────────

    async def open(self, launch: Launch, token: str | None) -> None:
        """Introduce ourselves, and open a new conversation or the one `token` names."""
        try:
            with anyio.fail_after(launch.handshake_timeout):
                await self._initialize(launch)
                await (self._begin(launch) if token is None else self._go_back(launch, token))
        except TimeoutError as error:
            raise self._failed(f"The agent did not answer within {launch.handshake_timeout:g} seconds.") from error
        except ValidationError as error:
            raise self._failed("The agent's answer is not what the protocol says.") from error

    async def _initialize(self, launch: Launch) -> None:
        answer = await self._ask(
            "initialize",
            {
                "protocolVersion": PROTOCOL_VERSION,
                "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
                "clientInfo": {"name": "segue", "version": __version__},
            },
        )
        agent = InitializeResponse.model_validate(answer)
        if agent.protocol_version != PROTOCOL_VERSION:
            raise self._failed(f"The agent speaks version {agent.protocol_version} of the protocol, not 1.")
        self.name = agent.agent_info.name if agent.agent_info else launch.command[0].rpartition("/")[2]
        self.version = agent.agent_info.version if agent.agent_info else ""
        self.capabilities = _capabilities(agent)
        self._logins = [method.name for method in agent.auth_methods or ()]

    async def _begin(self, launch: Launch) -> None:
        answer = await self._ask("session/new", {"cwd": str(launch.directory), "mcpServers": []})
        self.token = NewSessionResponse.model_validate(answer).session_id
        self._opened = True
        while self._early:
            self._hear(self._early.pop(0))

    async def _go_back(self, launch: Launch, token: str) -> None:
        if not self.capabilities.native:
            raise errors.TokenRejected("This agent cannot go back to a conversation.")
        self.token = token
        method = "session/resume" if self.capabilities.resume else "session/load"
        answer = await self._ask(method, {"sessionId": token, "cwd": str(launch.directory), "mcpServers": []})
        self._opened = True
        _log.debug("%d updates of an old conversation are left out", self._replayed.total())
        self._verify(answer)

    def _verify(self, answer: object) -> None:
        """An agent that answers for another conversation has not brought this one back."""
        others = set(self._replayed) - {self.token} if not self._replayed[self.token] else set[str]()
        if is_object(answer) and answer.get("sessionId") not in (None, self.token):
            others.add(str(answer["sessionId"]))
        if others:
            raise errors.ConversationMismatch(
                f"The agent was asked for conversation {self.token} and answered with {', '.join(sorted(others))}."
            )

    async def _ask(self, method: str, parameters: JsonObject) -> object:
        try:
            return await self._connection.send_request(method, parameters)
        except RequestError as error:
            raise self._refusal(method, error) from error
        except OSError as error:
            await self._lose()
            raise errors.AgentExited(
                f"The agent's process ended before it was ready{self._epitaph()}",
                hint="Start its command by hand to see what it says.",
            ) from error

    def _refusal(self, method: str, error: RequestError) -> errors.AgentError:
        sentence = _sentence(error)
        if error.code == _LOGIN_REQUIRED:
            offers = f" It offers: {', '.join(self._logins)}." if self._logins else ""
            return errors.AgentError(
                f"The agent wants you to log in first: {sentence}",
                hint=f"Log in with the agent's own program, then try again.{offers}",
            )
        if method in _GOING_BACK and (error.code in _UNKNOWN_CODES or _UNKNOWN_WORDS.search(sentence)):
            return errors.TokenRejected(f"The agent would not go back to conversation {self.token}: {sentence}")
        return self._failed(f"The agent answered {method} with an error: {sentence}")

    def _failed(self, message: str) -> errors.HandshakeFailed:
        stray = f" It printed: {shortened(self._lines.stray, 500)}" if self._lines.stray else ""
        return errors.HandshakeFailed(f"{message}{stray}", hint=self._last_words() or None)

    # ── turns ───────────────────────────────────────────────────────────────────────────────────────

    async def close(self) -> None:
        """Not asked of any agent yet."""

    async def prompt(self, prompt_id: PromptId, text: str, images: Sequence[Image] = ()) -> None:
        if self._gone.is_set():
            raise errors.AgentExited(f"The agent's process has ended{self._epitaph()}")
        if self._turn is not None:
            raise errors.WrongState("The agent is still in its turn.")
        self._turn = prompt_id
        self._cancelling = False
        await self._tasks.start(self._take_turn, prompt_id, text)

    async def cancel(self) -> None:
        # Without a turn there is nothing to cancel, and some agents would cancel the next one instead.
        if self._turn is None or self._gone.is_set():
            return
        self._cancelling = True
        try:
            await self._connection.send_notification("session/cancel", {"sessionId": self.token})
        except OSError:
            await self._lose()
        # The protocol wants open questions answered when a turn is cancelled.
        for question in tuple(self._questions.values()):
            _settle(question.answer, None)

    async def answer(self, request_id: RequestId, option: str | None) -> None:
        question = self._questions.get(request_id)
        if question is None or question.answer.done():
            raise errors.NothingToAnswer("This question is not open any more.")
        if option is not None and option not in {each.id for each in question.options}:
            raise errors.BadInput(f"{option!r} is no answer to this question.")
        _settle(question.answer, option)

    async def _take_turn(self, prompt_id: PromptId, text: str, *, task_status: TaskStatus[None]) -> None:
        # The request is written in the same breath, before whoever waits for the start goes on.
        task_status.started()
        try:
            answer = await self._connection.send_request(
                "session/prompt",
                {
                    "sessionId": self.token,
                    "prompt": [{"type": "text", "text": text}],
                    "_meta": {"segue": {"promptId": prompt_id}},
                },
            )
            ending = self._ending(answer)
        except RequestError as error:
            ending = self._unanswered(_sentence(error))
        except OSError:
            # `AgentExited` says the rest.
            await self._lose()
            return
        self._turn = None
        self._events.give(*self._translation.remainder(), *ending[0], TurnEnded(prompt_id=prompt_id, reason=ending[1]))

    def _ending(self, answer: object) -> tuple[list[AgentEvent], StopReason]:
        stop = answer.get("stopReason") if is_object(answer) else None
        if not is_object(answer) or not _is_stop_reason(stop):
            return self._unanswered(f"The agent ended its turn for no known reason: {stop!r}.")
        return tokens_of_turn(answer.get("usage")), stop

    def _unanswered(self, sentence: str) -> tuple[list[AgentEvent], StopReason]:
        """An error in place of an answer is a turn too: the agent refused, and its sentence is what it said.

        Nothing is raised, since the prompt was handed over long ago; and an agent that was asked to stop and answers
        with an error has stopped.
        """
        reason: StopReason = "cancelled" if self._cancelling else "refusal"
        return [TextDelta(role="message", text=sentence)], reason

    # ── what the agent says ─────────────────────────────────────────────────────────────────────────

    async def _handle(self, method: str, parameters: Any, is_notification: bool) -> JsonObject | None:
        if method == "session/update":
            self._hear(parameters)
            return None
        if method == "session/request_permission":
            return await self._put_question(RequestPermissionRequest.model_validate(parameters))
        if is_notification:
            return None
        # Files and terminals were not offered; agents that ask all the same do without.
        raise RequestError.method_not_found(method)

    def _hear(self, parameters: object) -> None:
        if not is_object(parameters):
            return
        session, update = parameters.get("sessionId"), parameters.get("update")
        if not isinstance(session, str) or not is_object(update):
            return
        if self._opened:
            if session == self.token:
                self._events.give(*self._translation.hear(update))
        elif self.token:
            self._replayed[session] += 1
            if session == self.token:
                self._translation.recall(update)
        else:
            self._early.append(parameters)

    async def _put_question(self, asked: RequestPermissionRequest) -> JsonObject:
        if not self._opened or asked.session_id != self.token:
            return _NO_CHOICE
        request_id = new_request_id()
        options = tuple(PermissionOption(id=each.option_id, name=each.name, kind=each.kind) for each in asked.options)
        question = _Question(options, asyncio.get_running_loop().create_future())
        self._questions[request_id] = question
        self._events.give(*self._translation.question(request_id, asked.tool_call, options))
        try:
            option = await question.answer
        finally:
            del self._questions[request_id]
        return _NO_CHOICE if option is None else {"outcome": {"outcome": "selected", "optionId": option}}

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────

    async def _watch(self) -> None:
        """Until the process is gone and its output is read to the end; neither waits for the other for ever."""
        async with anyio.create_task_group() as both:

            async def hurry_after(end: Callable[[], Awaitable[object]]) -> None:
                await end()
                both.cancel_scope.deadline = anyio.current_time() + _GRACE

            both.start_soon(hurry_after, self._process.wait)
            both.start_soon(hurry_after, self._lines.ended.wait)
        # An agent that closed its output but stays would never be heard again.
        await self._process.terminate()
        self._code = await self._process.wait()
        self._gone.set()
        self._drop_questions()
        self._events.give(*self._translation.remainder())
        self._events.end(AgentExited(code=self._code, detail=self._last_words()))

    async def _lose(self) -> None:
        """A pipe is broken: whatever is left of the process is of no use."""
        await self._process.terminate()
        await self._gone.wait()

    def _drop_questions(self) -> None:
        for question in self._questions.values():
            question.answer.cancel()

    def _last_words(self) -> str:
        return self._process.stderr_tail().strip()[-_LAST_WORDS:]

    def _epitaph(self) -> str:
        code, words = self._code, self._last_words()
        how = "" if code is None else f" with exit code {code}" if code >= 0 else f" by signal {-code}"
        return f"{how}: {words}" if words else f"{how}."


def _capabilities(agent: InitializeResponse) -> Capabilities:
    given = agent.agent_capabilities or AgentCapabilities()
    session = given.session_capabilities or SessionCapabilities()
    return Capabilities(
        load=bool(given.load_session),
        resume=session.resume is not None,
        fork=session.fork is not None,
        list=session.list is not None,
        close=session.close is not None,
        images=bool(given.prompt_capabilities and given.prompt_capabilities.image),
    )


def _sentence(error: RequestError) -> str:
    """What the agent says about its error; the better part is often in the details."""
    message, data = str(error), error.data
    details = (
        next((data[key] for key in ("details", "message", "reason") if data.get(key)), "") if is_object(data) else data
    )
    return f"{message}: {details}" if details and str(details) not in message else message


def _is_stop_reason(value: object) -> TypeGuard[StopReason]:
    return value in get_args(StopReason)


def _settle(answer: "asyncio.Future[str | None]", option: str | None) -> None:
    if not answer.done():
        answer.set_result(option)

"""A running agent with one open conversation: its turns, its questions, and its end."""

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeGuard, get_args

import anyio
from acp import RequestError
from acp.schema import RequestPermissionRequest
from anyio.abc import TaskGroup, TaskStatus

from segue.drivers import Capabilities, Image, Launch, Left, PermissionAnswer
from segue.drivers.acp.client_services import ClientServices
from segue.drivers.acp.handshake import LOGIN_REQUIRED, Handshake, Target, bookmark, everything, sentence
from segue.drivers.acp.keeper_methods import KeeperMethods
from segue.drivers.acp.link import Link
from segue.drivers.acp.meter import Meter
from segue.drivers.acp.replay_filter import ReplayFilter
from segue.drivers.acp.risky_paths import ordinary
from segue.drivers.acp.updates import UpdateTranslation, is_object
from segue.drivers.complaints import Complaint, overheard, understood
from segue.drivers.open_questions import ALLOW, REJECT, OpenQuestions
from segue.drivers.stream import Events
from segue.model import errors
from segue.model.events import (
    AgentEvent,
    JsonObject,
    OutputRecorded,
    PermissionOption,
    PermissionRequested,
    StopReason,
    TextDelta,
    TurnEnded,
    TurnFailed,
)
from segue.model.ids import PromptId, RequestId, new_request_id
from segue.model.status import Failure
from segue.workspace.processes import RunningProcess

_CLOSE_WITHIN = 5.0
_NO_CHOICE: JsonObject = {"outcome": {"outcome": "cancelled"}}


class AcpAgent:
    """A running agent at the other end of a link."""

    def __init__(
        self,
        process: RunningProcess,
        link: Link,
        launch: Launch,
        events: Events,
        tasks: TaskGroup,
        left: Left | None = None,
    ) -> None:
        self.pid = process.pid
        self.guardian_pid = process.guardian_pid
        self._link = link
        self._launch = launch
        self._events = events
        self._tasks = tasks
        self._meter = Meter(since_start=launch.counts_since_start)
        self._translation = UpdateTranslation(launch.directory, self._meter)
        self._replay_filter = ReplayFilter(self._give, self._translation)
        self._left = left
        self._asked = 0
        self._questions = OpenQuestions()
        self._words: dict[RequestId, str] = {}
        """Free-text answers to questions, until they are sent to the agent."""
        self._services = ClientServices(launch, tasks, self._permitted)
        self._keeper_methods = KeeperMethods(launch.keeper)
        self._consented: set[Path] = set()
        self._turn: PromptId | None = None
        self._cancelling = False
        self.token = ""
        self.name = ""
        self.version = ""
        self.capabilities = Capabilities()

    async def __aenter__(self) -> "AcpAgent":
        """Connect the agent's requests to their handlers, and begin to wait for its end."""
        self._link.connect(self._handle, listen=self._left is None)
        self._tasks.start_soon(self._watch)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._questions.drop_all()
        await self._link.close()

    async def open(self, way: Target) -> None:
        """Introduce Segue, open the wanted conversation with its choices, and note token and capabilities."""
        opening = Handshake(self._link, self._launch)
        with opening.in_time():
            agent = await opening.introduce()
            self.name, self.version, self.capabilities = agent.name, agent.version, agent.capabilities
            self.token = await opening.converse(way, self._replay_filter)
            self._meter.model = self._meter.model or opening.model
        self._link.ready = True
        self._give()

    async def go_on(self, token: str, left: Left) -> None:
        """Reconnect to an agent that went on meanwhile, and replay its updates from the first to the last."""
        agent = left.introduction
        self.token, self.name, self.version, self.capabilities = token, agent.name, agent.version, agent.capabilities
        self._replay_filter.go_on(token, left.updates, left.characters)
        if left.turn is not None:
            self._turn = left.turn
            await self._tasks.start(self._take_turn, left.turn, [])
        self._link.ready = True
        self._events.give(OutputRecorded(updates=left.updates, characters=left.characters))
        self._link.listen()

    def events(self) -> AsyncIterator[AgentEvent]:
        return self._events

    async def close(self) -> None:
        """Ask the agent to close the conversation, if it can and is there; a failure is ignored."""
        if not self.capabilities.close or self._link.gone.is_set():
            return
        # It is a courtesy: an agent that cannot be told is ended all the same.
        with anyio.move_on_after(_CLOSE_WITHIN), suppress(RequestError, errors.AgentError):
            await self._link.request("session/close", {"sessionId": self.token})

    def _give(self, *events: AgentEvent) -> None:
        """Emit events, and the position in the updates of an agent that can outlive its connection."""
        mark = (OutputRecorded(updates=self._replay_filter.updates),) if self._launch.container else ()
        self._events.give(*events, *mark)

    # ── turns ───────────────────────────────────────────────────────────────────────────────────────

    async def prompt(self, prompt_id: PromptId, text: str, images: Sequence[Image] = ()) -> None:
        """Send a prompt, and return when it is on its way; its end comes as an event. Raise WrongState during a
        turn."""
        if self._link.gone.is_set():
            raise self._link.over()
        if self._turn is not None:
            raise errors.WrongState("The agent is still in its turn.")
        if images and not self.capabilities.images:
            raise errors.AgentError(f"The agent {self.name} takes no images.")
        self._turn = prompt_id
        self._cancelling = False
        self._replay_filter.prompted()
        self._translation.begin_turn()
        await self._tasks.start(self._take_turn, prompt_id, [*map(_picture, images), {"type": "text", "text": text}])

    async def cancel(self) -> None:
        """Ask the agent to end its turn, and refuse its open questions; without a turn do nothing."""
        # Without a turn there is nothing to cancel, and some agents would cancel the next one instead.
        if self._turn is None or self._link.gone.is_set():
            return
        self._cancelling = True
        await self._link.notify("session/cancel", {"sessionId": self.token})
        # The protocol wants open questions answered when a turn is cancelled.
        self._questions.refuse_all()

    async def answer(self, request_id: RequestId, option: str | None, words: str = "") -> None:
        """Answer a question of the agent with an option (None refuses) and free text."""
        self._questions.answer(request_id, option)
        self._words[request_id] = words

    async def _take_turn(self, prompt_id: PromptId, blocks: list[JsonObject], *, task_status: TaskStatus[None]) -> None:
        """Send the prompt, wait for its answer, and emit the turn's end; nothing if the agent is gone."""
        # The request is written before the caller that waits for the start continues.
        task_status.started()
        parameters = {"sessionId": self.token, "prompt": blocks, "_meta": {"segue": {"promptId": prompt_id}}}
        try:
            ending = self._ending(prompt_id, await self._link.request("session/prompt", parameters))
        except RequestError as error:
            ending = self._unanswered(prompt_id, error)
        except errors.AgentError:
            # `AgentExited` says the rest.
            return
        self._turn = None
        self._consented.clear()
        self._give(*self._translation.remainder(), *ending)

    def _ending(self, prompt_id: PromptId, answer: object) -> list[AgentEvent]:
        """Return the events that end an answered turn: usage, and its end or the failure in the last message."""
        stop = answer.get("stopReason") if is_object(answer) else None
        if not is_object(answer) or not _is_stop_reason(stop):
            reason: StopReason = "cancelled" if self._cancelling else "refusal"
            said = f"The agent ended its turn for no known reason: {stop!r}."
            return [TextDelta(role="message", text=said), TurnEnded(prompt_id=prompt_id, reason=reason)]
        message = self._translation.last_message
        complaint = (
            overheard(message, self._now()) if stop in ("end_turn", "refusal") and not self._cancelling else None
        )
        if complaint is not None:
            return [*self._meter.turn(answer), _failure(prompt_id, complaint, message.strip())]
        ended = TurnEnded(prompt_id=prompt_id, reason=stop, bookmark=bookmark(answer))
        return [*self._meter.turn(answer), ended]

    def _unanswered(self, prompt_id: PromptId, error: RequestError) -> list[AgentEvent]:
        """End a turn whose prompt was answered with an error; an agent that was asked to stop has stopped.

        No exception is raised, since the prompt was accepted long ago.
        """
        if self._cancelling:
            return [TurnEnded(prompt_id=prompt_id, reason="cancelled")]
        if error.code == LOGIN_REQUIRED:
            return [_failure(prompt_id, Complaint(failure=Failure.LOGIN_REQUIRED), sentence(error))]
        return [_failure(prompt_id, understood(everything(error), self._now()), sentence(error))]

    def _now(self) -> datetime:
        """Return the time in this machine's zone, which agents mean when they name an hour."""
        return self._launch.now().astimezone()

    # ── what the agent says and asks ────────────────────────────────────────────────────────────────

    async def _handle(self, method: str, parameters: Any, is_notification: bool) -> JsonObject | None:
        """Handle an update, permission request or service request of the agent; None is the answer to a
        notification."""
        if method == "session/update":
            self._replay_filter.take(parameters)
            return None
        if method == "session/request_permission":
            return await self._put_question(RequestPermissionRequest.model_validate(parameters))
        if is_notification:
            return None
        if self._replay_filter.catching_up:
            raise RequestError.internal_error({"details": "Whoever was asked this is gone."})
        if self._keeper_methods.knows(method):
            # An agent may ask for what is kept while it opens the conversation.
            return await self._keeper_methods.serve(method, parameters)
        # Whoever is in a container has files and terminals there; those of this machine are not for it.
        if self._services.knows(method) and self._launch.container is None:
            if not is_object(parameters) or not self._ours(parameters.get("sessionId")):
                raise RequestError.invalid_params({"details": "This is no open conversation."})
            return await self._services.serve(method, parameters)
        raise RequestError.method_not_found(method)

    def _ours(self, session: object) -> bool:
        """Return True if this is the token of the open conversation."""
        return bool(self.token) and session == self.token

    async def _put_question(self, asked: RequestPermissionRequest) -> JsonObject:
        """Put a permission request to the user, and return the answer for the agent; after a reconnection the recorded
        answer."""
        if not self._ours(asked.session_id):
            return _NO_CHOICE
        call_id = asked.tool_call.tool_call_id
        options = tuple(PermissionOption(id=each.option_id, name=each.name, kind=each.kind) for each in asked.options)
        request_id = new_request_id()
        told = self._translation.question(request_id, asked.tool_call, options)
        if (given := self._given()) is not None:
            allowed = next((each.kind for each in options if each.id == given.option), "").startswith("allow")
            # Told already, and repeated only so that what comes next is understood.
            for _ in (*told, *(self._translation.allowed(call_id) if allowed else ())):
                pass
            return _outcome(given.option)
        self._questions.put(request_id, options)
        self._give(*told)
        chosen = await self._questions.wait(request_id)
        words = self._words.pop(request_id, "")
        if chosen is None:
            return _NO_CHOICE
        if chosen.kind.startswith("allow"):
            self._consented.update(self._translation.edited(call_id))
            self._give(*self._translation.allowed(call_id))
        said = {"_meta": {"segue": {"words": words}}} if words else {}
        return {**_outcome(chosen.id), **said}

    def _given(self) -> PermissionAnswer | None:
        """Return the recorded answer to the next question from before the reconnection; None if there is none left."""
        number, self._asked = self._asked, self._asked + 1
        answers = self._left.answers if self._left else ()
        return answers[number] if number < len(answers) else None

    async def _permitted(self, title: str, tool: Literal["edit", "execute"], path: Path | None = None) -> bool:
        """Ask the user if something may be done for the agent; True if allowed. A file of an allowed edit is allowed
        once more."""
        if path is not None and path in self._consented:
            # Some agents ask for an edit, and then hand over the file that the edit was about.
            self._consented.discard(path)
            return True
        request_id, options = new_request_id(), (ALLOW, REJECT)
        kind = tool if path is None or ordinary(str(path), self._launch.directory) else "other"
        self._questions.put(request_id, options)
        self._events.give(
            PermissionRequested(
                request_id=request_id, call_id=f"served-{request_id}", title=title, tool=kind, options=options
            )
        )
        return await self._questions.wait(request_id) == ALLOW

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────

    async def _watch(self) -> None:
        """Wait for the agent's end, then drop its questions and terminals, and end the events."""
        await self._link.watch()
        self._questions.drop_all()
        self._services.end()
        self._events.give(*self._translation.remainder())
        self._events.end(self._link.exit())


def _outcome(option: str | None) -> JsonObject:
    """Return the protocol's answer to a permission request; None chooses nothing."""
    return _NO_CHOICE if option is None else {"outcome": {"outcome": "selected", "optionId": option}}


def _failure(prompt_id: PromptId, complaint: Complaint, message: str) -> TurnEnded | TurnFailed:
    """Return the end of a turn for a complaint: `max_tokens` if the context is full, else a failure."""
    if complaint.full:
        return TurnEnded(prompt_id=prompt_id, reason="max_tokens")
    return TurnFailed(prompt_id=prompt_id, failure=complaint.failure, message=message, reset_at=complaint.reset_at)


def _picture(image: Image) -> JsonObject:
    """Return an image as a block of a prompt."""
    return {"type": "image", "mimeType": image.media_type, "data": base64.b64encode(image.data).decode()}


def _is_stop_reason(value: object) -> TypeGuard[StopReason]:
    """Return True if a value is a stop reason of the protocol."""
    return value in get_args(StopReason)

"""How a conversation is opened: the introduction, the conversation itself, and what was chosen for it."""

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from acp import PROTOCOL_VERSION, RequestError
from acp.schema import (
    AgentCapabilities,
    ForkSessionResponse,
    InitializeResponse,
    ListSessionsResponse,
    McpCapabilities,
    NewSessionResponse,
    SessionCapabilities,
)
from pydantic import ValidationError

from segue import __version__
from segue.drivers import Capabilities, Introduction, Launch, ListedConversation
from segue.drivers.acp.choices import CannotChoose, ChoiceKind, choice, current, servers
from segue.drivers.acp.link import Link
from segue.drivers.acp.replay_filter import ReplayFilter
from segue.drivers.acp.updates import is_object
from segue.drivers.complaints import understood
from segue.model import errors
from segue.model.events import JsonObject
from segue.model.status import Failure

LOGIN_REQUIRED = -32000
_GOING_BACK = ("session/resume", "session/load", "session/fork")
# Resource not found, method not found, invalid params; and what agents say that have no number for it.
_UNKNOWN_CODES = (-32002, -32601, -32602)
_UNKNOWN_WORDS = re.compile(
    r"(session|conversation|thread|rollout|chat)s?\b.*(not found|unknown|not exist)"
    r"|(unknown|invalid|no|no such|no previous) (session|conversation|thread|rollout|chat)"
    r"|^not found",
    re.IGNORECASE,
)
# An agent that never says which page is the last must not keep us for ever.
_MOST_PAGES = 100


@dataclass(frozen=True, slots=True)
class Target:
    """Which conversation is wanted: a new one, that of a token, or a copy of that."""

    token: str | None = None
    copy: bool = False
    at: str | None = None
    """Bookmark at which the copy ends; None copies the whole conversation."""


class Handshake:
    """Opens one conversation of the agent at the other end of a link."""

    def __init__(self, link: Link, launch: Launch) -> None:
        self._link = link
        self._launch = launch
        self._token: str | None = None
        self.agent = Introduction(name="", version="", capabilities=Capabilities())
        self.model: str | None = None
        """The model of the conversation, as the agent calls it, where it is known."""

    @contextmanager
    def in_time(self) -> Generator[None]:
        """Apply the handshake's timeout, and turn the errors of a handshake into driver errors."""
        seconds = self._launch.handshake_timeout
        try:
            with anyio.fail_after(seconds):
                yield
        except TimeoutError as error:
            message = f"The agent did not answer within {seconds:g} seconds."
            raise self._link.failed(message, errors.HandshakeTimeout) from error
        except ValidationError as error:
            raise self._link.failed("The agent's answer is not what the protocol says.") from error
        except CannotChoose as error:
            raise (errors.AgentError if self._token is None else errors.NotRestored)(str(error)) from error

    async def introduce(self) -> Introduction:
        """Exchange names, versions and capabilities with the agent."""
        serves = self._launch.serves
        files = "files" in serves
        answer = await self._ask(
            "initialize",
            {
                "protocolVersion": PROTOCOL_VERSION,
                "clientCapabilities": {
                    "fs": {"readTextFile": files, "writeTextFile": files},
                    "terminal": "terminals" in serves,
                    **({"_meta": {"segue": {"keeper": True}}} if self._launch.keeper else {}),
                },
                "clientInfo": {"name": "segue", "version": __version__},
            },
        )
        agent = InitializeResponse.model_validate(answer)
        if agent.protocol_version != PROTOCOL_VERSION:
            raise self._link.failed(f"The agent speaks version {agent.protocol_version} of the protocol, not 1.")
        self.agent = Introduction(
            name=agent.agent_info.name if agent.agent_info else Path(self._launch.command[0]).name,
            version=agent.agent_info.version if agent.agent_info else "",
            capabilities=_capabilities(agent),
            logins=tuple(method.name for method in agent.auth_methods or ()),
        )
        return self.agent

    async def converse(self, way: Target, replay_filter: ReplayFilter) -> str:
        """Open, resume or copy a conversation, apply mode and model, and return its token."""
        self._token = way.token
        if way.token is None:
            token, answer = await self._begin(replay_filter)
        elif way.copy:
            token, answer = await self._copy(way.token, way.at, replay_filter)
        else:
            token, answer = await self._go_back(way.token, replay_filter)
        await self._choose("mode", self._launch.mode, token, answer)
        await self._choose("model", self._launch.model, token, answer)
        self.model = self._launch.model or current("model", answer)
        return token

    async def conversations(self) -> list[ListedConversation]:
        """List the agent's conversations of the directory, from all pages."""
        if not self.agent.capabilities.list:
            raise errors.AgentError("This agent does not tell which conversations it has.")
        found: list[ListedConversation] = []
        parameters: JsonObject = {"cwd": str(self._launch.directory)}
        for _ in range(_MOST_PAGES):
            page = ListSessionsResponse.model_validate(await self._ask("session/list", parameters))
            found += [
                ListedConversation(token=each.session_id, title=each.title or "", updated_at=each.updated_at or "")
                for each in page.sessions
                if _same_place(each.cwd, self._launch.directory)
            ]
            if not page.next_cursor:
                break
            parameters["cursor"] = page.next_cursor
        return found

    # ── the three ways ──────────────────────────────────────────────────────────────────────────────

    async def _begin(self, replay_filter: ReplayFilter) -> tuple[str, object]:
        """Open a new conversation; return its token and the agent's answer."""
        answer = await self._ask("session/new", self._place())
        token = NewSessionResponse.model_validate(answer).session_id
        replay_filter.open(token)
        return token, answer

    async def _go_back(self, token: str, replay_filter: ReplayFilter) -> tuple[str, object]:
        """Resume or load a conversation; raise an error if the agent cannot, or opens another one."""
        if not self.agent.capabilities.native:
            raise errors.TokenRejected("This agent cannot go back to a conversation.")
        place = self._place()
        replay_filter.expect(token)
        method = "session/resume" if self.agent.capabilities.resume else "session/load"
        answer = await self._ask(method, {"sessionId": token, **place})
        replay_filter.open(token)
        _verify(token, answer, replay_filter)
        return token, answer

    async def _copy(self, token: str, at: str | None, replay_filter: ReplayFilter) -> tuple[str, object]:
        """Copy a conversation, up to a bookmark if given; raise ConversationMismatch if the agent did another thing."""
        if not self.agent.capabilities.fork:
            raise errors.AgentError("This agent cannot copy a conversation.")
        up_to = {"_meta": {"segue": {"at": at}}} if at else {}
        answer = await self._ask("session/fork", {"sessionId": token, **self._place(), **up_to})
        copy = ForkSessionResponse.model_validate(answer).session_id
        if copy == token:
            raise errors.ConversationMismatch(
                f"The agent was asked for a copy of conversation {token} and answered with the conversation itself."
            )
        if at is not None and bookmark(answer) != at:
            # An agent that has never heard of bookmarks copies the whole.
            raise errors.ConversationMismatch(
                f"The agent was asked for a copy of conversation {token} up to {at}, and does not say that it is one."
            )
        replay_filter.open(copy, copied=True)
        return copy, answer

    def _place(self) -> JsonObject:
        """Return the directory and the MCP servers for opening a conversation."""
        return {"cwd": str(self._launch.directory), "mcpServers": servers(self._launch, self.agent.capabilities)}

    async def _choose(self, kind: ChoiceKind, wanted: str | None, token: str, answer: object) -> None:
        """Request this mode or model; do nothing for None or the current one, raise CannotChoose if it is refused."""
        if wanted is None:
            return
        request = choice(kind, wanted, answer, blindly=self._token is not None)
        if request is None:
            return
        method, parameters = request
        try:
            await self._link.request(method, {"sessionId": token, **parameters})
        except RequestError as error:
            raise CannotChoose(f"The agent did not take the {kind} {wanted!r}: {sentence(error)}") from error

    # ── errors in place of answers ──────────────────────────────────────────────────────────────────

    async def _ask(self, method: str, parameters: JsonObject) -> object:
        """Send a request and return its result; the agent's error becomes a driver error."""
        try:
            return await self._link.request(method, parameters)
        except RequestError as error:
            raise self._refusal(method, error) from error

    def _refusal(self, method: str, error: RequestError) -> errors.AgentError:
        """Return the driver error that an agent's error means: login, damaged or unknown conversation, quota or
        other."""
        said = sentence(error)
        complaint = understood(everything(error), self._launch.now().astimezone())
        if error.code == LOGIN_REQUIRED:
            return self._login(said)
        if method in _GOING_BACK and complaint.failure is Failure.TRANSCRIPT_CORRUPT:
            return errors.TranscriptCorrupt(f"The agent cannot use conversation {self._token} any more: {said}")
        if method in _GOING_BACK and (error.code in _UNKNOWN_CODES or _UNKNOWN_WORDS.search(said)):
            return errors.TokenRejected(f"The agent would not go back to conversation {self._token}: {said}")
        if complaint.failure is Failure.LOGIN_REQUIRED:
            return self._login(said)
        if complaint.failure is Failure.QUOTA:
            return errors.QuotaExceeded(f"The agent has no quota left: {said}", reset_at=complaint.reset_at)
        return self._link.failed(f"The agent answered {method} with an error: {said}")

    def _login(self, said: str) -> errors.LoginRequired:
        """Return the error that the user must log in, with the agent's offers."""
        offers = f" It offers: {', '.join(self.agent.logins)}." if self.agent.logins else ""
        return errors.LoginRequired(
            f"The agent wants you to log in first: {said}",
            hint=f"Log in with the agent's own program, then try again.{offers}",
        )


def bookmark(answer: object) -> str | None:
    """Return the bookmark in an answer of our own agent programs, sent at the end of a turn or copy; else None."""
    match answer:
        case {"_meta": {"segue": {"at": str(at)}}} if at:
            return at
        case _:
            return None


def _verify(token: str, answer: object, replay_filter: ReplayFilter) -> None:
    """Raise ConversationMismatch if the agent opened or replayed another conversation than the requested one."""
    others = replay_filter.others()
    if is_object(answer) and answer.get("sessionId") not in (None, token):
        others.add(str(answer["sessionId"]))
    if others:
        raise errors.ConversationMismatch(
            f"The agent was asked for conversation {token} and answered with {', '.join(sorted(others))}."
        )


def _capabilities(agent: InitializeResponse) -> Capabilities:
    """Return the capabilities that the agent declares."""
    given = agent.agent_capabilities or AgentCapabilities()
    session = given.session_capabilities or SessionCapabilities()
    tools = given.mcp_capabilities or McpCapabilities()
    return Capabilities(
        load=bool(given.load_session),
        resume=session.resume is not None,
        fork=session.fork is not None,
        list=session.list is not None,
        close=session.close is not None,
        images=bool(given.prompt_capabilities and given.prompt_capabilities.image),
        mcp_http=bool(tools.http),
        mcp_sse=bool(tools.sse),
    )


def _same_place(place: str, directory: Path) -> bool:
    """Return True if both are one directory, wherever links lead."""
    return Path(place).resolve() == directory.resolve()


def sentence(error: RequestError) -> str:
    """Return the message of an error with its details, which are often the better part."""
    message, data = str(error), error.data
    details = (
        next((data[key] for key in ("details", "message", "reason") if data.get(key)), "") if is_object(data) else data
    )
    return f"{message}: {details}" if details and str(details) not in message else message


def everything(error: RequestError) -> str:
    """Return the message of an error with all its data, for classification and not for display."""
    # Some agents pass on the number that their vendor's server answered with.
    status = f"status {error.code}: " if error.code > 0 else ""
    data = f" {json.dumps(error.data, default=str)}" if error.data else ""
    return f"{status}{sentence(error)}{data}"

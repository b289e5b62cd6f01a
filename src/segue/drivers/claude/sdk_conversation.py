"""One conversation of the SDK, from its opening to its end."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from claude_agent_sdk import (
    ClaudeSDKClient,
    ClaudeSDKError,
    HookMatcher,
    Message,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    SystemMessage,
    ToolPermissionContext,
)
from claude_agent_sdk._errors import MessageParseError

from segue.drivers.claude.mirror import Mirror
from segue.drivers.claude.options import MODE, WantedConversation, options, servers_file
from segue.drivers.claude.permission_rules import must_ask
from segue.drivers.claude.register import Register
from segue.drivers.claude.setup import Setup
from segue.drivers.claude.stop_reasons import (
    GO_ON,
    TurnBroken,
    TurnOver,
    TurnState,
    TurnUnfinished,
    outcome_of,
    should_continue,
)
from segue.drivers.claude.translation import MessageTranslation, call
from segue.drivers.skeleton.agent_program import Channel
from segue.drivers.skeleton.jsonrpc import INTERNAL_ERROR, RequestError, session_not_found
from segue.drivers.skeleton.jsonrpc import Message as Parsed
from segue.drivers.skeleton.payloads import Payload, StopReason, thought, tokens, turn_ended

_UNKNOWN = ("No conversation found with session ID", "is not a UUID and does not match any session title")
_TOKENS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
# From being asked to stop to being ended.
_GRACE = 5.0
_log = logging.getLogger(__name__)

Content = Sequence[Mapping[str, Any]]


class _Mistaken(RequestError):
    """Claude Code is in another conversation than the one that was asked for."""


class SdkConversation:
    """Conversation with Claude Code in a process of its own."""

    def __init__(
        self,
        setup: Setup,
        wanted: WantedConversation,
        register: Register,
        channel: Channel,
        mirror: Mirror | None = None,
    ) -> None:
        """Prepare the SDK's client with permission and compaction hooks; nothing is started."""
        self.token = wanted.token
        self._mirror = mirror
        self._max_turns = setup.max_turns
        self._servers = wanted.mcp_servers
        self._register = register
        self._channel = channel
        known = register.find(wanted.token)
        self._translation = MessageTranslation(known.window if known else None)
        self._claude = ClaudeSDKClient(
            options(
                setup,
                wanted,
                can_use_tool=self._permitted,
                hooks={
                    # A call that this hook could not judge is not made.
                    "PreToolUse": [HookMatcher(hooks=[self._before_tool], on_failure="block")],
                    "PreCompact": [HookMatcher(hooks=[self._before_compaction])],
                    "Stop": [HookMatcher(hooks=[self._at_stop])],
                },
                stderr=_complain,
                **({"session_store": mirror, "session_store_flush": "eager"} if mirror else {}),
            )
        )
        self._mode = MODE
        self._answer: asyncio.Future[ResultMessage] | None = None
        self._cancelling = False
        self._listener: asyncio.Task[None] | None = None
        self._ended: Exception | None = None
        self._to_report: list[Any] = []

    # ── opening and closing ─────────────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        """Start Claude Code for this conversation, and listen to it; raise an error if it does not start."""
        with servers_file(self._servers) as servers:
            self._claude.options.mcp_servers = servers or {}
            try:
                await self._claude.connect()
            except ClaudeSDKError as error:
                raise RequestError(INTERNAL_ERROR, f"Claude Code did not start: {error}") from error
        self._listener = asyncio.create_task(self._listen())

    async def safe_resume(self) -> None:
        """Resume the conversation; raise `session not found` if Claude Code lacks it, and begin no new one in its
        place."""
        if self._mirror is not None:
            await self._mirror.catch_up(self.token)
        try:
            await self.open()
        except RequestError as error:
            if any(words in str(error) for words in _UNKNOWN):
                _log.warning("Session %s not found", self.token)
                raise session_not_found(self.token) from error
            raise

    async def close(self) -> None:
        """Stop listening, and end Claude Code."""
        if self._listener is not None:
            self._listener.cancel()
        await self._claude.disconnect()

    def report_first(self, interrupted: Iterable[str], gaps: Iterable[str]) -> None:
        """Report the faults of the old conversation when the next turn begins."""
        self._to_report += [thought(f"I was interrupted in {each}.\n") for each in interrupted]
        if listed := "; ".join(gaps):
            self._to_report.append(thought(f"My conversation has gaps: {listed}.\n"))

    async def models(self) -> list[Mapping[str, Any]]:
        """Return the models that Claude Code offers."""
        return (await self._claude.get_server_info() or {}).get("models", [])

    async def choose_model(self, model: str) -> None:
        """Set the model, and store it for a later resume."""
        await self._claude.set_model(model)
        self._register.choose(self.token, model)

    async def choose_mode(self, mode: Any) -> None:
        """Set the permission mode."""
        await self._claude.set_permission_mode(mode)
        self._mode = mode

    # ── turns ───────────────────────────────────────────────────────────────────────────────────────

    async def cancel(self) -> None:
        """Interrupt the turn."""
        self._cancelling = True
        with suppress(ClaudeSDKError):
            await self._claude.interrupt()

    async def play(self, content: Sequence[Parsed]) -> Payload:
        """Play one turn: send the prompt, continue if Claude stops in the middle, and return the end of the turn."""
        self._cancelling = False
        asked: Content = [_block(each) for each in content if each.get("type") in ("text", "image")]
        for update in self._to_report:
            await self._channel.update(update)
        self._to_report.clear()
        self._translation.last_message = None
        results: list[ResultMessage] = []
        while not self._cancelling:
            results.append(await self._ask(asked))
            state = TurnState(
                current_turn=len(results),
                max_turns=self._max_turns,
                tool_calls_this_turn=self._translation.calls,
            )
            self._note(results[-1])
            match outcome_of(results[-1], cancelled=self._cancelling):
                case TurnOver(reason):
                    return self._response(reason, results)
                case TurnUnfinished() if should_continue(state):
                    asked = [{"type": "text", "text": GO_ON}]
                case TurnUnfinished(reason):
                    return self._response(reason, results)
                case TurnBroken(message, status):
                    raise RequestError(status or INTERNAL_ERROR, message)
        return self._response("cancelled", results)

    async def _ask(self, content: Content) -> ResultMessage:
        """Send a prompt and return the result that ends it; raise an error if Claude Code has ended."""
        if self._ended is not None:
            raise _over(self._ended)
        self._answer = asyncio.get_running_loop().create_future()
        known = self._register.find(self.token)
        # On disk before it is said: from now on there is something to go back to.
        self._register.update(self.token, message_count=(known.message_count if known else 0) + 1)
        try:
            await self._claude.query(_prompt(content))
            return await self._answer
        except ClaudeSDKError as error:
            raise _over(error) from error
        finally:
            self._answer = None

    async def _listen(self) -> None:
        """Read messages until Claude Code ends; its end or another conversation's message fails the open prompt."""
        try:
            while not await self._read_all():
                pass
            self._end(ClaudeSDKError("it ended"))
        except _Mistaken as error:
            self._end(error)
            await self._break_off()
        except Exception as error:  # noqa: BLE001 - whoever waits for an answer is told
            self._end(error)

    async def _read_all(self) -> bool:
        """Read messages; return False if more follow, after a message that the SDK could not read."""
        try:
            async for message in self._claude.receive_messages():
                self._verify(message)
                await self._take_message(message)
                if isinstance(message, ResultMessage):
                    self._take(message)
        except MessageParseError as error:
            await self._left_out(error)
            if (error.data or {}).get("type") == "result":
                self._fail(RequestError(INTERNAL_ERROR, f"The end of Claude Code's turn could not be read: {error}"))
            return False
        return True

    def _verify(self, message: Message) -> None:
        """Raise an error if a message that begins or ends a turn is of another conversation."""
        match message:
            case SystemMessage(subtype="init", data={"session_id": named}) | ResultMessage(session_id=named):
                if named != self.token:
                    raise _Mistaken(INTERNAL_ERROR, f"Claude Code answered for conversation {named}, not {self.token}.")
            case _:
                pass

    async def _break_off(self) -> None:
        """Interrupt and end Claude Code, which is in another conversation."""
        try:
            async with asyncio.timeout(_GRACE):
                await self._claude.interrupt()
        except Exception as error:  # noqa: BLE001 - what Claude Code refuses, the SDK raises without a class of its own
            _log.warning("Claude Code is ended, since it did not stop: %s", error)
        finally:
            await self._claude.disconnect()

    async def _take_message(self, message: Message) -> None:
        """Report a message to the client; one that cannot be translated is reported as left out."""
        try:
            updates = list(self._translation.translate(message))
        except Exception as error:  # noqa: BLE001 - one message that means nothing to us does not end the conversation
            await self._left_out(error)
            return
        for update in updates:
            await self._channel.update(update)

    async def _left_out(self, error: Exception) -> None:
        """Log a message that could not be read, and report that to the client."""
        _log.warning("A message of Claude Code's was left out", exc_info=error)
        reason = f"{type(error).__name__}: {error}"
        await self._channel.update(thought(f"A message of Claude Code's could not be read: {reason}\n"))

    def _take(self, result: ResultMessage) -> None:
        """Give the result to the prompt that waits for it; one of a turn that Claude began by itself is ignored."""
        # Claude Code also begins turns by itself, for example when a command in the background has ended.
        ours = result.origin is None or result.origin.get("kind") == "human"
        if ours and self._answer is not None and not self._answer.done():
            self._answer.set_result(result)

    def _end(self, error: Exception) -> None:
        """Note that Claude Code has ended, and fail the prompt that waits."""
        self._ended = error
        self._fail(_over(error))

    def _fail(self, error: RequestError) -> None:
        """Fail the prompt that waits for an answer; do nothing if there is none."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    def _note(self, result: ResultMessage) -> None:
        """Add the figures of a result to the register, and reset the counts of the turn."""
        known, usage = self._register.find(self.token), result.usage or {}
        if known is not None:
            self._register.update(
                self.token,
                message_count=known.message_count + self._translation.messages,
                turn_count=known.turn_count + 1,
                total_input_tokens=known.total_input_tokens + _count(usage, "input_tokens"),
                total_output_tokens=known.total_output_tokens + _count(usage, "output_tokens"),
                last_stop_reason=result.stop_reason or result.terminal_reason,
                last_message=self._translation.last_message or known.last_message,
                window=self._translation.window or known.window,
            )
        self._translation.messages = self._translation.calls = 0

    def _response(self, reason: StopReason, results: Sequence[ResultMessage]) -> Payload:
        """Return the end of a turn with its tokens, and a bookmark if it ended by itself."""
        # Where it was stopped, results of calls may come after its last message, and a copy would lack them.
        at = self._translation.last_message if reason == "end_turn" else None
        new, output, read, written = (sum(_count(each.usage or {}, name) for each in results) for name in _TOKENS)
        return turn_ended(reason, tokens(new, output, read, written), {"segue": {"at": at}})

    # ── what Claude Code asks ───────────────────────────────────────────────────────────────────────

    async def _permitted(
        self, tool: str, given: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        """Ask the user to allow a call, and return the SDK's answer."""
        if (await self._channel.ask(call(context.tool_use_id or str(uuid4()), tool, given))).allowed:
            return PermissionResultAllow()
        return PermissionResultDeny(message="The user refused this.", interrupt=self._cancelling)

    async def _before_tool(self, given: Any, *_: Any) -> Any:
        """Return the hook's answer: the user is asked for a call that needs permission; empty for others."""
        if not must_ask(given["tool_name"], given["tool_input"], self._mode):
            return {}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}}

    async def _before_compaction(self, *_: Any) -> Any:
        """Report to the client that a compaction begins."""
        for update in self._translation.compacting():
            await self._channel.update(update)
        return {}

    async def _at_stop(self, given: Any, *_: Any) -> Any:
        """Report background work that ends with the process, so that a later session knows of it."""
        running = [
            str(task.get("description") or task.get("command") or task) for task in given.get("background_tasks", ())
        ]
        if running:
            await self._channel.update(thought(f"Still running in the background: {'; '.join(running)}.\n"))
        return {}


def _complain(line: str) -> None:
    """Write a line of Claude Code's standard error to ours, unchanged."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _block(block: Parsed) -> Mapping[str, Any]:
    """Return a block of a prompt as the vendor writes it."""
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    source = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
    return {"type": "image", "source": source}


async def _prompt(content: Content) -> AsyncIterator[dict[str, Any]]:
    """Yield the prompt as the SDK's message."""
    yield {
        "type": "user",
        "message": {"role": "user", "content": list(content)},
        "parent_tool_use_id": None,
        "uuid": str(uuid4()),
    }


def _over(error: Exception) -> RequestError:
    """Return the error that Claude Code has ended; a request error as it is."""
    return error if isinstance(error, RequestError) else RequestError(INTERNAL_ERROR, f"Claude Code has ended: {error}")


def _count(usage: Mapping[str, Any], name: str) -> int:
    """Return a count of the usage, 0 if it is missing."""
    value = usage.get(name)
    return value if isinstance(value, int) else 0

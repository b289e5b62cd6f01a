"""A turn: the model is asked, its tool calls are done one after the other, and so on until it calls no more tools."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import anyio
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import (
    BinaryContent,
    InstructionPart,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.usage import RequestUsage

from segue.drivers.api.conversation_files import CANCELLED, INTERRUPTED, ConversationFile
from segue.drivers.api.file_root import FileRoot, ToolFailed
from segue.drivers.api.models import Models, refused
from segue.drivers.api.tools import TOOLS, Tool, ToolInput, use
from segue.drivers.skeleton import payloads
from segue.drivers.skeleton.agent_program import Channel, text_of
from segue.drivers.skeleton.jsonrpc import Message
from segue.drivers.skeleton.payloads import Payload, StopReason, ToolStatus
from segue.model.usage import UsageMetadata

INSTRUCTIONS = """You are a coding agent at work in a git worktree. Your file tools reach that worktree and nothing \
else; paths are relative to it. The shell starts there, but is not confined: it can do what the user can, so keep \
to the worktree yourself. Look before you change something, keep to what was asked, and run the tests where there are \
some. Edits and commands may be refused by the user: then say what you would have done, and go on without. When you \
are done, say in a few sentences what you did and what is left."""

MOST_REQUESTS = 200
"""In one turn; a model that never comes to an end would cost without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiConversation:
    """Open conversation, with its directory, its client and its models."""

    history: ConversationFile
    place: FileRoot
    channel: Channel
    models: Models

    @property
    def token(self) -> str:
        return self.history.token


class ApiTurn:
    """One turn of a conversation."""

    def __init__(self, setting: ApiConversation, model: Model) -> None:
        self._setting = setting
        self._history = setting.history
        self._update = setting.channel.update
        self._model = model
        self._parameters = ModelRequestParameters(
            function_tools=[tool.definition() for tool in TOOLS.values()],
            instruction_parts=[InstructionPart(content=INSTRUCTIONS)],
        )
        self._scope = anyio.CancelScope()
        self._usage = RequestUsage()

    async def cancel(self) -> None:
        """Cancel the turn; open calls are closed as failed."""
        self._scope.cancel()

    async def play(self, content: Sequence[Message]) -> Payload:
        """Store a prompt, let model and tools work until the model stops, and return the end of the turn."""
        await self._mend()
        self._history.add(ModelRequest(parts=[UserPromptPart(content=[_content(block) for block in content])]))
        reason: StopReason = "cancelled"
        try:
            with self._scope:
                reason = await self._go_on()
        except ModelAPIError as error:
            raise refused(error) from error
        if self._scope.cancelled_caught:
            for call in self._history.close_calls(CANCELLED):
                await self._report_end(call, "failed", CANCELLED)
        # As other agents count them: tokens that were read from a cache are no input.
        used, cached = self._usage, self._usage.cache_read_tokens
        tokens = payloads.tokens(used.input_tokens - cached, used.output_tokens, cached)
        return payloads.turn_ended(reason, tokens, {"segue": {"at": str(self._history.length)}})

    async def _mend(self) -> None:
        """Store a failed result for the calls that a killed process left open, and report them."""
        for call in self._history.close_calls(INTERRUPTED):
            title = f"{call.tool_name}({call.args_as_json_str()})"
            await self._update(payloads.thought(f"I was interrupted in {title}. {INTERRUPTED}\n"))

    async def _go_on(self) -> StopReason:
        """Ask the model and run its calls until it calls no tool; return the stop reason, also at the limit of
        requests."""
        for _ in range(MOST_REQUESTS):
            response = await self._ask()
            if not response.tool_calls:
                return _reason(response)
            for call in response.tool_calls:
                await self._call(call)
        return "max_turn_requests"

    # ── the model ───────────────────────────────────────────────────────────────────────────────────

    async def _ask(self) -> ModelResponse:
        """Request a response from the model, stream it to the client, and store it before its calls are run."""
        async with model_request_stream(
            self._model,
            self._history.messages(),
            model_request_parameters=self._parameters,
            # A provider that is busy is not asked again behind everybody's back.
            model_settings={"cache": True, "max_retries": 0},
        ) as stream:
            await self._stream(stream)
        response = stream.get()
        self._history.add(response)
        self._usage += response.usage
        await self._report(response)
        return response

    async def _stream(self, stream: StreamedResponse) -> None:
        """Report text and thoughts as they come; on cancellation keep the text so far."""
        try:
            async for event in stream:
                match event:
                    case (
                        PartStartEvent(part=TextPart(content=text))
                        | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
                    ) if text:
                        await self._update(payloads.message(text))
                    case (
                        PartStartEvent(part=ThinkingPart(content=text))
                        | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text)))
                    ) if text:
                        await self._update(payloads.thought(text))
                    case _:
                        pass
        except anyio.get_cancelled_exc_class():
            self._keep(stream.get())
            raise

    def _keep(self, response: ModelResponse) -> None:
        """Keep the text of an answer that was cut off; its other parts are of no use."""
        words = [part for part in response.parts if isinstance(part, TextPart) and part.content]
        if words:
            self._history.add(replace(response, parts=words))

    async def _report(self, response: ModelResponse) -> None:
        """Report the tokens and the cost of the conversation; nothing if the server does not count."""
        usage = UsageMetadata.from_pydantic_ai_usage(response.usage, self._setting.models.window)
        # Zero is what servers say that do not count.
        if used := usage.total_tokens:
            size = usage.context_window_size or 0
            spent = self._history.spent() if self._setting.models.priced else None
            await self._update(payloads.window(used, size, spent))

    # ── its tools ───────────────────────────────────────────────────────────────────────────────────

    async def _call(self, call: ToolCallPart) -> None:
        """Report and run one call, after permission if it needs one; a failure becomes the call's result."""
        try:
            tool, given = _understood(call)
        except ToolFailed as error:
            named = payloads.call(call.tool_call_id, call.tool_name, "other")
            await self._update(payloads.call_started(named, "pending"))
            await self._finish(call, str(error), failed=True)
            return
        asked = payloads.call(call.tool_call_id, tool.title(given), tool.kind, given=call.args_as_dict())
        path = getattr(given, "path", None)
        located = {"locations": [{"path": str(self._setting.place.root / path)}]} if path else {}
        await self._update(payloads.call_started({**asked, **located}, "pending" if tool.asks else "in_progress"))
        try:
            if tool.asks and not (await self._setting.channel.ask(asked)).allowed:
                raise ToolFailed("The user refused this.")
            await self._finish(call, await use(tool, given, self._setting.place), failed=False)
        except ToolFailed as error:
            await self._finish(call, str(error), failed=True)

    async def _finish(self, call: ToolCallPart, output: str, *, failed: bool) -> None:
        """Store the result of a call, then report it even if the turn is cancelled."""
        # First on disk: what was done must not be asked for again after a crash.
        self._history.answer(call, output, failed=failed)
        # What is on disk is told, too: a turn that is cancelled closes only the calls without a result.
        with anyio.CancelScope(shield=True):
            await self._report_end(call, "failed" if failed else "completed", output)

    async def _report_end(self, call: ToolCallPart, status: ToolStatus, output: str) -> None:
        """Report the end of a call to the client."""
        await self._update(payloads.call_ended(call.tool_call_id, status, output))


def _content(block: Message) -> UserContent:
    """Return a block of a prompt as the model library takes it."""
    if block.get("type") == "image":
        return BinaryContent(data=base64.b64decode(block["data"]), media_type=block["mimeType"])
    return text_of(block)


def _understood(call: ToolCallPart) -> tuple[Tool, ToolInput]:
    """Return the tool and the arguments of a call; raise ToolFailed if there is no such tool or they are wrong."""
    tool = TOOLS.get(call.tool_name)
    if tool is None:
        raise ToolFailed(f"There is no tool {call.tool_name}; there are {', '.join(TOOLS)}.")
    try:
        return tool, tool.read(call.args_as_dict())
    except (ValueError, AssertionError) as error:
        raise ToolFailed(f"The arguments of {call.tool_name} are no JSON object: {error}") from error


def _reason(response: ModelResponse) -> StopReason:
    """Return the protocol's stop reason for the end of a response."""
    match response.finish_reason:
        case "length":
            return "max_tokens"
        case "content_filter":
            return "refusal"
        case "stop" | "tool_call" | "error" | None:
            return "end_turn"
        case _:
            assert_never(response.finish_reason)

"""What the agent says, in the protocol's own words: its updates, its questions and its answers."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from segue import __version__
from segue.testing.rehearsal.script import Advertised, TodoItem, Tokens

Update = dict[str, Any]

StopReason = Literal["end_turn", "max_tokens", "cancelled"]
ToolKind = Literal["read", "edit", "execute", "think", "other"]
ToolStatus = Literal["pending", "in_progress", "completed", "failed"]

PROTOCOL_VERSION = 1

OPTIONS = (
    {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
)


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Only what is there: the protocol leaves out what is not."""
    return {name: value for name, value in fields.items() if value is not None}


# ── updates ─────────────────────────────────────────────────────────────────────────────────────────


def user_message(text: str) -> Update:
    return {"sessionUpdate": "user_message_chunk", "content": _text(text)}


def message(text: str) -> Update:
    return {"sessionUpdate": "agent_message_chunk", "content": _text(text)}


def thought(text: str) -> Update:
    return {"sessionUpdate": "agent_thought_chunk", "content": _text(text)}


def plan(entries: Sequence[TodoItem]) -> Update:
    return {
        "sessionUpdate": "plan",
        "entries": [{"content": each.content, "priority": each.priority, "status": each.status} for each in entries],
    }


def window(used: int, size: int, cost: float | None) -> Update:
    spent = None if cost is None else {"amount": cost, "currency": "USD"}
    return present({"sessionUpdate": "usage_update", "used": used, "size": size, "cost": spent})


def tool_call(
    call_id: str,
    title: str,
    kind: ToolKind,
    status: ToolStatus,
    *,
    paths: Sequence[str] | None = None,
    input: Mapping[str, Any] | None = None,
) -> Update:
    return present(
        {
            "sessionUpdate": "tool_call",
            "toolCallId": call_id,
            "title": title,
            "kind": kind,
            "status": status,
            "locations": None if paths is None else [{"path": path} for path in paths],
            "rawInput": input,
        }
    )


def tool_finished(call_id: str, status: ToolStatus, output: str) -> Update:
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id,
        "status": status,
        "content": [{"type": "content", "content": _text(output)}],
    }


def compaction(call_id: str, before: int, after: int) -> tuple[Update, Update]:
    """Its beginning and its end, as claude tells them."""
    meta = {"claudeCode": {"toolName": "compact"}}
    start = tool_call(call_id, "Compact conversation", "think", "in_progress")
    end = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id,
        "status": "completed",
        "rawOutput": {"preTokens": before, "postTokens": after},
    }
    return {**start, "_meta": meta}, {**end, "_meta": meta}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


# ── questions ───────────────────────────────────────────────────────────────────────────────────────


def permission(call_id: str, question: str, kind: ToolKind, input: Mapping[str, Any]) -> dict[str, Any]:
    call = {"toolCallId": call_id, "title": question, "kind": kind, "rawInput": input}
    return {"toolCall": call, "options": OPTIONS}


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────


def initialized(advertised: Advertised) -> dict[str, Any]:
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": {
            "loadSession": advertised.load,
            "promptCapabilities": {"image": advertised.images},
            "mcpCapabilities": {"http": True},
            "sessionCapabilities": {
                name: {} for name in ("resume", "fork", "list", "close") if getattr(advertised, name)
            },
        },
        "agentInfo": {"name": "rehearsal", "version": __version__},
    }


def turn_ended(reason: StopReason, counted: Sequence[Tokens]) -> dict[str, Any]:
    """The end of a turn, with its tokens if they are known, and once more for each model that has a name."""
    if not counted:
        return {"stopReason": reason}
    cached = [each.cached for each in counted if each.cached is not None]
    tokens = sum(each.input for each in counted), sum(each.output for each in counted)
    usage = {
        "inputTokens": tokens[0],
        "outputTokens": tokens[1],
        "totalTokens": sum((*tokens, *cached)),
        "cachedReadTokens": sum(cached) if cached else None,
    }
    named = [{"model": each.model, "token_count": _count(each)} for each in counted if each.model is not None]
    meta = {"quota": {"model_usage": named}} if named else None
    return present({"stopReason": reason, "usage": present(usage), "_meta": meta})


def _count(tokens: Tokens) -> dict[str, Any]:
    counted = {"inputTokens": tokens.input, "outputTokens": tokens.output, "cachedInputTokens": tokens.cached}
    return present(counted)


def mode_offer(modes: Sequence[str], current: str) -> dict[str, Any]:
    return {"currentModeId": current, "availableModes": [{"id": each, "name": each.title()} for each in modes]}


def model_offer(models: Sequence[str], current: str) -> dict[str, Any]:
    return {
        "id": "model",
        "name": "Model",
        "category": "model",
        "type": "select",
        "options": [{"value": each, "name": each.title()} for each in models],
        "currentValue": current,
    }

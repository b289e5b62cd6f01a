"""Objects of the Agent Client Protocol, as agent programs send them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

Payload = dict[str, Any]

StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
ToolKind = Literal["read", "edit", "delete", "search", "execute", "think", "fetch", "switch_mode", "other"]
ToolStatus = Literal["pending", "in_progress", "completed", "failed"]

PROTOCOL_VERSION = 1
OPTIONS = (
    {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
)
"""Answers that a permission request offers."""


def present(fields: Mapping[str, Any]) -> Payload:
    """Return the fields that have a value: the protocol leaves out the others."""
    return {name: value for name, value in fields.items() if value is not None}


def introduction(
    name: str,
    version: str,
    *,
    load: bool | None = None,
    images: bool = False,
    mcp: Iterable[str] = (),
    sessions: Iterable[str] = (),
) -> Payload:
    """Return the answer to `initialize`: name, version and capabilities of an agent."""
    capabilities: Payload = {
        "loadSession": load,
        "promptCapabilities": {"image": images},
        "mcpCapabilities": dict.fromkeys(mcp, True) or None,
        "sessionCapabilities": {each: {} for each in sessions},
    }
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": present(capabilities),
        "agentInfo": {"name": name, "version": version},
    }


# ── updates ─────────────────────────────────────────────────────────────────────────────────────────


def user_message(text: str) -> Payload:
    """Return an update that repeats a user's message."""
    return {"sessionUpdate": "user_message_chunk", "content": _text(text)}


def message(text: str) -> Payload:
    """Return an update with a piece of the agent's message."""
    return {"sessionUpdate": "agent_message_chunk", "content": _text(text)}


def thought(text: str) -> Payload:
    """Return an update with a piece of the agent's thought."""
    return {"sessionUpdate": "agent_thought_chunk", "content": _text(text)}


def window(used: int, size: int, cost: float | None = None, *, meta: Payload | None = None) -> Payload:
    """Return the tokens in the context, the size of its window (0 if unknown) and the cost so far in US dollars."""
    spent = None if cost is None else {"amount": cost, "currency": "USD"}
    return present({"sessionUpdate": "usage_update", "used": used, "size": size, "cost": spent, "_meta": meta})


def call(
    call_id: str,
    title: str,
    kind: ToolKind,
    *,
    paths: Iterable[str] | None = None,
    given: Mapping[str, Any] | None = None,
    meta: Payload | None = None,
) -> Payload:
    """Return a tool call as a permission request names it."""
    return present(
        {
            "toolCallId": _checked(call_id),
            "title": _checked(title),
            "kind": kind,
            "locations": None if paths is None else [{"path": path} for path in paths],
            "rawInput": given,
            "_meta": meta,
        }
    )


def call_started(
    call: Payload, status: ToolStatus, *, changes: Sequence[Payload] | None = None, meta: Payload | None = None
) -> Payload:
    """Return an update that begins a tool call."""
    return {"sessionUpdate": "tool_call", **call, "status": status, **present({"content": changes, "_meta": meta})}


def call_ended(
    call_id: str,
    status: ToolStatus,
    output: str | None = None,
    *,
    raw: Mapping[str, Any] | None = None,
    meta: Payload | None = None,
) -> Payload:
    """Return an update that ends a tool call, or reports its progress."""
    return present(
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": _checked(call_id),
            "status": status,
            "content": None if output is None else [{"type": "content", "content": _text(output)}],
            "rawOutput": raw,
            "_meta": meta,
        }
    )


def diff(path: str, after: str, before: str | None = None) -> Payload:
    """Return a change of a file; `before` is None for a new one."""
    return present({"type": "diff", "path": path, "newText": after, "oldText": before})


def _text(text: str) -> Payload:
    """Return a text block; raise TypeError if the text is none."""
    return {"type": "text", "text": _checked(text)}


def _checked(text: object) -> str:
    """Return the text; raise TypeError for any other value, since the client would drop the whole object."""
    if not isinstance(text, str):
        raise TypeError(f"expected text, found {text!r}")
    return text


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────


def model_option(
    models: Mapping[str, str], current: str, *, name: str = "Model", meta: Payload | None = None
) -> Payload:
    """Return the option that chooses the model; `models` maps the agent's ids to the names shown to people."""
    option = {
        "id": "model",
        "name": name,
        "category": "model",
        "type": "select",
        "options": [{"value": value, "name": shown} for value, shown in models.items()],
        "currentValue": current,
    }
    return {**option, **present({"_meta": meta})}


def modes(modes: Mapping[str, str], current: str) -> Payload:
    """Return the modes that can be chosen, and the current one."""
    return {"currentModeId": current, "availableModes": [{"id": each, "name": name} for each, name in modes.items()]}


def tokens(new: int, output: int, cached_read: int | None = None, cached_write: int | None = None) -> Payload:
    """Return the tokens of a turn; `new` is its input without that which was read from a cache."""
    return present(
        {
            "inputTokens": new,
            "outputTokens": output,
            "totalTokens": new + output + (cached_read or 0) + (cached_write or 0),
            "cachedReadTokens": cached_read,
            "cachedWriteTokens": cached_write,
        }
    )


def turn_ended(reason: StopReason, usage: Payload | None = None, meta: Payload | None = None) -> Payload:
    """Return the end of a turn."""
    return present({"stopReason": reason, "usage": usage, "_meta": meta})

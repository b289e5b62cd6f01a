"""Token usage and cost that an agent reports.

The window and the cost come while it works, the tokens with the end of a turn: in the protocol's own field, and from
some agents for each model in an additional field, which then also counts requests that the user does not see.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from acp.schema import Usage, UsageUpdate
from pydantic import ValidationError

from segue.model.events import JsonObject, UsageReported


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokens:
    input: int
    output: int
    cached: int | None


@dataclass(slots=True)
class Meter:
    """Knows which model is asked, and what was counted before."""

    since_start: bool = False
    """True if the agent counts from the start of its process, and not from the start of the turn."""
    model: str | None = None
    """Model in use, as far as the agent named it."""
    _before: dict[str | None, _Tokens] = field(default_factory=dict[str | None, _Tokens])

    def window(self, news: UsageUpdate) -> UsageReported:
        """Return a report of the tokens in the window, with the cost if it is in dollars, and note the model."""
        dollars = news.cost.amount if news.cost and news.cost.currency == "USD" else None
        self.model = _named(news.field_meta) or self.model
        return UsageReported(context_tokens=news.used, window=news.size or None, cost_usd=dollars, model=self.model)

    def turn(self, answer: JsonObject) -> list[UsageReported]:
        """Return a report of each model's tokens in a turn that has ended; empty if the agent counts none."""
        counted = dict(_by_model(answer)) or {self.model: _of_turn(answer.get("usage"))}
        return [
            UsageReported(
                input_tokens=tokens.input, output_tokens=tokens.output, cached_tokens=tokens.cached, model=model
            )
            for model, all_tokens in counted.items()
            if all_tokens is not None
            for tokens in [self._new(model, all_tokens)]
        ]

    def _new(self, model: str | None, tokens: _Tokens) -> _Tokens:
        """Return the tokens since the last report, of an agent that counts from its start; else all of them."""
        before = self._before.get(model)
        if not self.since_start:
            return tokens
        self._before[model] = tokens
        return tokens if before is None else _less(tokens, before)


def _less(now: _Tokens, before: _Tokens) -> _Tokens:
    """Return the difference of two counts, at least 0."""
    cached = None if now.cached is None else max(0, now.cached - (before.cached or 0))
    return _Tokens(input=max(0, now.input - before.input), output=max(0, now.output - before.output), cached=cached)


def _named(meta: Mapping[str, object] | None) -> str | None:
    """Return the model that an update of Claude names, or None."""
    name = (meta or {}).get("_claude/model")
    return name if isinstance(name, str) and name else None


def _of_turn(given: object) -> _Tokens | None:
    """Return the tokens of a turn, None if unreadable; the totals show if cached tokens are counted as input."""
    try:
        usage = Usage.model_validate(given)
    except ValidationError:
        return None
    read, written, thought = usage.cached_read_tokens, usage.cached_write_tokens or 0, usage.thought_tokens or 0
    cached = (read or 0) + written
    apart = usage.total_tokens - usage.input_tokens - usage.output_tokens
    new = usage.input_tokens - (read or 0) if apart in (0, thought) else usage.input_tokens + written
    output = usage.output_tokens if apart in (0, cached) else usage.output_tokens + thought
    return _Tokens(input=max(0, new), output=output, cached=read)


def _by_model(answer: JsonObject) -> Iterator[tuple[str, _Tokens]]:
    """Yield the tokens of each model in an answer that lists them."""
    quota = _object(_object(answer.get("_meta")).get("quota"))
    listed = quota.get("model_usage")
    for each in listed if _is_list(listed) else ():
        entry = _object(each)
        model, count = entry.get("model"), _object(entry.get("token_count"))
        tokens = _of_model(count)
        if isinstance(model, str) and tokens is not None:
            yield model, tokens


def _of_model(count: JsonObject) -> _Tokens | None:
    """Return the tokens of one model as claude, codex or gemini report it; None without input or output."""
    new, output = _number(count, *_INPUT), _number(count, *_OUTPUT)
    if new is None or output is None:
        return None
    return _Tokens(
        input=new + (_number(count, *_WRITTEN) or 0), output=output, cached=_number(count, "cachedInputTokens")
    )


_INPUT = ("inputTokens", "input_tokens")
_OUTPUT = ("outputTokens", "output_tokens")
_WRITTEN = ("cachedWriteTokens", "cacheWriteInputTokens")


def _number(count: JsonObject, *names: str) -> int | None:
    """Return the first of these counts that is there, or None if it is no number of at least 0."""
    found = next((count[name] for name in names if name in count), None)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def _object(value: object) -> JsonObject:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)

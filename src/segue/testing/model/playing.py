"""Choice of the scripted answer to a request."""

import json
from collections import Counter
from dataclasses import dataclass

from segue.testing.model.answers import (
    DONE,
    Call,
    DialectName,
    Failure,
    FailureKind,
    Rule,
    Say,
    Script,
    Shell,
    Step,
    Usage,
    Write,
)
from segue.testing.model.dialects.parts import new_id
from segue.testing.model.exchange import ModelError, ModelReply, ModelRequest, ToolCall
from segue.testing.model.tool_choice import choose, fitting

_SHOWN = 200

FAILURES: dict[FailureKind, tuple[int, str]] = {
    "rate_limited": (429, "This request would exceed your rate limit. Try again later."),
    "quota": (429, "You have reached your usage limit."),
    "unauthorized": (401, "The API key is not valid."),
    "thinking_blocks": (
        400,
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
        "modified. These blocks must remain as they were in the original response.",
    ),
    "too_long": (400, "prompt is too long: 210000 tokens > 200000 maximum"),
    "overloaded": (503, "Overloaded"),
    "invalid": (400, "The request is not valid."),
}


@dataclass(frozen=True, slots=True)
class PlayedAnswer:
    """Answer, sent when `hold` is released."""

    answer: ModelReply | ModelError
    hold: str | None = None

    @property
    def summary(self) -> str:
        match self.answer:
            case ModelError(status=status, kind=kind):
                return f"failed {status} {kind}"
            case ModelReply(calls=(call, *_)):
                return f"called {call.name}"
            case ModelReply(text=text):
                return f"said {text[:_SHOWN]}"


class Player:
    """Plays a script, and remembers how often each rule began."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._begun: Counter[int] = Counter()

    def play(self, asked: ModelRequest, dialect: DialectName) -> PlayedAnswer:
        """Return the script's answer to a request, and count the rule that began."""
        step = self._step(asked, dialect)
        match step.answer:
            case Failure() as failure:
                return PlayedAnswer(_trouble(failure), step.hold)
            case answer:
                text, calls = _said(answer, asked)
                return PlayedAnswer(_counted(text, calls, asked, step.usage or self._script.usage), step.hold)

    def _step(self, asked: ModelRequest, dialect: DialectName) -> Step:
        """Return the step for a request: the rule's next one, JSON if that is wanted, else the end."""
        if asked.wanted is not None:
            return Step(answer=Say(json.dumps(fitting(asked.wanted))))
        found = self._rule(asked, dialect)
        if found is None or asked.rounds >= len(found.steps):
            return DONE
        return found.steps[asked.rounds]

    def _rule(self, asked: ModelRequest, dialect: DialectName) -> Rule | None:
        """Return the first rule that fits, or None; a request with tool results continues a rule that has begun."""
        going_on = asked.rounds > 0
        for index, rule in enumerate(self._script.rules):
            if not rule.fits(asked.prompt, dialect):
                continue
            if rule.times is None or self._begun[index] < rule.times + going_on:
                self._begun[index] += not going_on
                return rule
        return None


def _said(answer: Say | Call | Write | Shell, asked: ModelRequest) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the text and the calls of an answer; text alone if the agent offers no suitable tool."""
    if isinstance(answer, Say):
        return answer.text.replace("{prompt}", asked.prompt[:_SHOWN]), ()
    chosen = choose(answer, asked.tools)
    if chosen is None:
        return f"No tool on offer can do this: {answer}", ()
    name, arguments = chosen
    return "", (ToolCall(id=new_id("call_"), name=name, arguments=arguments),)


def _counted(text: str, calls: tuple[ToolCall, ...], asked: ModelRequest, usage: Usage) -> ModelReply:
    """Return the model's reply with its tokens, estimated if the script gives none."""
    return ModelReply(
        text=text,
        calls=calls,
        model=asked.model or "scripted",
        input_tokens=usage.input if usage.input is not None else tokens(asked.size),
        cached_tokens=usage.cached,
        output_tokens=usage.output,
    )


def tokens(characters: int) -> int:
    """Estimate the tokens of so many characters, at least 1."""
    return max(1, characters // 4)


def _trouble(failure: Failure) -> ModelError:
    """Return the error of a scripted failure."""
    status, sentence = FAILURES[failure.kind]
    return ModelError(
        status=status,
        kind=failure.kind,
        message=failure.message or sentence,
        retry_after=failure.retry_after,
        reset=failure.reset,
    )

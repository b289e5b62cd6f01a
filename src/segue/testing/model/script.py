"""What the model answers to which words, as frozen values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

DialectName = Literal["anthropic", "responses", "chat", "gemini", "augment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The tokens the model says it used; without `input` it is a quarter of the request's characters."""

    input: int | None = None
    output: int = 7
    cached: int = 0


# ── what a step can be ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Say:
    """Answer with text; `{prompt}` in it is the beginning of what was asked."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """Call a tool by its own name; of several, the first that the agent offers."""

    name: str | tuple[str, ...]
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Write:
    """Write a file with whatever tool the agent has for that."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Shell:
    """Run a command with whatever tool the agent has for that."""

    command: str


FailureKind = Literal["rate_limited", "quota", "unauthorized", "thinking_blocks", "too_long", "overloaded", "invalid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Answer with an error, worded and numbered as the dialect's vendor does."""

    kind: FailureKind
    retry_after: int | None = None
    reset: str | None = None
    message: str | None = None


Answer = Say | Call | Write | Shell | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answer, perhaps held back, and what the model says that it cost."""

    answer: Answer
    usage: Usage | None = None
    hold: str | None = None
    """The answer waits until this name is released."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What to do when the last words of the user fit: one step, then another after each tool result."""

    match: str = ""
    steps: tuple[Step, ...]
    dialect: DialectName | None = None
    times: int | None = None
    """How often the rule may begin; after that the rules below it have their chance."""

    def fits(self, prompt: str, dialect: DialectName) -> bool:
        if self.dialect not in (None, dialect):
            return False
        if len(self.match) > 1 and self.match.startswith("/") and self.match.endswith("/"):
            return re.search(self.match[1:-1], prompt) is not None
        return self.match in prompt


DONE = Step(answer=Say("Done."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    rules: tuple[Rule, ...] = ()
    usage: Usage = field(default_factory=Usage)


def rule(match: str, *answers: Answer | Step, **more: Any) -> Rule:
    """A rule from answers, for scripts written in Python."""
    steps = (each if isinstance(each, Step) else Step(answer=each) for each in answers)
    return Rule(match=match, steps=tuple(steps), **more)

"""The model's script: answers to prompts, as frozen values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

DialectName = Literal["anthropic", "responses", "chat", "gemini", "augment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Usage that the model reports; without `input`, a quarter of the request's characters."""

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
    """Answer with an error in the format of the dialect's vendor."""

    kind: FailureKind
    retry_after: int | None = None
    reset: str | None = None
    message: str | None = None


ScriptedAnswer = Say | Call | Write | Shell | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Answer, with optional usage and hold."""

    answer: ScriptedAnswer
    usage: Usage | None = None
    hold: str | None = None
    """The answer waits until this name is released."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Steps for prompts that match: one at once, then one after each tool result."""

    match: str = ""
    steps: tuple[Step, ...]
    dialect: DialectName | None = None
    times: int | None = None
    """Most uses of the rule; later prompts are matched by the rules below it."""

    def fits(self, prompt: str, dialect: DialectName) -> bool:
        """Return True if the rule is for this dialect and its text, or /pattern/, is in the prompt."""
        if self.dialect not in (None, dialect):
            return False
        if len(self.match) > 1 and self.match.startswith("/") and self.match.endswith("/"):
            return re.search(self.match[1:-1], prompt) is not None
        return self.match in prompt


DONE = Step(answer=Say("Done."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Rules of a model, and its default usage."""

    rules: tuple[Rule, ...] = ()
    usage: Usage = field(default_factory=Usage)


def rule(match: str, *answers: ScriptedAnswer | Step, **more: Any) -> Rule:
    """Return a rule from answers, for scripts written in Python."""
    steps = (each if isinstance(each, Step) else Step(answer=each) for each in answers)
    return Rule(match=match, steps=tuple(steps), **more)

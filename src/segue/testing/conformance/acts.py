"""Acts of an agent that a check can ask for, as frozen values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Say:
    """Answer with this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Write:
    """Ask whether a file may be written, and write it if so; then end the turn."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Hang:
    """Show any sign of life, and then do nothing until the turn is cancelled."""


@dataclass(frozen=True, slots=True)
class Use:
    """Answer with any text, and report these tokens; the context holds both of them then."""

    input: int
    output: int


@dataclass(frozen=True, slots=True)
class Fail:
    """End the turn with an error that contains this text."""

    message: str


@dataclass(frozen=True, slots=True)
class SayLate:
    """End the turn without a message, and send this text after it."""

    text: str


@dataclass(frozen=True, slots=True)
class Mistake:
    """Whenever it is asked to go back to a conversation, answer with another one, at once or when it is prompted; its
    line has no prompt."""


Act = Say | Write | Hang | Use | Fail | SayLate | Mistake


@dataclass(frozen=True, slots=True)
class Line:
    """Act of the agent for a prompt that contains this text."""

    prompt: str
    act: Act

"""What a check can ask of an agent, as frozen values."""

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
    """Answer something, and tell that it took these tokens; the context holds both of them then."""

    input: int
    output: int


@dataclass(frozen=True, slots=True)
class Fail:
    """End the turn with an error that holds these words."""

    message: str


@dataclass(frozen=True, slots=True)
class SayLate:
    """End the turn without a word, and say this after it."""

    text: str


@dataclass(frozen=True, slots=True)
class Mistake:
    """Whenever it is asked to go back to a conversation, answer with another one, at once or when it is prompted; its
    line has no prompt."""


Act = Say | Write | Hang | Use | Fail | SayLate | Mistake


@dataclass(frozen=True, slots=True)
class Line:
    """What the agent does when a prompt holds these words."""

    prompt: str
    act: Act

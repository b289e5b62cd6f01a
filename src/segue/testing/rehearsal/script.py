"""The script: what the agent does when, as frozen values."""

import re
from dataclasses import dataclass, field
from typing import Literal

# ── what a step can do ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Think:
    text: str


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Stream:
    """Say `text` again and again, one chunk each time; `{n}` in it is the number of the chunk."""

    text: str
    chunks: int


@dataclass(frozen=True, slots=True)
class Recall:
    """Say every prompt this conversation ever had."""


@dataclass(frozen=True, slots=True)
class TodoItem:
    content: str
    status: Literal["pending", "in_progress", "completed"]
    priority: Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Todo:
    entries: tuple[TodoItem, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """Report the window and the cost now, and the tokens with the end of the turn."""

    used: int | None
    size: int | None
    cost: float | None
    tokens: "Tokens | None"


@dataclass(frozen=True, slots=True)
class Tokens:
    """What was counted in a turn; what was read from the cache is no part of the input."""

    input: int
    output: int
    cached: int | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Write:
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Edit:
    path: str
    find: str
    replace: str


@dataclass(frozen=True, slots=True)
class Run:
    command: str


@dataclass(frozen=True, slots=True)
class ClientRead:
    """Let the client read a file."""

    path: str
    line: int | None
    limit: int | None


@dataclass(frozen=True, slots=True)
class ClientWrite:
    """Let the client write a file."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class ClientRun:
    """Let the client run a command in a terminal of its own."""

    command: str


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start a shell in a session of its own and leave it behind."""

    command: str


@dataclass(frozen=True, slots=True)
class Touch:
    path: str


@dataclass(frozen=True, slots=True)
class WaitFor:
    path: str


@dataclass(frozen=True, slots=True)
class Ask:
    title: str
    then: "tuple[Step, ...]"
    otherwise: "tuple[Step, ...]"


@dataclass(frozen=True, slots=True)
class Aside:
    """Play these steps beside the turn, which goes on, and may end before them."""

    steps: "tuple[Step, ...]"


@dataclass(frozen=True, slots=True)
class Crash:
    """Die without a word: now, or around the effect of another step."""

    when: Literal["now", "before", "after"]
    of: "Step | None" = None


@dataclass(frozen=True, slots=True)
class Hang:
    """Do nothing for ever; a deaf one does not even hear that it is cancelled."""

    deaf: bool


@dataclass(frozen=True, slots=True)
class ExceedWindow:
    """End the turn because the window is full."""


@dataclass(frozen=True, slots=True)
class Compact:
    """Say that the conversation was replaced by a summary of it."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer the prompt with an error."""

    message: str
    code: int = -32603


@dataclass(frozen=True, slots=True)
class Mute:
    """Close the output, and live on."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """Print a line that is no message."""

    line: str


@dataclass(frozen=True, slots=True)
class Exit:
    code: int


ToolAction = Write | Edit | Run | Spawn | Touch | ClientRead | ClientWrite | ClientRun
"""What has an effect outside; each is reported as a tool call."""

PlainAction = (
    Think
    | Say
    | Stream
    | Recall
    | Todo
    | Usage
    | Compact
    | WaitFor
    | Ask
    | Aside
    | Hang
    | ExceedWindow
    | Fail
    | Mute
    | Garbage
    | Exit
)

Action = ToolAction | PlainAction | Crash


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    key: str
    """Where it stands in the script; by this a step played once is remembered."""
    action: Action
    once: bool = False
    ask: str | None = None
    """The question to put before the tool call may have its effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    key: str
    match: str
    steps: tuple[Step, ...]
    once: bool = False

    def matches(self, prompt: str) -> bool:
        if len(self.match) > 1 and self.match.startswith("/") and self.match.endswith("/"):
            return re.search(self.match[1:-1], prompt) is not None
        return self.match in prompt


# ── how a conversation opens ────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How the agent answers `initialize` or `session/new`: well, unless told otherwise."""

    delay: float = 0.0
    """Seconds until it answers."""
    garbage: str | None = None
    exit: int | None = None
    mute: bool = False
    hang: bool = False
    login: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading(Opening):
    """How the agent answers `session/load` and `session/resume`."""

    replay: bool = True
    """Whether `session/load` sends the whole history again, as the protocol wants it."""
    reject: bool = False
    other_id: Literal["", "answer", "updates"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advertised:
    """What the agent says it can do."""

    load: bool = True
    resume: bool = True
    fork: bool = True
    list: bool = True
    close: bool = True
    images: bool = True


DEFAULT_TURN = Turn(key="default", match="", steps=(Step(key="default.do[0]", action=Say("Done.")),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    turns: tuple[Turn, ...] = (DEFAULT_TURN,)
    on_initialize: Opening = field(default_factory=Opening)
    on_new: Opening = field(default_factory=Opening)
    on_load: Loading = field(default_factory=Loading)
    on_choose: Opening = field(default_factory=Opening)
    """How it answers when its mode or its model is chosen."""
    capabilities: Advertised = field(default_factory=Advertised)
    modes: tuple[str, ...] = ()
    """The first is the one it begins with."""
    models: tuple[str, ...] = ()

"""The script: the agent's behaviour, as frozen values."""

import re
from dataclasses import dataclass, field
from typing import Literal

# ── what a step can do ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Think:
    """Send a thought."""

    text: str


@dataclass(frozen=True, slots=True)
class Say:
    """Send a message."""

    text: str


@dataclass(frozen=True, slots=True)
class Stream:
    """Send `text` several times, one chunk each; `{n}` in it is the number of the chunk."""

    text: str
    chunks: int


@dataclass(frozen=True, slots=True)
class Recall:
    """Send all earlier prompts of this conversation."""


@dataclass(frozen=True, slots=True)
class TodoItem:
    """Entry of the agent's plan."""

    content: str
    status: Literal["pending", "in_progress", "completed"]
    priority: Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Todo:
    """Send the agent's plan."""

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
    """Tokens of a turn; cached tokens are not part of the input."""

    input: int
    output: int
    cached: int | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """Write a file."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace a text that occurs once in a file."""

    path: str
    find: str
    replace: str


@dataclass(frozen=True, slots=True)
class Run:
    """Run a command and wait for it."""

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
    """Start a shell in a new session, and do not wait for it."""

    command: str


@dataclass(frozen=True, slots=True)
class Touch:
    """Create an empty file."""

    path: str


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Wait until a file exists."""

    path: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Request a permission; play different steps by the answer."""

    title: str
    then: "tuple[Step, ...]"
    otherwise: "tuple[Step, ...]"


@dataclass(frozen=True, slots=True)
class Aside:
    """Play these steps in parallel to the turn, which may end before them."""

    steps: "tuple[Step, ...]"


@dataclass(frozen=True, slots=True)
class Crash:
    """Kill the process: now, or before or after the effect of another step."""

    when: Literal["now", "before", "after"]
    of: "Step | None" = None


@dataclass(frozen=True, slots=True)
class Hang:
    """Do nothing for ever; `deaf` also ignores cancellation."""

    deaf: bool


@dataclass(frozen=True, slots=True)
class ExceedWindow:
    """End the turn because the window is full."""


@dataclass(frozen=True, slots=True)
class Compact:
    """Report that the conversation was compacted."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer the prompt with an error."""

    message: str
    code: int = -32603


@dataclass(frozen=True, slots=True)
class Mute:
    """Close the output, and continue to run."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """Print a line that is not a message."""

    line: str


@dataclass(frozen=True, slots=True)
class Exit:
    """Exit with a code."""

    code: int


ToolAction = Write | Edit | Run | Spawn | Touch | ClientRead | ClientWrite | ClientRun
"""Actions with an external effect; each is reported as a tool call."""

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
    """Action of a turn."""

    key: str
    """Place in the script; identifies a step that is played once."""
    action: Action
    once: bool = False
    ask: str | None = None
    """Permission request before the effect of the tool call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Steps for prompts that match."""

    key: str
    match: str
    steps: tuple[Step, ...]
    once: bool = False

    def matches(self, prompt: str) -> bool:
        """Return True if the turn's text, or /pattern/, is in the prompt."""
        if len(self.match) > 1 and self.match.startswith("/") and self.match.endswith("/"):
            return re.search(self.match[1:-1], prompt) is not None
        return self.match in prompt


# ── how a conversation opens ────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Behaviour at `initialize` or `session/new`; without fields, a correct answer."""

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
    """Behaviour at `session/load` and `session/resume`."""

    replay: bool = True
    """Replay the whole history at `session/load`, as the protocol requires."""
    reject: bool = False
    other_id: Literal["", "answer", "updates"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advertised:
    """Capabilities that the agent reports."""

    load: bool = True
    resume: bool = True
    fork: bool = True
    list: bool = True
    close: bool = True
    images: bool = True


DEFAULT_TURN = Turn(key="default", match="", steps=(Step(key="default.do[0]", action=Say("Done.")),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Whole behaviour of the agent."""

    turns: tuple[Turn, ...] = (DEFAULT_TURN,)
    on_initialize: Opening = field(default_factory=Opening)
    on_new: Opening = field(default_factory=Opening)
    on_load: Loading = field(default_factory=Loading)
    on_choose: Opening = field(default_factory=Opening)
    """Behaviour when a mode or a model is chosen."""
    capabilities: Advertised = field(default_factory=Advertised)
    modes: tuple[str, ...] = ()
    """Available modes; the first is the default."""
    models: tuple[str, ...] = ()

"""Parser of scripts in YAML; an error names the place of the invalid value."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

import yaml

from segue.model.errors import BadInput
from segue.testing.rehearsal.script import (
    Action,
    Advertised,
    Aside,
    Ask,
    ClientRead,
    ClientRun,
    ClientWrite,
    Compact,
    Crash,
    Edit,
    ExceedWindow,
    Exit,
    Fail,
    Garbage,
    Hang,
    Loading,
    Mute,
    Opening,
    Recall,
    Run,
    Say,
    Script,
    Spawn,
    Step,
    Stream,
    Think,
    Todo,
    TodoItem,
    Tokens,
    ToolAction,
    Touch,
    Turn,
    Usage,
    WaitFor,
    Write,
)

Option = TypeVar("Option", bound=str)

# The loader in C where available: a long script delays the agent's first answer.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class BadScript(BadInput):
    """The rehearsal script cannot be used."""

    hint = "docs/reference/rehearsal.md describes the script."


def read_script(path: Path) -> Script:
    """Read an agent's script from a YAML file; raise BadScript if it is unreadable or invalid."""
    try:
        document: object = yaml.load(path.read_text(), Loader=_LOADER)
    except OSError as error:
        raise BadScript(f"The script {path} cannot be read: {error.strerror}.") from error
    except yaml.YAMLError as error:
        raise BadScript(f"The script {path} is not YAML: {error}") from error
    return parse_script(document)


def parse_script(document: object) -> Script:
    """Return the script in a document; raise BadScript with the place of the fault."""
    given = YamlNode(document).fields(optional=("turns", *_PARTS))
    parts: dict[str, Any] = {name: parse(given[name]) for name, parse in _PARTS.items() if name in given}
    if "turns" in given:
        parts["turns"] = tuple(_turn(each) for each in given["turns"].items())
    return Script(**parts)


@dataclass(frozen=True, slots=True)
class YamlNode:
    """A value of the document and where it stands."""

    value: object
    where: str = ""

    def wrong(self, wanted: str, advice: str = "") -> BadScript:
        """Return the error that the node is not as wanted, with its place, its value and the advice."""
        return BadScript(f"{self.where or 'The script'}: expected {wanted}, found {self.value!r}{advice}.")

    def text(self) -> str:
        """Return the node as text; raise BadScript if it is none."""
        if not isinstance(self.value, str):
            # YAML parses an unquoted yes as true, and 12 as a number.
            raise self.wrong("text", "; quote it" if isinstance(self.value, bool | int | float | date) else "")
        return self.value

    def whole(self) -> int:
        """Return the node as an integer of at least 0; raise BadScript if it is none."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 0:
            raise self.wrong("a whole number")
        return self.value

    def number(self) -> float:
        """Return the node as a number; raise BadScript if it is none."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.wrong("a number")
        return float(self.value)

    def moment(self) -> str:
        """Return the node, a date with time or text, as text."""
        # YAML parses dates by their format.
        return self.value.isoformat() if isinstance(self.value, datetime) else self.text()

    def flag(self) -> bool:
        """Return the node as a boolean; raise BadScript if it is none."""
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def true(self) -> None:
        """Raise BadScript unless the node is true."""
        if self.value is not True:
            raise self.wrong("true")

    def one_of(self, *words: Option) -> Option:
        """Return the node if it is one of these; raise BadScript if not."""
        for word in words:
            if self.value == word:
                return word
        raise self.wrong(f"one of {', '.join(words)}")

    def items(self) -> list["YamlNode"]:
        """Return the nodes of a list; raise BadScript if it is none."""
        if not _is_list(self.value):
            raise self.wrong("a list")
        return [YamlNode(value, f"{self.where}[{index}]") for index, value in enumerate(self.value)]

    def fields(self, required: tuple[str, ...] = (), optional: tuple[str, ...] = ()) -> dict[str, "YamlNode"]:
        """Return the fields of a mapping; raise BadScript if a required one is missing or one is unknown."""
        if not _is_mapping(self.value):
            raise self.wrong(f"a mapping with {', '.join(required or optional)}")
        for name in self.value:
            if name not in required and name not in optional:
                raise BadScript(
                    f"{self.where or 'The script'}: unknown field {name!r}; known: {', '.join(required + optional)}."
                )
        for name in required:
            if name not in self.value:
                raise BadScript(f"{self.where}: {name!r} is missing.")
        prefix = f"{self.where}." if self.where else ""
        return {str(name): YamlNode(value, f"{prefix}{name}") for name, value in self.value.items()}


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def _is_mapping(value: object) -> TypeGuard[dict[object, object]]:
    return isinstance(value, dict)


def _flag(given: dict[str, YamlNode], name: str, *, default: bool = False) -> bool:
    """Return a boolean field, or the default if it is missing."""
    return given[name].flag() if name in given else default


def _turn(place: YamlNode) -> Turn:
    """Return one turn of the script; a pattern is checked."""
    given = place.fields(required=("do",), optional=("match", "once"))
    match = given["match"].text() if "match" in given else ""
    turn = Turn(key=place.where, match=match, steps=_steps(given["do"]), once=_flag(given, "once"))
    try:
        turn.matches("")
    except re.error as error:
        raise BadScript(f"{place.where}.match: {match} is not a regular expression: {error}.") from error
    return turn


# ── steps ───────────────────────────────────────────────────────────────────────────────────────────


def _steps(place: YamlNode) -> tuple[Step, ...]:
    """Return the steps in a list."""
    return tuple(_step(each) for each in place.items())


def _step(place: YamlNode) -> Step:
    """Return one step, with exactly one action and its modifiers."""
    given = place.fields(optional=(*_ACTIONS, "once", "deaf"))
    names = [name for name in given if name in _ACTIONS]
    # `ask` beside another action requests permission for that action.
    if len(names) > 1 and "ask" in names:
        names.remove("ask")
    if len(names) != 1:
        raise place.wrong(f"exactly one of {', '.join(_ACTIONS)}")
    action = _ACTIONS[names[0]](given[names[0]])
    return Step(
        key=place.where,
        action=_deafened(action, given) if "deaf" in given else action,
        once=_flag(given, "once"),
        ask=_question(action, given),
    )


def _deafened(action: Action, given: dict[str, YamlNode]) -> Action:
    """Return a hang that may ignore cancellation; raise BadScript for any other action."""
    if not isinstance(action, Hang):
        raise given["deaf"].wrong("`deaf` only beside `hang`")
    return Hang(deaf=given["deaf"].flag())


def _question(action: Action, given: dict[str, YamlNode]) -> str | None:
    """Return the question of a tool call: None for no question, empty for the call's own title."""
    if "ask" not in given or isinstance(action, Ask):
        return None
    if not isinstance(action, ToolAction):
        raise given["ask"].wrong("`ask` alone, or beside a tool call")
    if given["ask"].value is True:
        return ""
    return given["ask"].text()


def _write(place: YamlNode) -> Write:
    """Return the action that writes a file."""
    given = place.fields(required=("path", "content"))
    return Write(given["path"].text(), given["content"].text())


def _edit(place: YamlNode) -> Edit:
    """Return the action that replaces a text in a file."""
    given = place.fields(required=("path", "find", "replace"))
    return Edit(given["path"].text(), given["find"].text(), given["replace"].text())


def _todo_item(place: YamlNode) -> TodoItem:
    """Return an entry of a to-do list."""
    given = place.fields(required=("content",), optional=("status", "priority"))
    return TodoItem(
        given["content"].text(),
        given["status"].one_of("pending", "in_progress", "completed") if "status" in given else "pending",
        given["priority"].one_of("high", "medium", "low") if "priority" in given else "medium",
    )


def _usage(place: YamlNode) -> Usage:
    """Return the action that reports usage; fields that belong together are checked."""
    given = place.fields(optional=("used", "size", "cost", "input", "output", "cached", "model"))
    if ("used" in given) != ("size" in given) or ("cost" in given and "used" not in given):
        raise place.wrong("`used` and `size` together, and `cost` only beside them")
    if ("input" in given) != ("output" in given):
        raise place.wrong("`input` and `output` together")
    if ("cached" in given or "model" in given) and "input" not in given:
        raise place.wrong("`cached` and `model` only beside `input` and `output`")
    used, size = (given[name].whole() if name in given else None for name in ("used", "size"))
    cost = given["cost"].number() if "cost" in given else None
    return Usage(used, size, cost, _tokens(given) if "input" in given else None)


def _tokens(given: Mapping[str, YamlNode]) -> Tokens:
    """Return the tokens of a turn."""
    return Tokens(
        given["input"].whole(),
        given["output"].whole(),
        given["cached"].whole() if "cached" in given else None,
        given["model"].text() if "model" in given else None,
    )


def _compact(place: YamlNode) -> Compact:
    """Return the action that reports a compaction."""
    given = place.fields(required=("before", "after"))
    return Compact(given["before"].whole(), given["after"].whole())


def _client_read(place: YamlNode) -> ClientRead:
    """Return the action that reads a file through the client."""
    given = place.fields(required=("path",), optional=("line", "limit"))
    line, limit = (given[name].whole() if name in given else None for name in ("line", "limit"))
    return ClientRead(given["path"].text(), line, limit)


def _client_write(place: YamlNode) -> ClientWrite:
    """Return the action that writes a file through the client."""
    given = place.fields(required=("path", "content"))
    return ClientWrite(given["path"].text(), given["content"].text())


# Messages of vendors.
_FAILURES = {
    "quota": Fail("API Error: Request rejected (429) · You have reached your usage limit."),
    "login": Fail("Authentication required", -32000),
    "corrupt": Fail(
        "API Error: 400 messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message"
        " cannot be modified."
    ),
    "full": Fail("Prompt is too long"),
}


def _fail(place: YamlNode) -> Fail:
    """Return the action that fails the turn, with a message or a known kind."""
    if isinstance(place.value, str):
        return Fail(place.text())
    given = place.fields(required=("kind",), optional=("reset",))
    failure = _FAILURES[given["kind"].one_of(*_FAILURES)]
    if "reset" not in given:
        return failure
    return replace(failure, message=f"{failure.message} Resets at {given['reset'].moment()}.")


def _ask(place: YamlNode) -> Ask:
    """Return the action that asks a question, with the steps for each answer."""
    given = place.fields(required=("title",), optional=("then", "otherwise"))
    then, otherwise = (_steps(given[name]) if name in given else () for name in ("then", "otherwise"))
    return Ask(given["title"].text(), then, otherwise)


def _crash(place: YamlNode) -> Crash:
    """Return the action that crashes now, or before or after the effect of a step."""
    if place.value is True:
        return Crash("now")
    given = place.fields(required=("when", "of"))
    return Crash(given["when"].one_of("before", "after"), _step(given["of"]))


def _stream(place: YamlNode) -> Stream:
    """Return the action that sends a text in several pieces."""
    given = place.fields(required=("text", "chunks"))
    return Stream(given["text"].text(), given["chunks"].whole())


def _if_true(action: Action) -> Callable[[YamlNode], Action]:
    """Return a parser that accepts only true, and returns this action."""

    def parse(place: YamlNode) -> Action:
        place.true()
        return action

    return parse


_ACTIONS: dict[str, Callable[[YamlNode], Action]] = {
    "think": lambda place: Think(place.text()),
    "say": lambda place: Say(place.text()),
    "stream": _stream,
    "recall": _if_true(Recall()),
    "plan": lambda place: Todo(tuple(_todo_item(each) for each in place.items())),
    "usage": _usage,
    "compact": _compact,
    "write": _write,
    "edit": _edit,
    "run": lambda place: Run(place.text()),
    "spawn": lambda place: Spawn(place.text()),
    "touch": lambda place: Touch(place.text()),
    "client_read": _client_read,
    "client_write": _client_write,
    "client_run": lambda place: ClientRun(place.text()),
    "wait_for": lambda place: WaitFor(place.text()),
    "ask": _ask,
    "aside": lambda place: Aside(_steps(place)),
    "crash": _crash,
    "hang": _if_true(Hang(deaf=False)),
    "exceed_window": _if_true(ExceedWindow()),
    "fail": _fail,
    "mute": _if_true(Mute()),
    "garbage": lambda place: Garbage(place.text()),
    "exit": lambda place: Exit(place.whole()),
}


# ── openings ────────────────────────────────────────────────────────────────────────────────────────

_MISHAPS: dict[str, Callable[[YamlNode], Any]] = {
    "delay": YamlNode.number,
    "mute": YamlNode.flag,
    "garbage": YamlNode.text,
    "exit": YamlNode.whole,
    "hang": YamlNode.flag,
    "login": YamlNode.flag,
    "error": YamlNode.text,
}


def _opening(place: YamlNode) -> Opening:
    """Return the failures of an opening."""
    given = place.fields(optional=tuple(_MISHAPS))
    return Opening(**{name: _MISHAPS[name](value) for name, value in given.items()})


def _loading(place: YamlNode) -> Loading:
    """Return the failures and options of loading a conversation."""
    parsers: dict[str, Callable[[YamlNode], Any]] = {
        **_MISHAPS,
        "replay": YamlNode.flag,
        "reject": YamlNode.flag,
        "other_id": _other_id,
    }
    given = place.fields(optional=tuple(parsers))
    return Loading(**{name: parsers[name](value) for name, value in given.items()})


def _other_id(place: YamlNode) -> str:
    """Return where a wrong token is sent: in the answer (also for true), or in the updates."""
    return "answer" if place.value is True else place.one_of("answer", "updates")


def _advertised(place: YamlNode) -> Advertised:
    """Return the capabilities that the agent declares."""
    given = place.fields(optional=tuple(each.name for each in fields(Advertised)))
    return Advertised(**{name: value.flag() for name, value in given.items()})


def _words(place: YamlNode) -> tuple[str, ...]:
    """Return the texts in a list."""
    return tuple(each.text() for each in place.items())


_PARTS: dict[str, Callable[[YamlNode], object]] = {
    "on_initialize": _opening,
    "on_new": _opening,
    "on_load": _loading,
    "on_choose": _opening,
    "capabilities": _advertised,
    "modes": _words,
    "models": _words,
}

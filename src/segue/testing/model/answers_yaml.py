"""Parser of scripts in YAML; an error names the place of the invalid value."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast, get_args

import yaml

from segue.model.errors import BadInput
from segue.testing.model.answers import (
    Call,
    DialectName,
    Failure,
    FailureKind,
    Rule,
    Say,
    Script,
    ScriptedAnswer,
    Shell,
    Step,
    Usage,
    Write,
)
from segue.testing.rehearsal.script_yaml import BadScript, YamlNode


class BadModelScript(BadInput):
    """The model's script cannot be used."""

    hint = "docs/reference/scripted-model.md describes the script."


def read_script(path: Path) -> Script:
    """Read a model's script from a YAML file; raise BadModelScript if it is unreadable or invalid."""
    try:
        document: object = yaml.safe_load(path.read_text())
    except OSError as error:
        raise BadModelScript(f"The script {path} cannot be read: {error.strerror}.") from error
    except yaml.YAMLError as error:
        raise BadModelScript(f"The script {path} is not YAML: {error}") from error
    return parse_script({} if document is None else document)


def parse_script(document: object) -> Script:
    """Return the script in a document; raise BadModelScript with the place of the fault."""
    try:
        given = YamlNode(document).fields(optional=("rules", "usage"))
        rules = tuple(_rule(each) for each in given["rules"].items()) if "rules" in given else ()
        return Script(rules=rules, usage=_usage(given["usage"]) if "usage" in given else Usage())
    except BadScript as error:
        raise BadModelScript(error.message) from error


def _rule(place: YamlNode) -> Rule:
    """Return one rule of the script."""
    given = place.fields(required=("do",), optional=("match", "dialect", "times"))
    return Rule(
        match=given["match"].text() if "match" in given else "",
        steps=tuple(_step(each) for each in given["do"].items()),
        dialect=given["dialect"].one_of(*get_args(DialectName)) if "dialect" in given else None,
        times=given["times"].whole() if "times" in given else None,
    )


def _step(place: YamlNode) -> Step:
    """Return one step of a rule, which must have exactly one answer."""
    given = place.fields(optional=(*_ANSWERS, "usage", "hold"))
    answers = [name for name in given if name in _ANSWERS]
    if len(answers) != 1:
        raise place.wrong(f"one of {', '.join(_ANSWERS)}")
    return Step(
        answer=_ANSWERS[answers[0]](given[answers[0]]),
        usage=_usage(given["usage"]) if "usage" in given else None,
        hold=given["hold"].text() if "hold" in given else None,
    )


def _usage(place: YamlNode) -> Usage:
    """Return the token counts of an answer."""
    given = place.fields(optional=("input", "output", "cached"))
    return Usage(**{name: each.whole() for name, each in given.items()})


def _call(place: YamlNode) -> Call:
    """Return a tool call; several names mean the first one on offer."""
    given = place.fields(required=("name",), optional=("arguments",))
    name = given["name"].value
    names = given["name"].text() if isinstance(name, str) else tuple(each.text() for each in given["name"].items())
    return Call(names, _arguments(given["arguments"]) if "arguments" in given else {})


def _arguments(place: YamlNode) -> dict[str, Any] | str:
    """Return a call's arguments: an object, or text as it is."""
    if isinstance(place.value, str):
        return place.value
    given: object = place.value
    if not isinstance(given, dict):
        raise place.wrong("a mapping or a text")
    return cast(dict[str, Any], given)


def _write(place: YamlNode) -> Write:
    """Return the answer that writes a file."""
    given = place.fields(required=("path", "content"))
    return Write(given["path"].text(), given["content"].text())


def _failure(place: YamlNode) -> Failure:
    """Return the answer that fails, by its kind alone or with details."""
    if isinstance(place.value, str):
        return Failure(kind=place.one_of(*get_args(FailureKind)))
    given = place.fields(required=("kind",), optional=("retry_after", "reset", "message"))
    return Failure(
        kind=given["kind"].one_of(*get_args(FailureKind)),
        retry_after=given["retry_after"].whole() if "retry_after" in given else None,
        reset=given["reset"].text() if "reset" in given else None,
        message=given["message"].text() if "message" in given else None,
    )


_ANSWERS: dict[str, Callable[[YamlNode], ScriptedAnswer]] = {
    "say": lambda place: Say(place.text()),
    "call": _call,
    "write": _write,
    "shell": lambda place: Shell(place.text()),
    "fail": _failure,
}

"""Readers: one function for each field, which converts a written value or explains why it cannot be used."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any, cast, get_args

from segue.model.agents import AgentConfiguration, CommitPolicy, Container, Service
from segue.model.bounds import LONGEST, MOST
from segue.model.findings import Extractor
from segue.model.status import Permissions, Recovery
from segue.settings.agents import BUILT_IN_AGENTS
from segue.settings.fields import SHARES, TOKENS

Reader = Callable[[str, object], object]


def _one_of(values: Collection[str], kind: Callable[[str], object] = str) -> Reader:
    """Return a reader that accepts only these values and converts them to `kind`."""

    def read(key: str, value: object) -> object:
        if value not in values:
            raise ValueError(f"{key} must be one of {', '.join(values)}, not {value!r}")
        return kind(cast(str, value))

    return read


def _text(key: str, value: object) -> str:
    """Read a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{key} must be a text, not {value!r}")
    return value


def _switch(key: str, value: object) -> bool:
    """Read True or False, also written as a text such as "yes" or "0"."""
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise ValueError(f"{key} must be true or false, not {value!r}")


def _port(key: str, value: object) -> int:
    """Read a port, from 0 to 65535."""
    number = _number(key, value)
    if number != int(number) or not 0 <= number <= 65535:
        raise ValueError(f"{key} must be a whole number from 0 to 65535, not {value!r}")
    return int(number)


def _whole(least: int, of: str = "") -> Callable[[str, object], int]:
    """Return a reader of whole numbers from `least` to the general maximum."""

    def read(key: str, value: object) -> int:
        number = _number(key, value)
        if number != int(number) or number < least:
            raise ValueError(f"{key} must be a whole number{of}, at least {least}, not {value!r}")
        return int(_at_most(MOST, key, number, value))

    return read


def _budget(key: str, value: object) -> int:
    """Read a number of tokens, of which 0 leaves the choice to Segue."""
    return 0 if _number(key, value) == 0 else _whole(100, " of tokens")(key, value)


def _amount(most: float) -> Reader:
    """Return a reader of numbers from 0 to `most`."""

    def read(key: str, value: object) -> float:
        number = _number(key, value)
        if number < 0:
            raise ValueError(f"{key} must not be less than 0, not {value!r}")
        return _at_most(most, key, number, value)

    return read


def _at_most(most: float, key: str, number: float, value: object, of: str = "") -> float:
    """Return the number; raise ValueError if it is above `most`."""
    if number > most:
        raise ValueError(f"{key} must be {most:.13g}{of} at most, not {value!r}")
    return number


def _command(key: str, value: object) -> str:
    """Read a command, stripped; an empty one is allowed."""
    if not isinstance(value, str):
        raise ValueError(f"{key} must be a text, not {value!r}")
    return value.strip()


def _personas(key: str, value: object) -> tuple[str, ...]:
    """Read a list of names, at least one, also written as a text with commas."""
    words = tuple(value.split(",")) if isinstance(value, str) else _words(key, value)
    personas = tuple(word.strip() for word in words)
    if not personas or not all(personas):
        raise ValueError(f"{key} must name at least one, not {value!r}")
    return personas


def _number(key: str, value: object) -> float:
    """Read a finite number, also written as a text; raise ValueError for all else."""
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str) or not isfinite(float(value)):
            raise ValueError
        return float(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{key} must be a number, not {value!r}") from None


def _seconds(most: float = LONGEST) -> Reader:
    """Return a reader of seconds above 0, up to `most`."""

    def read(key: str, value: object) -> float:
        seconds = _number(key, value)
        if seconds <= 0:
            raise ValueError(f"{key} must be more than 0 seconds, not {value!r}")
        return _at_most(most, key, seconds, value, " seconds")

    return read


def _model(key: str, value: object) -> str:
    """Read the name of a model, written as provider:name."""
    text = _text(key, value)
    if re.fullmatch(r"[\w./-]+:\S+", text) is None:
        raise ValueError(f"{key} must be written as provider:name, such as openai:gpt-5-mini, not {value!r}")
    return text


def _address(key: str, value: object) -> str:
    """Read an http or https URL without a password or query."""
    text = _text(key, value)
    if re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", text) is None:
        # The value is not shown: it may be a secret in the wrong place.
        raise ValueError(f"{key} must begin with http:// or https://, and hold no password and no query")
    return text


def _table(key: str, value: object) -> dict[str, object]:
    """Return the value if it is a table; raise ValueError if not."""
    if not isinstance(value, dict):
        raise ValueError(f"{key} must be a table, not {value!r}")
    return cast(dict[str, object], value)


def _agents(key: str, value: object) -> Mapping[str, AgentConfiguration]:
    """Read the user's agents; return them with the built-in ones, which they override."""
    own = {name: _agent(f"{key}.{name}", name, entry) for name, entry in _table(key, value).items()}
    return {**BUILT_IN_AGENTS, **own}


def _agent(key: str, name: str, entry: object) -> AgentConfiguration:
    """Read one agent; keys that are left out have the values of the built-in agent of this name, or the defaults."""
    if not name or "/" in name:
        raise ValueError(f"{key} must have a name without /")
    base = BUILT_IN_AGENTS.get(name, AgentConfiguration(name=name, command=()))
    given: dict[str, Any] = {}
    for word, value in _table(key, entry).items():
        if word not in AGENT_READERS:
            raise ValueError(f"{key} has an unknown key: {word} (known: {', '.join(AGENT_READERS)})")
        given[word] = AGENT_READERS[word](f"{key}.{word}", value)
    agent = replace(base, **given)
    if not agent.command:
        raise ValueError(f"{key} has no command")
    return agent


def _modes(key: str, value: object) -> Mapping[Permissions, str]:
    """Read an agent's mode for each kind of permissions."""
    modes: dict[Permissions, str] = {}
    for name, mode in _table(key, value).items():
        if name not in set(Permissions):
            raise ValueError(f"{key} has an unknown key: {name} (known: {', '.join(Permissions)})")
        modes[Permissions(name)] = _text(f"{key}.{name}", mode)
    return modes


def _share(key: str, value: object) -> float:
    """Read a share of the window from 0, which is off, to 1."""
    share = _number(key, value)
    if not 0 <= share <= 1:
        raise ValueError(f"{key} must be a share of the window from 0 (off) to 1, not {value!r}")
    return share


CAPACITY_READERS: Mapping[str, Callable[[str, object], float]] = {
    **dict.fromkeys(SHARES, _share),
    **dict.fromkeys(TOKENS, _whole(0, " of tokens")),
}


def _capacity(key: str, value: object) -> Mapping[str, float]:
    """Read the table of the capacity ladder; only the given keys are in the result."""
    found = _table(key, value)
    for name in found:
        if name not in CAPACITY_READERS:
            raise ValueError(f"{key} has an unknown key: {name} (known: {', '.join(CAPACITY_READERS)})")
    return {name: CAPACITY_READERS[name](f"{key}.{name}", number) for name, number in found.items()}


def _model_capacity(key: str, value: object) -> Mapping[str, Mapping[str, float]]:
    """Read a table of the capacity ladder for each model."""
    return {model: _capacity(f'{key}."{model}"', entry) for model, entry in _table(key, value).items()}


def _serves(key: str, value: object) -> frozenset[Service]:
    """Read the services that an agent may use."""
    words, known = _words(key, value), get_args(Service)
    if unknown := set(words) - set(known):
        raise ValueError(f"{key} names {min(unknown)!r}, which is none of {', '.join(known)}")
    return cast(frozenset[Service], frozenset(words))


def _container(key: str, value: object) -> Container:
    """Read an agent's container; only its image is required."""
    readers: Mapping[str, Reader] = {
        "image": _text,
        "mounts": _mounts,
        "network": _text,
        "user": _text,
        "home": _text,
    }
    given: dict[str, Any] = {}
    for word, entry in _table(key, value).items():
        if word not in readers:
            raise ValueError(f"{key} has an unknown key: {word} (known: {', '.join(readers)})")
        given[word] = readers[word](f"{key}.{word}", entry)
    if "image" not in given:
        raise ValueError(f"{key} names no image")
    return Container(**given)


def _mounts(key: str, value: object) -> tuple[str, ...]:
    """Read a list of mounts, each written as in `~/.claude:/home/me/.claude:ro`."""
    mounts = _words(key, value)
    for mount in mounts:
        if re.fullmatch(r"[^:]+:/[^:]*(:(ro|rw))?", mount) is None:
            raise ValueError(f"{key} must have entries such as '~/.claude:/home/me/.claude', not {mount!r}")
    return mounts


def _words(key: str, value: object) -> tuple[str, ...]:
    """Read a list of texts."""
    if isinstance(value, list | tuple):
        words = tuple(cast("list[object]", value))
        if all(isinstance(word, str) for word in words):
            return cast(tuple[str, ...], words)
    raise ValueError(f"{key} must be a list of texts, not {value!r}")


AGENT_READERS: Mapping[str, Reader] = {
    "command": _words,
    "driver": _text,
    "environment": _words,
    "native_resume": _switch,
    "native_fork": _switch,
    "history": _switch,
    "compacts": _switch,
    "plans": _switch,
    "modes": _modes,
    "counts_since_start": _switch,
    "capacity": _capacity,
    "model_capacity": _model_capacity,
    "serves": _serves,
    "keep_conversations": _switch,
    "container": _container,
    "needs": _text,
    "install": _text,
    "login": _text,
}


SERVER_READERS: Mapping[str, Reader] = {
    "host": _text,
    "port": _port,
    "allow_remote": _switch,
    "agents": _agents,
    "setup_watchdog": _seconds(),
    "start_watchdog": _seconds(),
    "silence_watchdog": _seconds(),
    "handshake_timeout": _seconds(),
    "permission_timeout": _seconds(),
    "pause_force_after": _seconds(),
    "sweep_interval": _seconds(most=300),
    "talk_linger": _seconds(),
    "agents_at_once": _whole(1),
    "session_idle": _seconds(),
    "session_ttl": _seconds(),
    "delivery_wait": _seconds(),
    "messages_waiting": _whole(1),
    "merge_messages": _switch,
    "stall_notice": _seconds(),
    "stall_look": _seconds(),
    "retry_attempts": _whole(1),
    "retry_first": _seconds(),
    "retry_longest": _seconds(),
    "quick_failures": _whole(1),
    "quick_within": _seconds(),
    "fixer_time": _seconds(),
    "review_time": _seconds(),
    "capacity": _capacity,
    "context_budget": _budget,
    "context_issue": _whole(0),
    "context_comments": _whole(0),
    "history_message": _whole(1),
    "history_result": _whole(1),
    "history_whole": _whole(1),
    "extraction": _one_of(get_args(Extractor)),
    "extraction_model": _model,
    "extraction_timeout": _seconds(),
    "extraction_messages": _whole(1),
    "extraction_base_url": _address,
    "container_engine": _text,
    "reattach_at_start": _switch,
    "plan_tasks": _whole(1),
    "recovery": _one_of(get_args(Recovery)),
}
WORK_READERS: Mapping[str, Reader] = {
    "agent": _text,
    "setup": _command,
    "test_command": _command,
    "test_timeout": _seconds(),
    "commit": _one_of([*CommitPolicy], CommitPolicy),
    "review": _text,
    "review_personas": _personas,
    "review_passes": _whole(1),
    "fixer": _text,
    "wait_for_quota": _switch,
    "pause_after": _whole(0),
    "max_time": _amount(LONGEST),
    "max_tokens": _whole(0),
    "max_cost": _amount(MOST),
}
READERS: Mapping[str, Reader] = {**SERVER_READERS, **WORK_READERS}
TABLES = ("agents", "capacity")
"""Settings that have no variable as a whole; each key of `capacity` has one of its own."""

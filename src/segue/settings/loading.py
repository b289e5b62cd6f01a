"""Where settings are looked for: in files, and in the environment."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from stat import S_ISREG
from typing import Any, cast

from segue.model.agents import AgentConfiguration
from segue.model.errors import BadSettings
from segue.model.work_settings import OFF, SAME, WorkSettings
from segue.settings.fields import Settings
from segue.settings.readers import CAPACITY_READERS, READERS, SERVER_READERS, TABLES, WORK_READERS, Reader

VARIABLE_PREFIX = "SEGUE_"
OWN_FILE = "segue.toml"
PROJECT_FILE = "pyproject.toml"
LARGEST_FILE = 1_000_000
"""Bytes; a repository is not ours, and what it links to may have no end."""


def load(file: Path, environment: Mapping[str, str]) -> Settings:
    """The settings of `file`, if it is there, and over them the server's own of the environment."""
    chosen: dict[str, Any] = {key: _read(key, value, str(file), READERS) for key, value in _document(file).items()}
    spoken = _spoken(environment, SERVER_READERS)
    if rungs := _spoken_capacity(environment):
        spoken["capacity"] = {**chosen.get("capacity", {}), **rungs}
    settings = Settings(**{**chosen, **spoken})
    _refuse_strangers(work_in(environment).over(settings), settings.agents)
    if settings.extraction == "model" and settings.extraction_model is None:
        raise BadSettings(
            "The setting extraction says 'model', and extraction_model names none.",
            hint='Name one, such as extraction_model = "openai:gpt-5-mini", or set extraction = "rules".',
        )
    return settings


def work_in(environment: Mapping[str, str]) -> WorkSettings:
    """What variables say of the work."""
    return WorkSettings(**_spoken(environment, WORK_READERS))


def work_of_repository(directory: Path) -> WorkSettings:
    """What the repository that `directory` is in says of the work: in `segue.toml`, or in `[tool.segue]` of
    `pyproject.toml`, at its root."""
    root = next((each for each in (directory, *directory.parents) if (each / ".git").exists()), directory)
    own, project = root / OWN_FILE, root / PROJECT_FILE
    table = _tool_table(project)
    if table is not None and own.exists():
        raise BadSettings(
            f"The repository has settings in {OWN_FILE} and in [tool.segue] of {PROJECT_FILE}.",
            hint="Put all of them into one of the two.",
        )
    file, document = (own, _document(own)) if table is None else (project, table)
    said: dict[str, Any] = {key: _read_of_repository(key, value, file) for key, value in document.items()}
    return WorkSettings(**said)


def _read_of_repository(key: str, value: object, file: Path) -> object:
    if key in SERVER_READERS:
        raise BadSettings(
            f"{file} sets {key}, which is not a repository's to set.",
            hint=f"Take it out; where it is yours to set is {OWN_FILE} in Segue's data directory.",
        )
    return _read(key, value, str(file), WORK_READERS)


def _tool_table(file: Path) -> dict[str, Any] | None:
    """`[tool.segue]`, if it is there. A project's file that is broken is none of our business, unless it names us."""
    content = _content(file)
    try:
        tools = _parsed(file, content).get("tool", {})
    except BadSettings:
        if b"tool.segue" in content:
            raise
        return None
    table = cast(dict[str, Any], tools).get("segue") if isinstance(tools, dict) else None
    if table is not None and not isinstance(table, dict):
        raise BadSettings(f"In {file}, tool.segue must be a table.")
    return cast("dict[str, Any] | None", table)


def _spoken(environment: Mapping[str, str], readers: Mapping[str, Reader]) -> dict[str, Any]:
    variables = {name: VARIABLE_PREFIX + name.upper() for name in readers if name not in TABLES}
    return {
        name: _read(name, environment[variable], "the environment", readers, variable)
        for name, variable in variables.items()
        if environment.get(variable)
    }


def _spoken_capacity(environment: Mapping[str, str]) -> dict[str, float]:
    """The table `capacity`, each key by a variable of its own."""
    variables = {name: f"{VARIABLE_PREFIX}CAPACITY_{name.upper()}" for name in CAPACITY_READERS}
    return {
        name: cast(float, _read(name, environment[variable], "the environment", CAPACITY_READERS, variable))
        for name, variable in variables.items()
        if environment.get(variable)
    }


def _refuse_strangers(work: WorkSettings, agents: Mapping[str, AgentConfiguration]) -> None:
    for setting in ("agent", "review", "fixer"):
        name, words = getattr(work, setting), () if setting == "agent" else (OFF, SAME)
        if name is not None and name not in (*words, *agents):
            raise BadSettings(
                f"The setting {setting} names {name!r}, which is not among the agents.",
                hint=f"Known agents: {', '.join(sorted(agents))}.",
            )


def _document(file: Path) -> dict[str, Any]:
    return _parsed(file, _content(file))


def _parsed(file: Path, content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadSettings(f"{file} cannot be read: {error}.") from error
    except ValueError as error:
        raise BadSettings(f"{file} is not TOML: {error}.") from error
    except RecursionError as error:
        raise BadSettings(f"{file} cannot be read: it is nested too deeply.") from error


def _content(file: Path) -> bytes:
    """What stands in it, and nothing if it is not there."""
    try:
        with open(file, "rb", opener=_without_waiting) as opened:
            regular = S_ISREG(os.fstat(opened.fileno()).st_mode)
            content = opened.read(LARGEST_FILE + 1) if regular else b""
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise BadSettings(f"{file} cannot be read: {error}.") from error
    if not regular:
        raise BadSettings(f"{file} cannot be read: it is not a file.", hint="Settings stand in a regular file.")
    if len(content) > LARGEST_FILE:
        raise BadSettings(f"{file} cannot be read: it is larger than {LARGEST_FILE / 1e6:g} MB.")
    return content


def _without_waiting(path: str, flags: int) -> int:
    # A pipe would keep us until somebody writes into it.
    return os.open(path, flags | os.O_NONBLOCK)


def _read(key: str, value: object, source: str, readers: Mapping[str, Reader], shown: str | None = None) -> object:
    reader = readers.get(key)
    if reader is None:
        raise BadSettings(f"{source} has an unknown key: {key}.", hint=f"Known keys: {', '.join(readers)}.")
    try:
        return reader(shown or key, value)
    except ValueError as error:
        raise BadSettings(f"In {source}, {error}.") from error

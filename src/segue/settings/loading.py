"""Loading of settings from files and from the environment."""

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
"""Maximum bytes of a file; a repository is not ours, and a link in it may lead to an endless file."""


def load(file: Path, environment: Mapping[str, str]) -> Settings:
    """Return the settings of `file`, if it exists, overridden by the server's own ones of the environment; raise
    BadSettings if they cannot be used."""
    chosen: dict[str, Any] = {key: _read(key, value, str(file), READERS) for key, value in _document(file).items()}
    overrides = _values_in(environment, SERVER_READERS)
    if rungs := _capacity_in(environment):
        overrides["capacity"] = {**chosen.get("capacity", {}), **rungs}
    settings = Settings(**{**chosen, **overrides})
    _refuse_unknown_agents(work_in(environment).over(settings), settings.agents)
    if settings.extraction == "model" and settings.extraction_model is None:
        raise BadSettings(
            "extraction is 'model', but extraction_model is not set.",
            hint='Name one, such as extraction_model = "openai:gpt-5-mini", or set extraction = "rules".',
        )
    return settings


def work_in(environment: Mapping[str, str]) -> WorkSettings:
    """Return the settings of the work in the environment; those that are not set are left open."""
    return WorkSettings(**_values_in(environment, WORK_READERS))


def work_of_repository(directory: Path) -> WorkSettings:
    """Return the settings of the work in the repository of `directory`, at its root: in `segue.toml`, or in
    `[tool.segue]` of `pyproject.toml`; raise BadSettings for both, or for a setting of the server."""
    root = next((each for each in (directory, *directory.parents) if (each / ".git").exists()), directory)
    own, project = root / OWN_FILE, root / PROJECT_FILE
    table = _tool_table(project)
    if table is not None and own.exists():
        raise BadSettings(
            f"The repository has settings in {OWN_FILE} and in [tool.segue] of {PROJECT_FILE}.",
            hint="Put all of them into one of the two.",
        )
    file, document = (own, _document(own)) if table is None else (project, table)
    found: dict[str, Any] = {key: _read_of_repository(key, value, file) for key, value in document.items()}
    return WorkSettings(**found)


def _read_of_repository(key: str, value: object, file: Path) -> object:
    """Convert a setting of a repository; raise BadSettings for one of the server, which a repository may not set."""
    if key in SERVER_READERS:
        raise BadSettings(
            f"{file} sets {key}, which a repository may not set.",
            hint=f"Remove it; set it in {OWN_FILE} of Segue's data directory.",
        )
    return _read(key, value, str(file), WORK_READERS)


def _tool_table(file: Path) -> dict[str, Any] | None:
    """Return `[tool.segue]`; None if it is missing. A broken project file is ignored, unless it contains that name."""
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


def _values_in(environment: Mapping[str, str], readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Return the values of the variables that are set, each converted by its reader."""
    variables = {name: VARIABLE_PREFIX + name.upper() for name in readers if name not in TABLES}
    return {
        name: _read(name, environment[variable], "the environment", readers, variable)
        for name, variable in variables.items()
        if environment.get(variable)
    }


def _capacity_in(environment: Mapping[str, str]) -> dict[str, float]:
    """Return the values of the table `capacity` that are set; each key has a variable."""
    variables = {name: f"{VARIABLE_PREFIX}CAPACITY_{name.upper()}" for name in CAPACITY_READERS}
    return {
        name: cast(float, _read(name, environment[variable], "the environment", CAPACITY_READERS, variable))
        for name, variable in variables.items()
        if environment.get(variable)
    }


def _refuse_unknown_agents(work: WorkSettings, agents: Mapping[str, AgentConfiguration]) -> None:
    """Raise BadSettings if the chosen agent, reviewer or fixer is not configured."""
    for setting in ("agent", "review", "fixer"):
        name, words = getattr(work, setting), () if setting == "agent" else (OFF, SAME)
        if name is not None and name not in (*words, *agents):
            raise BadSettings(
                f"The setting {setting} names {name!r}, which is not among the agents.",
                hint=f"Known agents: {', '.join(sorted(agents))}.",
            )


def _document(file: Path) -> dict[str, Any]:
    """Return the file as TOML; empty if it does not exist."""
    return _parsed(file, _content(file))


def _parsed(file: Path, content: bytes) -> dict[str, Any]:
    """Parse TOML; raise BadSettings with the file's name if it is none."""
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadSettings(f"{file} cannot be read: {error}.") from error
    except ValueError as error:
        raise BadSettings(f"{file} is not TOML: {error}.") from error
    except RecursionError as error:
        raise BadSettings(f"{file} cannot be read: it is nested too deeply.") from error


def _content(file: Path) -> bytes:
    """Return the content of a file, empty if it does not exist; raise BadSettings if it is no regular file or too
    large."""
    try:
        with open(file, "rb", opener=_without_waiting) as opened:
            regular = S_ISREG(os.fstat(opened.fileno()).st_mode)
            content = opened.read(LARGEST_FILE + 1) if regular else b""
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise BadSettings(f"{file} cannot be read: {error}.") from error
    if not regular:
        raise BadSettings(f"{file} cannot be read: it is not a regular file.", hint="Replace it by a regular file.")
    if len(content) > LARGEST_FILE:
        raise BadSettings(f"{file} cannot be read: it is larger than {LARGEST_FILE / 1e6:g} MB.")
    return content


def _without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting, since opening a pipe would block until it has a writer."""
    # Opening a pipe would block until it has a writer.
    return os.open(path, flags | os.O_NONBLOCK)


def _read(key: str, value: object, source: str, readers: Mapping[str, Reader], shown: str | None = None) -> object:
    """Convert a value by its key's reader; raise BadSettings, with its source, for an unknown key or a wrong value."""
    reader = readers.get(key)
    if reader is None:
        raise BadSettings(f"{source} has an unknown key: {key}.", hint=f"Known keys: {', '.join(readers)}.")
    try:
        return reader(shown or key, value)
    except ValueError as error:
        raise BadSettings(f"In {source}, {error}.") from error

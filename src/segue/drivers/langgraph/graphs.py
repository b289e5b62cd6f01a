"""The user's graph: where it is found, and how a prompt becomes its input."""

import importlib
import inspect
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from langchain_core.messages import HumanMessage
from langgraph.graph import StateGraph  # pyright: ignore[reportMissingTypeStubs]
from langgraph.pregel import Pregel  # pyright: ignore[reportMissingTypeStubs]

MESSAGES = "messages"


class NoGraph(Exception):
    """No graph can be used; the message gives the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A compiled graph, and the key of its input that takes a prompt; without one the prompt is the whole input."""

    pregel: Any
    key: str | None

    @property
    def converses(self) -> bool:
        """True if it keeps a list of messages."""
        return self.key == MESSAGES

    def input(self, text: str) -> Any:
        """Return the graph's input for a prompt, at the beginning of a turn."""
        return text if self.key is None else {self.key: self.word(text)}

    def word(self, text: str) -> Any:
        """Return a prompt as the graph's key takes it: a list with a message, or text."""
        return [HumanMessage(text)] if self.converses else text


def find(name: str, directory: Path) -> Graph:
    """Import the graph `module:attribute` or `path/to/file.py:attribute`; raise NoGraph with the reason if that
    fails."""
    place, colon, attribute = name.rpartition(":")
    if not (place and colon and attribute):
        raise NoGraph(
            f"No graph is named by {name!r}: write module:attribute or path/to/file.py:attribute into the agent's "
            "command, or into SEGUE_LANGGRAPH_GRAPH."
        )
    sys.path.insert(0, str(directory))
    module = _imported(place, directory)
    found = getattr(module, attribute, None)
    if found is None:
        others = [key for key, value in vars(module).items() if isinstance(value, Pregel | StateGraph)]
        raise NoGraph(f"{place} has no {attribute!r}; the graphs in it are: {', '.join(others) or 'none'}.")
    pregel = _compiled(name, found)
    return Graph(pregel, _key(name, pregel))


def _imported(place: str, directory: Path) -> ModuleType:
    """Import a module or a file; any error or exit that it causes becomes NoGraph."""
    try:
        with _no_bytecode():
            return _from_file(directory / place) if place.endswith(".py") else importlib.import_module(place)
    except (Exception, SystemExit) as error:
        raise NoGraph(f"{place} cannot be imported: {_told(error)}") from error


@contextmanager
def _no_bytecode() -> Generator[None]:
    """Write no bytecode, which would appear in the user's worktree as a change."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _from_file(file: Path) -> ModuleType:
    """Import a file as a module, with its folder on the path."""
    spec = spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    sys.path.insert(0, str(file.parent))
    module = module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def _compiled(name: str, found: Any) -> Any:
    """Return a compiled graph from a graph, a builder or a function that makes one; raise NoGraph for anything else."""
    try:
        if inspect.isfunction(found):
            found = found()
        if isinstance(found, StateGraph):
            found = cast(Any, found).compile()
    except Exception as error:
        raise NoGraph(f"{name} cannot be made: {_told(error)}") from error
    if not isinstance(found, Pregel):
        raise NoGraph(f"{name} is a {type(found).__name__} and no LangGraph graph.")
    return cast(Any, found)


def _key(name: str, pregel: Any) -> str | None:
    """Return the key of the input that takes a prompt, None if the prompt is the input; raise NoGraph if it is not
    clear."""
    # A JSON schema would say it too, but cannot be had of every kind of state.
    builder = getattr(pregel, "builder", None)
    keys = [key for key in builder.schemas[builder.input_schema] if key != "__root__"] if builder is not None else []
    if MESSAGES in keys:
        return MESSAGES
    if len(keys) > 1:
        raise NoGraph(
            f"{name} takes {', '.join(keys)}, and a prompt is one text: give it a key {MESSAGES!r}, or an input schema "
            "with one key."
        )
    return keys[0] if keys else None


def _told(error: BaseException) -> str:
    """Return the message of an error, and the line of the user's own code that raised it."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith("<frozen")]
    inner = frames[-1] if frames else None
    where = f" ({Path(inner.filename).name}, line {inner.lineno})" if inner and inner.filename != __file__ else ""
    return f"{type(error).__name__}: {error}{where}"

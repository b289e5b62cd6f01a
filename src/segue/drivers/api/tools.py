"""Tools of the agent: read, list, search, write and edit files of its worktree, and run commands there.

A tool is its parameters; its docstring is the description that the model gets. Reading is free. For every change
permission is requested first, by the caller.
"""

import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any, Literal

import anyio
import anyio.to_thread
from pydantic import Field, TypeAdapter, ValidationError
from pydantic_ai.tools import ToolDefinition

from segue.drivers.api.file_root import FileRoot, ToolFailed
from segue.drivers.environment import allowed
from segue.drivers.text import shortened
from segue.model.errors import SegueError
from segue.workspace.files import rewrite
from segue.workspace.processes import EXECUTION, CompletedRun, run_guarded

FILES_WITHIN = 30.0
"""Seconds for anything that is done with files."""
COMMAND_WITHIN = 120.0
"""Seconds for a command, unless the model wants it otherwise."""
LONGEST_COMMAND = 600.0
LONGEST_OUTPUT = 30_000
LARGEST_FILE = 10 * 1024 * 1024
MOST_ENTRIES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """Read a text file. Its lines are numbered from 1; ask for the part you need of a long one."""

    path: Annotated[str, Field(description="relative to the worktree")]
    line: Annotated[int, Field(ge=1, description="the first line to read")] = 1
    limit: Annotated[int, Field(ge=1, description="how many lines to read at most")] = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFiles:
    """List the files below a directory, without git's own."""

    path: Annotated[str, Field(description="relative to the worktree")] = "."
    pattern: Annotated[str, Field(description="such as *.py or src/*.ts")] = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFiles:
    """Find the lines that match an extended regular expression, in files that git does not ignore."""

    expression: str
    path: Annotated[str, Field(description="a file or directory, relative to the worktree")] = "."


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFile:
    """Write a whole file; directories are made as needed, and what was there is replaced."""

    path: Annotated[str, Field(description="relative to the worktree")]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFile:
    """Replace a piece of text in a file. It must stand there exactly once, so give enough of what is around it."""

    path: Annotated[str, Field(description="relative to the worktree")]
    find: str
    replace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """Run a shell command in the worktree. It gets no input, and what it leaves running is ended with it."""

    command: str
    timeout: Annotated[float, Field(gt=0, le=LONGEST_COMMAND, description="seconds")] = COMMAND_WITHIN


ToolInput = ReadFile | ListFiles | SearchFiles | WriteFile | EditFile | Shell
ToolEffect = Literal["read", "search", "edit", "execute"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Tool of the agent: its parameters, how it is shown, and its function."""

    name: str
    takes: type[ToolInput]
    kind: ToolEffect
    title: Callable[[Any], str]
    use: Callable[[Any, FileRoot], Awaitable[str]]

    @property
    def asks(self) -> bool:
        """True if the user must allow it first."""
        return self.kind in ("edit", "execute")

    def definition(self) -> ToolDefinition:
        """Return the tool's definition for the model, from its parameters' schema."""
        schema = TypeAdapter(self.takes).json_schema()
        description = schema.pop("description")
        return ToolDefinition(name=self.name, description=description, parameters_json_schema=schema)

    def read(self, arguments: dict[str, Any]) -> ToolInput:
        """Validate a call's arguments; raise ToolFailed with the faults."""
        try:
            return TypeAdapter(self.takes).validate_python(arguments)
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
            raise ToolFailed(f"{self.name} cannot be called so: {wrong}") from error


# ── files ───────────────────────────────────────────────────────────────────────────────────────────


def _read(given: ReadFile, place: FileRoot) -> str:
    """Return the requested lines of a file, and how many follow."""
    lines = _text(place.file(given.path), given.path).splitlines(keepends=True)
    chosen = lines[given.line - 1 : given.line - 1 + given.limit]
    rest = len(lines) - (given.line - 1 + len(chosen))
    return "".join(chosen) + (f"\n[{rest} more lines]" if rest > 0 else "")


def _list(given: ListFiles, place: FileRoot) -> str:
    """Return the names of the files that match a pattern, up to a limit."""
    found = _below(place.directory(given.path), place, given.pattern)
    names = list(islice(found, MOST_ENTRIES + 1))
    more = "\n[and more]" if len(names) > MOST_ENTRIES else ""
    return "\n".join(names[:MOST_ENTRIES]) + more if names else "There are none."


def _below(directory: Path, place: FileRoot, pattern: str) -> Iterator[str]:
    """Yield the files below a directory whose name or path matches a pattern, without `.git`."""
    for parent, directories, files in os.walk(directory):
        directories[:] = sorted(name for name in directories if name != ".git")
        for file in sorted(files):
            name = place.name(Path(parent) / file)
            if fnmatchcase(name, pattern) or fnmatchcase(file, pattern):
                yield name


def _write(given: WriteFile, place: FileRoot) -> str:
    """Write a whole file, and return the confirmation."""
    file = place.to_change(given.path)
    if file.exists() and not file.is_file():
        raise ToolFailed(f"{given.path} is no file.")
    rewrite(file, given.content)
    return f"Wrote {given.path}."


def _edit(given: EditFile, place: FileRoot) -> str:
    """Replace a text in a file; raise ToolFailed unless it occurs exactly once."""
    place.to_change(given.path)
    file = place.file(given.path)
    text = _text(file, given.path)
    times = text.count(given.find) if given.find else 0
    if times != 1:
        raise ToolFailed(f"The text to replace stands {times} times in {given.path}, not once.")
    rewrite(file, text.replace(given.find, given.replace))
    return f"Edited {given.path}."


def _text(file: Path, path: str) -> str:
    """Return a file's text; raise ToolFailed if it is too large or not UTF-8."""
    if file.stat().st_size > LARGEST_FILE:
        raise ToolFailed(f"{path} is larger than {LARGEST_FILE // 1024 // 1024} MB.")
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            return stream.read()
    except UnicodeDecodeError:
        raise ToolFailed(f"{path} is no text in UTF-8.") from None


def _with_files(use: Callable[[Any, FileRoot], str]) -> Callable[[Any, FileRoot], Awaitable[str]]:
    """Run a tool's function in a thread, with a timeout."""

    async def in_a_thread(given: ToolInput, place: FileRoot) -> str:
        with anyio.fail_after(FILES_WITHIN):
            return await anyio.to_thread.run_sync(use, given, place, abandon_on_cancel=True)

    return in_a_thread


# ── commands ────────────────────────────────────────────────────────────────────────────────────────


async def _search(given: SearchFiles, place: FileRoot) -> str:
    """Return the lines that match an expression, found by `git grep`."""
    path = place.name(place.find(given.path))
    # Else a colon at the beginning of a name, or a star in it, would mean something to git.
    grep = ("git", "--literal-pathspecs", "grep", "--no-index", "--exclude-standard", "-I", "-n", "-E")
    done = await _run((*grep, "-e", given.expression, "--", path), place, FILES_WITHIN)
    if done.code == 1 and not done.output:
        return "Nothing was found."
    return _finished(done, FILES_WITHIN)


async def _shell(given: Shell, place: FileRoot) -> str:
    """Run a shell command in the worktree, and return its output; raise ToolFailed if it fails."""
    done = await _run((shutil.which("bash") or "sh", "-c", given.command), place, given.timeout)
    return _finished(done, given.timeout) or "It printed nothing."


async def _run(words: tuple[str, ...], place: FileRoot, timeout: float) -> CompletedRun:
    """Run a command in the worktree, without the keys of the models and with a mark of its own."""
    return await run_guarded(
        words,
        directory=place.root,
        # The keys that this process got for its models are no business of a command.
        environment=allowed(os.environ),
        # Not the mark of this process itself: what carries it is killed where a guardian was lost.
        execution=f"{os.environ.get(EXECUTION, 'api')}-{token_hex(4)}",
        timeout=timeout,
    )


def _finished(done: CompletedRun, timeout: float) -> str:
    """Return a command's output; raise ToolFailed if it failed or took too long."""
    if done.timed_out:
        raise ToolFailed(f"{done.output}\nIt took longer than {timeout:g} seconds, and was ended.")
    if done.code != 0:
        raise ToolFailed(f"{done.output}\nExit code {done.code}")
    return done.output


# ── the table ───────────────────────────────────────────────────────────────────────────────────────


TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            name="read_file",
            takes=ReadFile,
            kind="read",
            title=lambda given: f"Read {given.path}",
            use=_with_files(_read),
        ),
        Tool(
            name="list_files",
            takes=ListFiles,
            kind="search",
            title=lambda given: f"List {given.path} ({given.pattern})",
            use=_with_files(_list),
        ),
        Tool(
            name="search_files",
            takes=SearchFiles,
            kind="search",
            title=lambda given: f"Search {given.path} for {given.expression}",
            use=_search,
        ),
        Tool(
            name="write_file",
            takes=WriteFile,
            kind="edit",
            title=lambda given: f"Write {given.path}",
            use=_with_files(_write),
        ),
        Tool(
            name="edit_file",
            takes=EditFile,
            kind="edit",
            title=lambda given: f"Edit {given.path}",
            use=_with_files(_edit),
        ),
        Tool(name="shell", takes=Shell, kind="execute", title=lambda given: given.command, use=_shell),
    )
}


async def use(tool: Tool, given: ToolInput, place: FileRoot) -> str:
    """Use a tool and return its result for the model; raise `ToolFailed` with the reason if it failed."""
    try:
        return shortened(await tool.use(given, place), LONGEST_OUTPUT)
    except ToolFailed as error:
        raise ToolFailed(shortened(str(error).strip(), LONGEST_OUTPUT)) from error
    except TimeoutError:
        raise ToolFailed(f"It took longer than {FILES_WITHIN:g} seconds.") from None
    except (SegueError, OSError, ValueError) as error:
        raise ToolFailed(str(error)) from error

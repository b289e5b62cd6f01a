"""Calls of git, and the state of a worktree."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Literal, TypeVar

import anyio
from anyio.to_thread import run_sync

from segue.model.checkpoint import FileChange, GitState
from segue.model.errors import EmptyRepository, NotARepository, WorkspaceError

T = TypeVar("T")

DETACHED = "(detached)"
ABSENT = "000000"
"""Mode in git's output for a missing file."""
GITLINK = "160000"

# If a git hook of the user started us, these would direct our calls to its own index.
_INHERITED = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_LITERAL_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
)
_ENVIRONMENT = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    # Otherwise a copied index would write files beside the real one, or refuse a file.
    "core.splitIndex": "false",
    "core.safecrlf": "false",
    "submodule.recurse": "false",
    "i18n.commitEncoding": "UTF-8",
}
_SETTING_WORDS = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
_ACTIONS: dict[str, Literal["created", "deleted"]] = {"A": "created", "D": "deleted"}
_UNOPENED = re.compile(r"^warning: could not open directory '(.*)': ", re.MULTILINE)


PATIENCE = 300.0
"""Seconds in which git must answer; a filter of the user's can hang."""


@dataclass(frozen=True, slots=True)
class GitOutput:
    """Result of one call of git. File names that are not UTF-8 are kept as surrogates."""

    code: int
    output: str
    complaint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPath:
    """Changed path, with its modes in HEAD, index and worktree."""

    path: str
    staged: str = "."
    unstaged: str = "."
    in_head: str = ABSENT
    in_worktree: str = ABSENT
    head_object: str = ""
    renamed_from: str = ""
    untracked: bool = False
    unmerged: bool = False

    def apart(self) -> "tuple[ChangedPath, ...]":
        """Return a rename as two changes, the new path and the removed one; any other change alone, as it is."""
        if not self.renamed_from:
            return (self,)
        gone = replace(self, path=self.renamed_from, in_worktree=ABSENT, renamed_from="")
        come = replace(self, renamed_from="")
        # Git reports HEAD's mode for the old path, unless HEAD has a file at the new one too.
        if self.staged != "D":
            come = replace(come, in_head=ABSENT, head_object="0" * len(self.head_object))
        return gone, come


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Result of `git status`."""

    branch: str
    head: str | None
    entries: tuple[ChangedPath, ...]
    unopened: tuple[str, ...]
    """Directories that cannot be read."""


class Calls:
    """Sequence of git calls in one worker thread: a checkpoint takes five, which would block the event loop."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._given_up = False

    def ask(self, *args: str, cwd: Path, env: Mapping[str, str] | None = None, input: str | None = None) -> GitOutput:
        """Call git and return its output, even if it fails; raise WorkspaceError if it does not end in time."""
        words = None if input is None else input.encode("utf-8", "surrogateescape")
        process = self._start(args, cwd, env, subprocess.DEVNULL if words is None else subprocess.PIPE)
        try:
            output, complaint = process.communicate(words, PATIENCE)
        except subprocess.TimeoutExpired:
            raise WorkspaceError(
                f"`git {args[0]}` did not answer within {PATIENCE:g} seconds.",
                hint="Perhaps a filter or a credential helper of this repository waits for something.",
            ) from None
        finally:
            self._end(process)
        return GitOutput(process.returncode, _decoded(output), _decoded(complaint))

    def git(
        self,
        *args: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        input: str | None = None,
        check: bool = True,
    ) -> str:
        """Call git and return its standard output; raise an error if it fails."""
        answer = self.ask(*args, cwd=cwd, env=env, input=input)
        if check and answer.code != 0:
            raise refusal(args[0], answer)
        return answer.output

    def give_up(self) -> None:
        """Kill the current call and refuse further ones; called from another thread."""
        with self._turn:
            self._given_up = True
            if self._process is not None:
                self._process.kill()

    def _start(
        self, args: tuple[str, ...], cwd: Path, env: Mapping[str, str] | None, stdin: int
    ) -> "subprocess.Popen[bytes]":
        """Start git in its own session and without a terminal; raise an error if the calls were given up or git cannot
        start."""
        inherited = {name: value for name, value in os.environ.items() if name not in _INHERITED}
        with self._turn:
            if self._given_up:
                raise WorkspaceError("The call of git was cancelled.")
            try:
                self._process = subprocess.Popen(
                    ["git", "--no-pager", *_SETTING_WORDS, *args],
                    cwd=cwd,
                    env={**inherited, **_ENVIRONMENT, **(env or {})},
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
                raise _cannot_call(cwd, error) from error
            return self._process

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        """Kill the call if it still runs, and close its pipes."""
        with self._turn:
            self._process = None
            process.kill()
        with process:
            pass


async def in_thread(work: Callable[[Calls], T]) -> T:
    """Run several calls of git in a thread; a cancellation ends the current call and the rest."""
    calls = Calls()
    try:
        return await run_sync(work, calls, abandon_on_cancel=True)
    finally:
        calls.give_up()


async def ask(*args: str, cwd: Path, env: Mapping[str, str] | None = None, input: str | None = None) -> GitOutput:
    """Call git and return its output, even if it fails."""
    return await in_thread(lambda calls: calls.ask(*args, cwd=cwd, env=env, input=input))


async def git(
    *args: str, cwd: Path, env: Mapping[str, str] | None = None, input: str | None = None, check: bool = True
) -> str:
    """Call git and return its standard output; raise an error if it fails."""
    return await in_thread(lambda calls: calls.git(*args, cwd=cwd, env=env, input=input, check=check))


def refusal(verb: str, answer: GitOutput, *, hint: str | None = None) -> WorkspaceError:
    """Return the error for a failed call, with git's first error line: later lines are consequences."""
    lines = [line for line in answer.complaint.splitlines() if line.strip()]
    reasons = [line for line in lines if line.startswith(("fatal: ", "error: "))] or lines or [f"exit {answer.code}"]
    return WorkspaceError(f"git {verb} failed: {readable(reasons[0])}", hint=hint)


def readable(path: str) -> str:
    """Return a file name for display and storage: bytes that are not UTF-8 become escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


async def repository_root(path: Path) -> Path:
    """Return the top directory of the checkout; raise an error if there is none, or no commit."""
    if not await anyio.Path(path).is_dir():
        raise NotARepository(f"There is no directory {path}.", hint="Give the path of a git repository.")
    await _refuse_what_is_no_checkout(path)
    root = Path((await git("rev-parse", "--show-toplevel", cwd=path)).removesuffix("\n"))
    if await head_commit(root) is None:
        raise EmptyRepository(
            f"The repository {root} has no commit yet.", hint='Make one: git commit --allow-empty -m "Begin"'
        )
    return root


async def head_commit(worktree: Path) -> str | None:
    """Return the commit of HEAD, or None if there is none."""
    return await in_thread(lambda calls: head_of(calls, worktree))


def head_of(calls: Calls, worktree: Path) -> str | None:
    """Return the commit of HEAD, or None if there is none."""
    return calls.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", cwd=worktree, check=False).strip() or None


async def branch_exists(repository: Path, branch: str) -> bool:
    """Return True if the repository has this local branch."""
    return (await ask("show-ref", "--verify", "--quiet", f"refs/heads/{branch}", cwd=repository)).code == 0


async def status(worktree: Path, *, renames: bool = True) -> Status:
    """Return every changed path of a worktree; nothing is written."""
    return await in_thread(lambda calls: status_of(calls, worktree, renames=renames))


def status_of(calls: Calls, worktree: Path, *, env: Mapping[str, str] | None = None, renames: bool = True) -> Status:
    """Return every changed path from one call of `git status`; `env` may name another index."""
    answer = calls.ask(
        *("status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--untracked-files=all"),
        *("--ignore-submodules=none", "--find-renames" if renames else "--no-renames"),
        cwd=worktree,
        env=env,
    )
    if answer.code != 0:
        raise refusal("status", answer)
    return _parsed(answer)


async def read_state(worktree: Path, base: str | None) -> GitState:
    """Return the branch, HEAD and changed files of a worktree."""
    return state_of(await status(worktree), base)


def state_of(now: Status, base: str | None) -> GitState:
    """Convert a status to the form that is stored; raise EmptyRepository if HEAD has no commit."""
    if now.head is None:
        raise EmptyRepository(f"The branch {now.branch} has no commit yet.", hint="Commit something on it.")
    changes = tuple(_change(entry) for entry in now.entries)
    return GitState(branch=now.branch, head=now.head, base=base, changes=changes)


async def committed_between(worktree: Path, base: str, head: str) -> tuple[FileChange, ...]:
    """Return the changes from one commit to another; none if one of them does not exist."""
    answer = await ask("diff-tree", "-r", "-z", "--name-status", "--no-renames", base, head, "--", cwd=worktree)
    if answer.code != 0:
        return ()
    fields = answer.output.split("\0")[:-1]
    pairs = zip(fields[::2], fields[1::2], strict=True)
    return tuple(FileChange(path=readable(path), action=_ACTIONS.get(letter, "modified")) for letter, path in pairs)


def _decoded(output: bytes) -> str:
    """Return git's output as text; bytes that are not UTF-8 stay as surrogates."""
    return output.decode("utf-8", "surrogateescape")


def _cannot_call(cwd: Path, error: OSError) -> WorkspaceError:
    """Return the error for git that cannot be started: no directory, no program, or no permission."""
    if not cwd.is_dir():
        return WorkspaceError(f"The directory {cwd} does not exist.", hint="Bring it back, then try again.")
    if isinstance(error, FileNotFoundError):
        return WorkspaceError("The program git was not found.", hint="Install git 2.30 or newer.")
    return WorkspaceError(f"git cannot be called in {cwd}: {error.strerror}.", hint="Check the permissions of both.")


async def _refuse_what_is_no_checkout(path: Path) -> None:
    """Raise an error if the path is in no repository, a bare one, or in `.git`; else do nothing."""
    answer = await ask("rev-parse", "--is-bare-repository", "--is-inside-work-tree", cwd=path)
    if "not a git repository" in answer.complaint:
        raise NotARepository(f"{path} is not inside a git repository.", hint="Run `git init` there, or go to another.")
    if answer.code != 0:
        raise refusal("rev-parse", answer, hint=answer.complaint.strip())
    match answer.output.split():
        case ["true", _]:
            raise NotARepository(
                f"{path} is a bare repository, which has no files to work on.", hint="Clone it, and give the clone."
            )
        case [_, "false"]:
            raise NotARepository(f"{path} is inside git's own directory.", hint="Give the directory above it.")
        case _:
            return


def _parsed(answer: GitOutput) -> Status:
    """Read the output of `git status --porcelain=v2 -z`; `unopened` are directories that git could not open."""
    headers: dict[str, str] = {}
    entries: list[ChangedPath] = []
    fields = iter(answer.output.split("\0"))
    for field in fields:
        if field.startswith("# "):
            _, name, value = field.split(" ", 2)
            headers[name] = value
        elif field:
            entries.append(_entry(field, fields))
    head = headers.get("branch.oid", "(initial)")
    return Status(
        branch=headers.get("branch.head", DETACHED),
        head=None if head == "(initial)" else head,
        entries=tuple(entries),
        unopened=tuple(_UNOPENED.findall(answer.complaint)),
    )


def _entry(field: str, following: Iterator[str]) -> ChangedPath:
    """Read one changed path; a rename takes the old path from the next field."""
    match field[0]:
        case "?":
            return ChangedPath(path=field[2:], untracked=True)
        case "u":
            # The second of the three sides of a conflict is HEAD's.
            _, xy, _, _, ours, _, now, _, our_object, _, path = field.split(" ", 10)
            return ChangedPath(
                path=path, unstaged=xy[1], in_head=ours, in_worktree=now, head_object=our_object, unmerged=True
            )
        case "2":
            renamed_from = next(following)
            _, xy, _, head, _, now, head_object, _, _, path = field.split(" ", 9)
        case _:
            renamed_from = ""
            _, xy, _, head, _, now, head_object, _, path = field.split(" ", 8)
    return ChangedPath(
        path=path,
        staged=xy[0],
        unstaged=xy[1],
        in_head=head,
        in_worktree=now,
        head_object=head_object,
        renamed_from=renamed_from,
    )


def _change(entry: ChangedPath) -> FileChange:
    """Convert a changed path to the stored form: created, modified, deleted or renamed."""
    path, staged = readable(entry.path), entry.staged != "."
    if entry.untracked:
        return FileChange(path=path, action="created")
    if "R" in (entry.staged, entry.unstaged):
        return FileChange(path=path, action="renamed", staged=staged)
    if entry.in_worktree == ABSENT:
        return FileChange(path=path, action="deleted", staged=staged)
    created = entry.in_head == ABSENT or "C" in (entry.staged, entry.unstaged)
    return FileChange(path=path, action="created" if created else "modified", staged=staged)

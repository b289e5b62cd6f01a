"""Checkpoints of the whole worktree as hidden commits, saved and restored without changing the user's index or HEAD."""

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from segue.model.checkpoint import GitState
from segue.model.crash import crash_point
from segue.model.errors import WorkspaceError
from segue.workspace.git import (
    ABSENT,
    GITLINK,
    Calls,
    ChangedPath,
    Status,
    head_of,
    in_thread,
    readable,
    refusal,
    state_of,
    status_of,
)
from segue.workspace.kept_index import Loan, keep, lend
from segue.workspace.private import owned_directory
from segue.workspace.secret_files import is_secret

_AUTHOR = {
    "GIT_AUTHOR_NAME": "Segue",
    "GIT_AUTHOR_EMAIL": "segue@localhost",
    "GIT_COMMITTER_NAME": "Segue",
    "GIT_COMMITTER_EMAIL": "segue@localhost",
}
_NESTED = " (nested repository)"
_UNREADABLE = " (could not be read)"
_IGNORE_RULES = ":(top,glob)**/.gitignore"
# Messages of git about a problem with the repository instead of a single file.
_HOPELESS = ("index.lock", "No space left", "quota exceeded", "Read-only file system", "adding an object")


@dataclass(frozen=True, slots=True)
class SavedTree:
    """Saved worktree, and the paths that were left out."""

    commit: str
    left_out: tuple[str, ...]


class _Borrowed:
    """Copy of the worktree's index that git may write to."""

    def __init__(self, calls: Calls, worktree: Path, file: Path) -> None:
        self.calls = calls
        self.worktree = worktree
        self._env = {"GIT_INDEX_FILE": str(file)}

    def git(self, *args: str, input: str | None = None) -> str:
        """Run git in the worktree on this copy of the index, and return its output; raise an error if git fails."""
        return self.calls.git(*args, cwd=self.worktree, env=self._env, input=input)

    def refresh(self) -> None:
        """Update the times of files with unchanged content; git complains about the others."""
        self.calls.git("update-index", "-q", "--refresh", cwd=self.worktree, env=self._env, check=False)

    def status(self, *, renames: bool = False) -> Status:
        """Return the status of the worktree; git may update this index with what it finds."""
        return status_of(self.calls, self.worktree, env=self._env | {"GIT_OPTIONAL_LOCKS": "1"}, renames=renames)

    def set_entries(self, lines: Iterable[str]) -> None:
        """Set entries by lines of the form `MODE OBJECT STAGE\\tPATH`; the absent mode removes a path."""
        if text := "".join(f"{line}\0" for line in lines):
            self.git("update-index", "-z", "--replace", "--index-info", input=text)

    def entries(self, *paths: str) -> list[str]:
        """Return the entries at and below these paths, as lines that can be set."""
        return self.git("ls-files", "-z", "--stage", "--", *paths).split("\0")[:-1]

    def take_in(self, paths: list[str]) -> list[str]:
        """Store the current content of these files in the index; return the paths that git cannot read or filter."""
        if not paths:
            return []
        answer = self.calls.ask(
            *("update-index", "-z", "--add", "--remove", "--replace", "--stdin"),
            cwd=self.worktree,
            env=self._env,
            input="".join(f"{path}\0" for path in paths),
        )
        if answer.code == 0:
            return []
        if any(words in answer.complaint for words in _HOPELESS):
            raise refusal("update-index", answer)
        if len(paths) == 1:
            return paths
        # Git stops at the first file that it cannot read or filter. Bisection finds all of them in few calls.
        middle = len(paths) // 2
        return self.take_in(paths[:middle]) + self.take_in(paths[middle:])


@dataclass(frozen=True, slots=True)
class _Draft:
    """Worktree as a tree, and the index that describes it."""

    index: _Borrowed
    now: Status
    tree: str
    left_out: dict[str, str]
    """Paths whose content in the tree differs from the worktree, and how to show them to people."""

    def names(self) -> tuple[str, ...]:
        """Return the names of what the checkpoint leaves out, sorted."""
        return tuple(sorted(self.left_out.values()))


@dataclass(slots=True)
class _Sorting:
    """Changes that turn the index into the tree to be saved, collected path by path."""

    entries: list[str] = field(default_factory=list[str])
    files: list[str] = field(default_factory=list[str])
    left_out: dict[str, str] = field(default_factory=dict[str, str])

    def leave_out(self, path: str, why: str = "") -> None:
        """Note that a path is not saved, by its readable name and the reason."""
        self.left_out[path] = f"{readable(path)}{why}"

    def sort(self, entry: ChangedPath) -> None:
        """Note how one changed path is saved: stored anew, removed, kept as in HEAD or left out; a staged one is in the
        index."""
        if entry.untracked and entry.path.endswith("/"):
            self.leave_out(entry.path.rstrip("/"), _NESTED)
        elif entry.untracked and is_secret(entry.path):
            self.leave_out(entry.path)
        elif entry.untracked:
            self.files.append(entry.path)
        elif entry.in_worktree == ABSENT:
            self.entries.append(_taken_out(entry.head_object, entry.path))
        elif entry.in_worktree == GITLINK or is_secret(entry.path):
            self.leave_out(entry.path, _NESTED if entry.in_worktree == GITLINK else "")
            self.entries.append(_as_in_head(entry))
        elif entry.unmerged or entry.unstaged != ".":
            self.files.append(entry.path)


async def save(worktree: Path, ref: str, message: str) -> SavedTree:
    """Store the worktree with its untracked files under a hidden ref; a ref that has this tree and HEAD keeps its
    commit."""
    return await in_thread(lambda calls: _save(calls, worktree, ref, message))


def _save(calls: Calls, worktree: Path, ref: str, message: str) -> SavedTree:
    """Store the worktree under the ref in one thread; see `save`."""
    with _drafted(calls, worktree) as draft:
        return _stored(draft, ref, message)


async def save_with_state(worktree: Path, ref: str, message: str, base: str | None) -> tuple[GitState, SavedTree]:
    """Store the worktree, and return its git state from the same call of `git status`."""
    return await in_thread(lambda calls: _save_with_state(calls, worktree, ref, message, base))


def _save_with_state(
    calls: Calls, worktree: Path, ref: str, message: str, base: str | None
) -> tuple[GitState, SavedTree]:
    """Store the worktree and return its git state in one thread; see `save_with_state`."""
    with _drafted(calls, worktree, renames=True) as draft:
        return state_of(draft.now, base), _stored(draft, ref, message)


async def tree_of(worktree: Path) -> str:
    """Return the id of the tree that a checkpoint of this worktree would have now."""
    return await in_thread(lambda calls: _tree_of(calls, worktree))


def _tree_of(calls: Calls, worktree: Path) -> str:
    """Return the id of the tree that the worktree would be saved as; no ref is changed."""
    with _drafted(calls, worktree) as draft:
        return draft.tree


async def restore(worktree: Path, commit: str) -> tuple[str, ...]:
    """Restore every file from a checkpoint, and return the names of the files that were not changed.

    Ignored files, the index and HEAD stay as they are, and so do the files that a checkpoint would leave out now.
    """
    return await in_thread(lambda calls: _restore(calls, worktree, commit))


def _restore(calls: Calls, worktree: Path, commit: str) -> tuple[str, ...]:
    """Restore the ignore rules, then all other files, and verify the result; return the names of files left as they
    are."""
    target = _tree_in(calls, worktree, commit)
    # Restore the ignore rules first: a file that they ignore was never saved, and must not be removed as new.
    with _drafted(calls, worktree) as draft:
        _move(draft, _grafted(draft.index, draft.tree, target, [_IGNORE_RULES]))
    with _drafted(calls, worktree) as draft:
        _move(draft, _sparing(draft, target))
        _verify(draft)
        return draft.names()


@contextmanager
def _drafted(calls: Calls, worktree: Path, *, renames: bool = False) -> Generator[_Draft]:
    """Yield the worktree as a tree and its index, made on a copy of the index; paths that cannot be saved are left
    out."""
    with _borrowed(calls, worktree) as (index, loan):
        now = index.status(renames=renames)
        if loan:
            keep(loan)
        sorting = _Sorting()
        for entry in now.entries:
            for change in entry.apart():
                sorting.sort(change)
        index.set_entries(sorting.entries)
        for path in index.take_in(sorting.files):
            sorting.leave_out(path, _UNREADABLE)
        for folder in now.unopened:
            sorting.leave_out(folder.rstrip("/"), _UNREADABLE)
        tree = index.git("write-tree").strip()
        yield _Draft(index, now, tree, sorting.left_out)


@contextmanager
def _borrowed(calls: Calls, worktree: Path) -> Generator[tuple[_Borrowed, Loan | None]]:
    """Yield a temporary copy of the index and its loan; without an index it is read from HEAD, if any, and the loan is
    None."""
    real = _noted_index(worktree)
    if real is None:
        real = worktree / calls.git("rev-parse", "--git-path", "index", cwd=worktree).removesuffix("\n")
    with owned_directory("segue-index") as folder:
        copy = folder / "index"
        index = _Borrowed(calls, worktree, copy)
        loan = lend(real, copy)
        if loan is None and head_of(calls, worktree):
            index.git("read-tree", "HEAD")
        yield index, loan


def _noted_index(worktree: Path) -> Path | None:
    """Return the path of a linked worktree's index from its `.git` file, which saves a call of git; None for other
    repositories."""
    try:
        note = os.fsdecode((worktree / ".git").read_bytes())
    except OSError:
        return None
    word, _, folder = note.removesuffix("\n").partition(": ")
    return worktree / folder / "index" if word == "gitdir" and (worktree / folder).is_dir() else None


@contextmanager
def _unpacked(calls: Calls, worktree: Path, tree: str) -> Generator[_Borrowed]:
    """Yield a temporary index that holds this tree."""
    with owned_directory("segue-index") as folder:
        index = _Borrowed(calls, worktree, folder / "index")
        index.git("read-tree", tree)
        yield index


def _taken_out(some_object: str, path: str) -> str:
    """Return the index line that removes a path."""
    return f"{ABSENT} {some_object}\t{path}"


def _as_in_head(entry: ChangedPath) -> str:
    """Return the index line that sets a path as HEAD has it; HEAD without the path means that it is removed."""
    if entry.in_head == ABSENT:
        return _taken_out(entry.head_object, entry.path)
    return f"{entry.in_head} {entry.head_object} 0\t{entry.path}"


def _stored(draft: _Draft, ref: str, message: str) -> SavedTree:
    """Commit the draft's tree under the ref, and return the commit; a ref with this tree and HEAD keeps its commit."""
    calls, worktree = draft.index.calls, draft.index.worktree
    commit = _commit(draft, message)
    crash_point("checkpoint.before_ref")
    # Usually the ref does not exist yet, and one call is enough.
    if calls.ask("update-ref", ref, commit, "0" * len(commit), cwd=worktree).code != 0:
        if existing := _commit_with_tree(draft, ref):
            return SavedTree(existing, draft.names())
        calls.git("update-ref", ref, commit, cwd=worktree)
    return SavedTree(commit, draft.names())


def _commit(draft: _Draft, message: str) -> str:
    """Create a commit of the draft's tree with HEAD, if any, as parent, and return its id; no ref is changed."""
    parents = ["-p", draft.now.head] if draft.now.head else []
    arguments = ["commit-tree", "--no-gpg-sign", *parents, "-F", "-", draft.tree]
    return draft.index.calls.git(*arguments, cwd=draft.index.worktree, env=_AUTHOR, input=message).strip()


def _commit_with_tree(draft: _Draft, ref: str) -> str | None:
    """Return the commit under this ref if it has the draft's tree and HEAD, else None."""
    form = "--format=%(objectname) %(tree) %(parent)"
    found = draft.index.calls.git("for-each-ref", form, ref, cwd=draft.index.worktree)
    commit, _, rest = found.strip().partition(" ")
    return commit if rest.split() == [draft.tree, *filter(None, [draft.now.head])] else None


async def tree_in(repository: Path, commit: str) -> str:
    """Return the id of the tree of a checkpoint."""
    return await in_thread(lambda calls: _tree_in(calls, repository, commit))


def _tree_in(calls: Calls, repository: Path, commit: str) -> str:
    """Return the id of the tree of a commit; raise WorkspaceError if the repository lacks the commit."""
    answer = calls.ask("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}", cwd=repository)
    if answer.code != 0:
        raise WorkspaceError(
            f"The checkpoint's commit {commit} is not in this repository.",
            hint="It may have been made in another clone, or its ref was deleted and git has cleaned up.",
        )
    return answer.output.strip()


def _sparing(draft: _Draft, target: str) -> str:
    """Return the target tree, with the current content of everything that is left out."""
    paths = [f":(top,literal){path}" for path in draft.left_out]
    return _grafted(draft.index, target, draft.tree, paths) if paths else target


def _grafted(like: _Borrowed, tree: str, other: str, paths: list[str]) -> str:
    """Return a tree with another one's content at these paths; the tree itself if nothing differs there."""
    calls, worktree = like.calls, like.worktree
    with _unpacked(calls, worktree, tree) as index, _unpacked(calls, worktree, other) as source:
        before, after = index.entries(*paths), source.entries(*paths)
        if before == after:
            return tree
        index.set_entries([*map(_removal, before), *after])
        return index.git("write-tree").strip()


def _removal(line: str) -> str:
    """Return the index line that removes the path of an entry."""
    description, _, path = line.partition("\t")
    return _taken_out(description.split()[1], path)


def _move(draft: _Draft, target: str) -> None:
    """Change the worktree from the drafted tree to another; raise git's error, with nothing lost, if a file is in the
    way."""
    if target != draft.tree:
        draft.index.refresh()
        draft.index.git("read-tree", "-m", "-u", "--no-recurse-submodules", draft.tree, target)


def _verify(draft: _Draft) -> None:
    """Raise WorkspaceError if files are left that the tree lacks, or missing that it has; those left out do not
    count."""
    # Git only warns about files that it could not remove.
    wrong = [
        readable(entry.path)
        for entry in draft.index.status().entries
        if entry.untracked or (entry.unstaged != "." and entry.in_worktree == ABSENT)
        if entry.path.rstrip("/") not in draft.left_out
    ]
    if wrong:
        raise WorkspaceError(
            f"The worktree was not brought back exactly: {', '.join(wrong)}.",
            hint="Check the permissions of these files, and that no other program is using them.",
        )

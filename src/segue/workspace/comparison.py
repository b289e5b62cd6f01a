"""Description of the changes in a worktree between two runs, in sentences."""

from dataclasses import replace
from pathlib import Path

from segue.model.checkpoint import GitState
from segue.workspace.checkpoints import tree_of
from segue.workspace.git import ask, git, read_state, readable

_NAMED = 10
_VERBS = {"A": "appeared", "D": "disappeared"}


async def divergence(worktree: Path, before: GitState, before_tree: str | None = None) -> tuple[str, ...]:
    """Return the differences from an earlier state in sentences; none if it is the same.

    With the tree of a checkpoint the content of all files is compared, and not only the list of changed files.
    """
    now = await read_state(worktree, before.base)
    if now == replace(before, committed=()) and not now.changes:
        # A clean worktree equals its commit, so there is nothing to compare.
        return ()
    sentences: list[str] = []
    if now.branch != before.branch:
        sentences.append(f"The branch was {before.branch} and is now {now.branch}.")
    if now.head != before.head:
        sentences.append(await _moved(worktree, before.head, now.head))
    if before_tree is None:
        sentences += _changes_differ(before, now)
    else:
        sentences += await between(worktree, before_tree, await tree_of(worktree))
    return tuple(sentences)


async def _moved(worktree: Path, before: str, now: str) -> str:
    """Return a sentence on how far HEAD is ahead of or behind an earlier commit, or that this is gone."""
    sentence = f"HEAD moved from {before[:10]} to {now[:10]}"
    counted = await ask("rev-list", "--left-right", "--count", f"{before}...{now}", cwd=worktree)
    if counted.code != 0:
        return f"{sentence}; the earlier commit is no longer in the repository."
    behind, ahead = map(int, counted.output.split())
    if behind and ahead:
        related = (await ask("merge-base", before, now, cwd=worktree)).code == 0
        return f"{sentence}, {_commits(ahead)} ahead and {_commits(behind)} behind{'' if related else ', unrelated'}."
    return f"{sentence}, {_commits(ahead or behind)} {'ahead' if ahead else 'behind'}."


def _commits(number: int) -> str:
    """Return a number of commits as a phrase."""
    return f"{number} commit{'' if number == 1 else 's'}"


def _changes_differ(before: GitState, now: GitState) -> list[str]:
    """Return sentences on the paths that are changed now and were not, or in another way, or the reverse."""
    old = {change.path: change.action for change in before.changes}
    new = {change.path: change.action for change in now.changes}
    return [
        *_about([path for path in new if path not in old], "changed, and had no changes before"),
        *_about([path for path in new if path in old and old[path] != new[path]], "changed in another way than before"),
        *_about([path for path in old if path not in new], "had changes before and lost them"),
    ]


async def between(worktree: Path, before: str, now: str) -> list[str]:
    """Return the differences between two trees in sentences, by kind of change; an empty list if they are equal."""
    listing = await git("diff-tree", "-r", "-z", "--name-status", "--no-renames", before, now, cwd=worktree)
    fields = listing.split("\0")[:-1]
    by_verb: dict[str, list[str]] = {}
    for letter, path in zip(fields[::2], fields[1::2], strict=True):
        by_verb.setdefault(_VERBS.get(letter, "changed"), []).append(readable(path))
    return [sentence for verb, paths in by_verb.items() for sentence in _about(paths, verb)]


async def is_on_the_way(worktree: Path, before: str, after: str) -> bool:
    """Return True if every file of the worktree has its content from one of two trees, False as soon as one differs
    from both."""
    now = await tree_of(worktree)
    return not (await _differing(worktree, before, now) & await _differing(worktree, now, after))


async def _differing(worktree: Path, one: str, other: str) -> set[str]:
    """Return the paths whose content differs between two trees."""
    listing = await git("diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other, cwd=worktree)
    return set(listing.split("\0")[:-1])


def _about(paths: list[str], what: str) -> list[str]:
    """Return one sentence on what happened to these paths, the first few by name; an empty list for no paths."""
    if not paths:
        return []
    if len(paths) == 1:
        return [f"The file {paths[0]} {what}."]
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return [f"{len(paths)} files {what}: {', '.join(sorted(paths)[:_NAMED])}{more}."]

"""Git's own folder: whoever writes into it decides what every later call of git runs."""

from pathlib import PurePath


def in_git_folder(path: PurePath | str) -> bool:
    """Whether this is git's own, in the worktree or further down; some file systems do not tell small from capital."""
    return any(part.casefold() == ".git" for part in PurePath(path).parts)

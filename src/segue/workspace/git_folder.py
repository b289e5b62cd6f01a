"""Paths inside of git's own folder, whose content decides what later calls of git execute."""

from pathlib import PurePath


def in_git_folder(path: PurePath | str) -> bool:
    """Return True if a path is in a `.git` folder at any level; case is ignored, as on some file systems."""
    return any(part.casefold() == ".git" for part in PurePath(path).parts)

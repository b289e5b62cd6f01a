"""The directory that an agent works in, and the end of its world."""

from dataclasses import dataclass
from pathlib import Path

from segue.workspace.files import real_path
from segue.workspace.git_folder import in_git_folder


class ToolFailed(Exception):
    """A tool could not do what the model wanted; the message is what the model is told."""


@dataclass(frozen=True, slots=True)
class FileRoot:
    """A directory; paths are found in it and never outside of it, wherever its links lead."""

    root: Path

    def find(self, path: str) -> Path:
        """Where this really is, whether or not it is there yet."""
        found = real_path(self.root / path)
        if not found.is_relative_to(self.root.resolve()):
            raise ToolFailed(f"{path} is outside of the worktree.")
        return found

    def to_change(self, path: str) -> Path:
        """The same, for somebody who means to write there."""
        found = self.find(path)
        if in_git_folder(self.name(found)):
            raise ToolFailed(f"{path} belongs to git, and is changed by git commands only.")
        return found

    def file(self, path: str) -> Path:
        found = self.find(path)
        if not found.exists():
            raise ToolFailed(f"{path} does not exist.")
        # A pipe or a device would be read for ever.
        if not found.is_file():
            raise ToolFailed(f"{path} is no file.")
        return found

    def directory(self, path: str) -> Path:
        found = self.find(path)
        if not found.is_dir():
            raise ToolFailed(f"{path} is no directory.")
        return found

    def name(self, path: Path) -> str:
        return str(path.relative_to(self.root.resolve()))

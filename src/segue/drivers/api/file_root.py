"""Directory that an agent works in, and may not leave."""

from dataclasses import dataclass
from pathlib import Path

from segue.workspace.files import real_path
from segue.workspace.git_folder import in_git_folder


class ToolFailed(Exception):
    """The tool failed; the message is its result for the model."""


@dataclass(frozen=True, slots=True)
class FileRoot:
    """Directory in which paths are resolved; no path leads out of it, wherever its links lead."""

    root: Path

    def find(self, path: str) -> Path:
        """Return the real path, whether or not it exists; raise ToolFailed if it is outside."""
        found = real_path(self.root / path)
        if not found.is_relative_to(self.root.resolve()):
            raise ToolFailed(f"{path} is outside of the worktree.")
        return found

    def to_change(self, path: str) -> Path:
        """Return the real path of a file that may be written; raise ToolFailed if it is outside or git's."""
        found = self.find(path)
        if in_git_folder(self.name(found)):
            raise ToolFailed(f"{path} belongs to git, and is changed by git commands only.")
        return found

    def file(self, path: str) -> Path:
        """Return the real path of a regular file; raise ToolFailed if it is none, since a pipe could block."""
        found = self.find(path)
        if not found.exists():
            raise ToolFailed(f"{path} does not exist.")
        # A pipe or a device would be read for ever.
        if not found.is_file():
            raise ToolFailed(f"{path} is no file.")
        return found

    def directory(self, path: str) -> Path:
        """Return the real path of a directory; raise ToolFailed if it is none."""
        found = self.find(path)
        if not found.is_dir():
            raise ToolFailed(f"{path} is no directory.")
        return found

    def name(self, path: Path) -> str:
        """Return the path relative to the root."""
        return str(path.relative_to(self.root.resolve()))

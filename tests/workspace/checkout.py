"""A git repository as its owner uses it."""

import subprocess
from pathlib import Path


class Repository:
    def __init__(self, path: Path) -> None:
        self.path = path

    def git(self, *args: str) -> str:
        return subprocess.run(["git", *args], cwd=self.path, check=True, capture_output=True, text=True).stdout.strip()

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def commit(self, message: str = "More") -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def files(self, commit: str) -> set[str]:
        listing = subprocess.check_output(
            ["git", "ls-tree", "-r", "-z", "--name-only", commit], cwd=self.path, text=True
        )
        return set(listing.split("\0")) - {""}


def begun(path: Path) -> Repository:
    """A new repository with one commit of three files."""
    repository = Repository(path)
    repository.git("init", "--quiet", "--initial-branch=main")
    repository.write("readme.md", "Read me.\n")
    repository.write("src/app.py", "print('hello')\n")
    repository.write("src/util.py", "one = 1\ntwo = 2\nthree = 3\n")
    repository.commit("Begin")
    return repository

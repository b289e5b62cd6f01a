"""A real repository for each test, and nothing of the developer's own git configuration."""

import os
from pathlib import Path

import pytest
from checkout import Repository


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def plain_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    # Some tests give their repository to another user.
    for name, value in {"COUNT": "1", "KEY_0": "safe.directory", "VALUE_0": "*"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")


@pytest.fixture
def empty(tmp_path: Path) -> Repository:
    """A repository without a commit."""
    path = tmp_path / "repository"
    path.mkdir()
    repository = Repository(path)
    repository.git("init", "--quiet", "--initial-branch=main")
    return repository


@pytest.fixture
def repository(empty: Repository) -> Repository:
    """A repository with one commit of three files."""
    empty.write("readme.md", "Read me.\n")
    empty.write("src/app.py", "print('hello')\n")
    empty.write("src/util.py", "one = 1\ntwo = 2\nthree = 3\n")
    empty.commit("Begin")
    return empty

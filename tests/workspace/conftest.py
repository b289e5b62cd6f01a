"""A real repository for each test, and nothing of the developer's own git configuration."""

import os
from pathlib import Path

import pytest

from tests.workspace.checkout import Repository, begun


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
    repository = Repository(tmp_path / "repository")
    repository.path.mkdir()
    repository.git("init", "--quiet", "--initial-branch=main")
    return repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with one commit of three files."""
    path = tmp_path / "repository"
    path.mkdir()
    return begun(path)

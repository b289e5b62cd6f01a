import shutil
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from segue import drivers
from segue.model.agents import AgentConfiguration
from tests.orchestrator.test_resuming import paused
from tests.orchestrator.theatre import Theatre, git


@pytest.fixture(scope="session")
def first_commit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Git repository with one empty commit; each test works on a copy."""
    path = tmp_path_factory.mktemp("first-commit")
    git(path, "init", "--quiet", "--initial-branch", "main", "--template=")
    git(path, "commit", "--quiet", "--allow-empty", "--message", "first")
    return path


@pytest.fixture
def repository(tmp_path: Path, first_commit: Path) -> Path:
    return shutil.copytree(first_commit, tmp_path / "repository")


@pytest.fixture
def theatre(tmp_path: Path, repository: Path, migrated_sqlite: Path) -> Theatre:
    shutil.copy(migrated_sqlite, tmp_path / "segue.db")
    return Theatre(tmp_path, repository)


@pytest.fixture
def server_settings() -> dict[str, Any]:
    """Settings of the server that `opened` starts; modules override them."""
    return {}


@pytest.fixture
async def opened(theatre: Theatre, server_settings: dict[str, Any]) -> AsyncGenerator[Theatre]:
    """Theatre whose server runs until the end of the test."""
    async with theatre.open(**server_settings):
        yield theatre


@pytest.fixture
async def on_each(theatre: Theatre, database_url: str, server_settings: dict[str, Any]) -> AsyncGenerator[Theatre]:
    """Theatre like `opened`, on SQLite and on PostgreSQL."""
    theatre.database_url = database_url
    async with theatre.open(**server_settings):
        yield theatre


@pytest.fixture
async def between(opened: Theatre) -> Theatre:
    """Workflow `build-it` that is paused between its two tasks, without an agent."""
    await paused(opened)
    return opened


@pytest.fixture
def halved(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent whose program is there, and whose driver is there in part only."""
    monkeypatch.setitem(drivers.EXTRAS, "api", ("json", "a_library_that_is_not_there"))
    theatre.agents["halved"] = AgentConfiguration(name="halved", command=(sys.executable,), driver="api")

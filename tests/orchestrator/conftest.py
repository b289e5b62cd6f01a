import shutil
import sys
from pathlib import Path

import pytest

from segue import drivers
from segue.model.agents import AgentConfiguration
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
def halved(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent whose program is there, and whose driver is there in part only."""
    monkeypatch.setitem(drivers.EXTRAS, "api", ("json", "a_library_that_is_not_there"))
    theatre.agents["halved"] = AgentConfiguration(name="halved", command=(sys.executable,), driver="api")

import sys
from pathlib import Path

import pytest

from segue import drivers
from segue.model.agents import AgentConfiguration
from tests.orchestrator.theatre import Theatre, git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "--quiet", "--initial-branch", "main")
    git(path, "commit", "--quiet", "--allow-empty", "--message", "first")
    return path


@pytest.fixture
def theatre(tmp_path: Path, repository: Path) -> Theatre:
    return Theatre(tmp_path, repository)


@pytest.fixture
def halved(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent whose program is there, and whose driver is there in part only."""
    monkeypatch.setitem(drivers.EXTRAS, "api", ("json", "a_library_that_is_not_there"))
    theatre.agents["halved"] = AgentConfiguration(name="halved", command=(sys.executable,), driver="api")

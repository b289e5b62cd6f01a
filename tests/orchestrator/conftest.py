from pathlib import Path

import pytest

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

from pathlib import Path
from typing import Any

import pytest

from segue.server import documents
from tests.server.serving import app_around
from tests.server.standin_service import VIEW, Standin


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory of the test's own."""
    directory = tmp_path / "home"
    monkeypatch.setenv("SEGUE_HOME", str(directory))
    monkeypatch.delenv("SEGUE_DATABASE_URL", raising=False)
    return directory


@pytest.fixture(autouse=True)
def own_variables(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What a server in the test's own process was started with."""
    variables: dict[str, str] = {}
    monkeypatch.setattr(documents, "OWN", variables)
    return variables


@pytest.fixture
def service() -> Standin:
    """Stand-in with one workflow."""
    return Standin(VIEW)


@pytest.fixture
def app(service: Standin) -> Any:
    """The application around the service."""
    return app_around(service)

from pathlib import Path

import pytest

from segue.server import documents


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


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

from pathlib import Path

import pytest


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

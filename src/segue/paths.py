"""Paths of the data directory and its contents. Standard library only."""

import os
import sys
from pathlib import Path

from segue.model.errors import BadSettings

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600


def home() -> Path:
    """Return the data directory: $SEGUE_HOME, or the platform's own place for data."""
    chosen = os.environ.get("SEGUE_HOME")
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "segue"
    data = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification says that a relative path there is to be ignored.
    return (Path(data) if data.startswith("/") else Path.home() / ".local" / "share") / "segue"


def ensure_home() -> Path:
    """Create the data directory if it is missing, restrict it to its owner, and return it."""
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
    """Return $SEGUE_DATABASE_URL, or the URL of the SQLite file in the data directory."""
    return os.environ.get("SEGUE_DATABASE_URL") or f"sqlite:///{database_file()}"


def database_file() -> Path:
    return home() / "segue.db"


def settings_file() -> Path:
    return home() / "segue.toml"


def token_file() -> Path:
    """Return the file of the secret that every caller of the server must present."""
    return home() / "token"


def server_file() -> Path:
    """Return the file with the address of the server of this data directory."""
    return home() / "server.json"


def lock_file() -> Path:
    """Return the file that the server locks while it runs."""
    return home() / "lock"


def start_lock_file() -> Path:
    """Return the file that a caller locks while it starts a server, so that two callers do not start two."""
    return home() / "start.lock"


def server_log() -> Path:
    return home() / "server.log"


def open_private(path: Path, flags: int) -> int:
    """Open `path` and return the descriptor; a file that is created is readable by its owner only."""
    return os.open(path, flags | os.O_CLOEXEC, PRIVATE_FILE)


def write_private(path: Path, content: bytes) -> None:
    """Replace `path` atomically: readers see the old content or the new one, even after a crash."""
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

"""Atomic replacement of files, and resolution of links."""

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def real_path(path: Path) -> Path:
    """Return the real path, even of a file that does not exist; raise `OSError` for a loop of links."""
    found = Path(os.path.realpath(path))
    # Python stops at a link to itself, so the rest of the path could lead anywhere.
    if Path(os.path.realpath(found)) != found:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    with suppress(FileNotFoundError, NotADirectoryError):
        found.stat()
    return found


def replace_file(file: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace a file atomically: readers see the old content or the new one, even after a crash."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode), "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def rewrite(file: Path, text: str) -> None:
    """Replace a file of the user atomically and keep its mode; links must be resolved before."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # A random name, because in a worktree a predictable one could be a prepared link.
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("x", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        if file.exists():
            temporary.chmod(stat.S_IMODE(file.stat().st_mode))
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

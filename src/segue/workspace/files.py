"""Files that are replaced as a whole, and where a path really leads."""

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def real_path(path: Path) -> Path:
    """Where this really is, whether or not it is there yet; links without an end are an `OSError`."""
    found = Path(os.path.realpath(path))
    # Behind a link that leads to itself Python follows no other: what comes after it would lead anywhere.
    if Path(os.path.realpath(found)) != found:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    with suppress(FileNotFoundError, NotADirectoryError):
        found.stat()
    return found


def replace_file(file: Path, content: bytes, mode: int = 0o600) -> None:
    """Readers see the old content or the new one, also after a crash."""
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
    """The same for a file of the user's, which keeps its rights; a link must have been followed before."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # Nobody can have put anything there before: in a worktree a name that can be guessed might be a link.
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

"""Errors of one item that are logged, so that the others are still processed."""

import logging
from collections.abc import Generator
from contextlib import contextmanager

log = logging.getLogger("segue")


@contextmanager
def errors_logged(message: str) -> Generator[None]:
    """Log an error of the body with this message, and go on after it."""
    try:
        yield
    except Exception:  # whatever it is
        log.exception("%s; the next sweep tries again", message)

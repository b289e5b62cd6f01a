"""What goes wrong with one of many is written down, and stays with that one."""

import logging
from collections.abc import Generator
from contextlib import contextmanager

log = logging.getLogger("segue")


@contextmanager
def noted(what: str) -> Generator[None]:
    """`what` names the one, and what could not be done with it; the others have their turn."""
    try:
        yield
    except Exception:  # whatever it is
        log.exception("%s; the next sweep tries again", what)

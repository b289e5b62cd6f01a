"""Servers that come up at once, and a stage of its own for each test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from segue.testing.nursery import Nursery
from segue.testing.stage import Stage


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery


@pytest.fixture
def set_stage(tmp_path: Path, nursery: Nursery) -> Iterator[Callable[..., Stage]]:
    """Makes stages whose servers come up at once."""
    with ExitStack() as stages:
        number = 0

        def make(*, settings: str = "") -> Stage:
            nonlocal number
            number += 1
            return stages.enter_context(Stage(tmp_path / str(number), settings=settings, start=nursery.start))

        yield make


@pytest.fixture
def stage(set_stage: Callable[..., Stage]) -> Stage:
    return set_stage()

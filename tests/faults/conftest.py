"""Servers that come up at once, a stage of its own for each test, and a count of what was found wrong."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from segue.testing.reckoning import reckon
from segue.testing.stage import Stage
from segue.testing.work import Work
from tests.equipment.fork_server import ForkServer

SHORT_TALKS = "talk_linger = 0.3\n"


class SetStage(Protocol):
    def __call__(self, *, settings: str = "", **variables: str) -> Stage: ...


class CheckAll(Protocol):
    def __call__(self, stage: Stage, *works: Work, after: object = "") -> None: ...


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    with ForkServer() as fork_server:
        yield fork_server


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Path:
    """A database that a server has made and left; a copy of it spares each test that second."""
    with Stage(tmp_path_factory.mktemp("empty"), start=fork_server.start) as stage:
        stage.up()
        stage.down()
        return stage.home / "segue.db"


@pytest.fixture
def set_stage(tmp_path: Path, fork_server: ForkServer, empty_database: Path) -> Iterator[SetStage]:
    """Makes stages whose servers come up at once; a new one takes the place of the one before."""
    with ExitStack() as current:
        number = 0

        def make(*, settings: str = "", **variables: str) -> Stage:
            nonlocal number
            number += 1
            current.close()
            stage = Stage(
                tmp_path / str(number), settings=SHORT_TALKS + settings, variables=variables, start=fork_server.start
            )
            current.enter_context(stage)
            if "SEGUE_DATABASE_URL" not in variables:
                shutil.copy(empty_database, stage.home)
            return stage

        yield make


@pytest.fixture
def stage(set_stage: SetStage) -> Stage:
    return set_stage()


@pytest.fixture
def check(record_property: Callable[[str, object], None]) -> CheckAll:
    """Nothing is lost, nothing was done twice, nobody was left behind; and how often that was looked at is reported."""

    def check(stage: Stage, *works: Work, after: object = "") -> None:
        found = [reckon(stage, work) for work in works]
        record_property("kills", stage.deaths)
        record_property("lost", sum(len(each.lost) for each in found))
        record_property("duplicated", sum(len(each.duplicated) for each in found))
        record_property("orphans", len(stage.orphans))
        assert [fault for each in found for fault in each.faults] == [], f"after {after or stage.deaths}"

    return check

"""The server is killed with SIGKILL at random moments, again and again, in the middle of the same work."""

import os
from collections.abc import Callable
from random import Random
from time import monotonic

import pytest
from plays import Play

from segue.model.views import RecordView
from segue.testing.reckoning import reckon
from segue.testing.stage import Stage

SEED = int(os.environ.get("SEGUE_FAULT_SEED", "2024"))
KILLS = 10
EVENTS_OF_A_LIFE = 45
LONGEST_DELAY = 0.1


class Assassin:
    """Kills the server after the n-th event that is delivered in its life, and a moment."""

    def __init__(self, stage: Stage, seed: int, kills: int) -> None:
        self._stage = stage
        self._random = Random(seed)
        self._left = kills
        self._choose()

    @property
    def done(self) -> bool:
        return self._left == 0

    def __call__(self, _: RecordView) -> None:
        self._events -= 1
        # The rest of a page that came with its last words is no life.
        if self._events <= 0 and not self.done and self._stage.is_up:
            _let_pass(self._random.uniform(0, LONGEST_DELAY))
            self._stage.kill()
            self._left -= 1
            self._choose()

    def _choose(self) -> None:
        self._events = self._random.randint(1, EVENTS_OF_A_LIFE)


def _let_pass(seconds: float) -> None:
    """A moment too short to be slept exactly."""
    end = monotonic() + seconds
    while monotonic() < end:
        pass


def assassinate(stage: Stage, seed: int, kills: int) -> list[Play]:
    """Play one workflow after the other until so many servers were killed, and finish the last one in peace."""
    assassin = Assassin(stage, seed, kills)
    plays: list[Play] = []
    while not assassin.done:
        plays.append(Play(stage))
        plays[-1].work.listener = assassin
        plays[-1].see_through()
    return plays


def check(stage: Stage, seed: int, kills: int) -> None:
    plays = assassinate(stage, seed, kills)
    assert stage.deaths == kills
    for play in plays:
        assert reckon(stage, play.work).faults == [], f"seed {seed}"
        assert play.completed_tasks() == ["one", "two"], f"seed {seed}"


@pytest.mark.parametrize("seed", range(SEED, SEED + 5))
def test_a_workflow_survives_ten_kills_at_random_moments(
    seed: int, stage: Stage, record_property: Callable[[str, object], None]
) -> None:
    check(stage, seed, KILLS)
    record_property("kills", KILLS)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(SEED + 100, SEED + 120))
def test_a_workflow_survives_fifty_kills_at_random_moments(seed: int, stage: Stage) -> None:
    check(stage, seed, 50)

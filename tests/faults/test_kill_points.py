"""The server is killed with SIGKILL at every crash point that a workflow passes."""

import fcntl
import json
import re
from collections import deque
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pytest

import segue
from segue.testing.stage import Stage
from tests.equipment.armed_server import CRASH_AT, CRASH_RECORD, passed
from tests.faults.conftest import CheckAll, SetStage
from tests.faults.plays import FULL, PIECES, Arms, Piece, Play

PARTS = 6
Points = list[tuple[str, str]]
"""The title of a piece, and a crash point that is passed while it is played."""


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A directory that all workers of one test run see."""
    base = tmp_path_factory.getbasetemp()
    return base if worker_id == "master" else base.parent


@pytest.fixture
def points(shared: Path, set_stage: SetStage) -> Points:
    """Every crash point, as found by playing each piece once with nobody dying."""
    file = shared / "crash-points.json"
    with (shared / "crash-points.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            file.write_text(json.dumps(recorded(set_stage)))
    return [(title, point) for title, point in json.loads(file.read_text())]


def recorded(set_stage: SetStage) -> Points:
    points: Points = []
    seen: set[str] = set()
    for title, piece in PIECES.items():
        stage = set_stage()
        record = stage.root / "record"
        stage.up(**piece.variables, **{CRASH_RECORD: str(record)})
        Play(stage, piece).see_through()
        for name, times in passed(record).items():
            if name not in seen:
                # Where every write passes, also one in the middle.
                points += [(title, f"{name}:{time}") for time in ([1, times // 2] if times > 5 else [1])]
        seen |= passed(record).keys()
    return points


def test_the_pieces_pass_every_crash_point_there_is(points: Points) -> None:
    sources = Path(segue.__file__).parent.rglob("*.py")
    written = {name for source in sources for name in re.findall(r'crash_point\("([\w.]+)"\)', source.read_text())}
    steps = {"pause.requested", "resume.after", "prompt.sent.after", "task.complete.after", "run.paused.after"}
    steps |= {"report.asked.after", "report.given.after"}
    steps |= {"plan.proposed.after", "plan.repaired.after", "run.asked.after", "run.handed_over.after"}
    # A fork is another workflow with the same agent, and nobody deletes worktrees in a play: `test_forks.py` and
    # `test_lost_worktrees.py` kill the server there.
    written -= {"fork.copied", "worktree.held"}
    assert written | steps <= {point.partition(":")[0] for _, point in points}


def test_the_story_still_passes_every_crash_point_of_the_list(points: Points) -> None:
    # A name is removed from the list only together with the write that it guarded.
    listed = set((Path(__file__).parent / "crash_points.txt").read_text().split())
    assert sorted(listed - {point.partition(":")[0] for _, point in points}) == []


def die_at_each(stage: Stage, piece: Piece, points: Sequence[str]) -> list[Play]:
    """Play, and let each server die at the next of these points; a workflow that was past it is followed by another."""
    arms: Arms = deque({CRASH_AT: point} for point in points)
    plays: list[Play] = []
    while stage.deaths < len(points):
        deaths = stage.deaths
        plays.append(Play(stage, piece, arms))
        plays[-1].see_through()
        assert stage.deaths > deaths, f"nobody died at {points[deaths]} of {piece.title!r}"
    return plays


@pytest.mark.parametrize("part", range(PARTS))
def test_servers_killed_at_every_crash_point_lose_nothing_and_repeat_nothing(
    part: int, points: Points, set_stage: SetStage, check: CheckAll
) -> None:
    first, last = (len(points) * number // PARTS for number in (part, part + 1))
    for title, of_piece in groupby(points[first:last], key=itemgetter(0)):
        stage, mine = set_stage(), [point for _, point in of_piece]
        plays = die_at_each(stage, PIECES[title], mine)
        check(stage, *(play.work for play in plays), after=(title, mine))
        if PIECES[title].ending == "completed":
            assert [play.completed_tasks() for play in plays] == [["one", "two"]] * len(plays)


def while_taking_over(passed_by: Sequence[str]) -> list[str]:
    """From the hand-over until the next session's agent has its first prompt, each point once."""
    first = passed_by.index("run.handed_over.before")
    last = passed_by.index("prompt.acknowledged", first)
    names = dict.fromkeys(passed_by[first : last + 1])
    return [f"{name}:{passed_by[:first].count(name) + 1}" for name in names]


def test_servers_killed_while_a_next_session_takes_over_bring_that_one_back(
    set_stage: SetStage, check: CheckAll
) -> None:
    stage, plays = set_stage(), list[Play]()
    record = stage.root / "record"
    stage.up(**{CRASH_RECORD: str(record)})
    Play(stage, FULL).see_through()
    points = while_taking_over(record.read_text().split())
    assert {"run.handed_over.after:1", "run.claimed:2", "session.ready.before:2"} <= set(points)
    for point in points:
        stage.down()
        plays.append(Play(stage, FULL, deque([{CRASH_AT: point}])))
        plays[-1].see_through()
        assert stage.deaths == len(plays), f"nobody died at {point}"
        assert plays[-1].work.view.sessions == 2, f"after {point}"
        assert plays[-1].completed_tasks() == ["one", "two"]
    check(stage, *(play.work for play in plays), after=points)

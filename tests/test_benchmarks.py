"""The arithmetic of the benchmarks. How fast anything is, no test says."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from benchmarks import disk, live, replay, report, resumes, slices
from benchmarks.disk import Mode, Slice, Work
from benchmarks.figures import growth, percentile, slope
from benchmarks.report import BEGIN, END, put_into
from benchmarks.resumes import PHASES, taken_apart
from benchmarks.slices import interleave, kept, latencies, rates
from benchmarks.traced import GIT, GIT_END, Mark

FAST, SLOW, BETWEEN = 7_000.0, 250.0, 1_000.0


def taken(variant: str, rate: int, before: float = FAST, after: float = FAST) -> Slice:
    work = Work(count=rate, seconds=1.0, cpu=0.5, latencies=[1.0 / rate])
    return Slice(variant=variant, before=before, after=after, work=work)


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.0, 1)])
def test_a_percentile_is_a_value_that_was_seen(share: float, expected: int) -> None:
    assert percentile(list(range(100, 0, -1)), share) == expected


def test_one_value_is_every_percentile() -> None:
    assert percentile([3.0], 0.5) == percentile([3.0], 0.99) == 3.0


def test_a_straight_line_grows_the_same_in_both_halves() -> None:
    assert slope([10, 12, 14, 16]) == pytest.approx(2)
    assert growth([100 + 7 * n for n in range(51)]) == pytest.approx({"first_half": 7, "second_half": 7, "ratio": 1})


def test_a_square_does_not() -> None:
    assert growth([n * n for n in range(50)])["ratio"] > 2.5


@pytest.mark.parametrize(
    ("before", "after", "mode"),
    [
        (FAST, FAST, Mode.FAST),
        (SLOW, SLOW, Mode.SLOW),
        (FAST, SLOW, None),
        (SLOW, FAST, None),
        (BETWEEN, BETWEEN, None),
    ],
)
def test_a_slice_counts_only_when_the_disk_kept_its_mode(before: float, after: float, mode: Mode | None) -> None:
    assert taken("any", 1, before, after).mode is mode


def test_rates_are_medians_of_what_was_kept_and_ratios_stay_within_a_mode() -> None:
    all_slices = [
        *(taken("ours", rate) for rate in (100, 400, 500)),
        taken("ours", 1_000_000, FAST, SLOW),
        *(taken("ours", 30, SLOW, SLOW) for _ in range(3)),
        *(taken("raw", rate) for rate in (700, 800, 900)),
    ]
    figures = rates(all_slices, "ours", raw="raw")
    assert figures["fast"]["per_second"] == 400
    assert figures["fast"]["of_raw"] == pytest.approx(0.5)
    assert figures["fast"]["slices"] == 3
    assert figures["slow"]["of_raw"] is None


def test_a_mode_that_hardly_came_up_has_no_figures() -> None:
    few = [*(taken("ours", 5) for _ in range(3)), *(taken("ours", 5, SLOW, SLOW) for _ in range(2))]
    assert rates(few, "ours")["slow"] is latencies(few, "ours")["slow"] is None
    assert latencies(few, "ours")["fast"]["events"] == 3


@pytest.mark.anyio
async def test_variants_take_turns_until_there_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter(([FAST] * 4 + [SLOW] * 4) * slices.ENOUGH * 4)
    monkeypatch.setattr(slices, "look", lambda _: next(looks))
    turns: list[str] = []

    def work(name: str) -> Callable[[], Awaitable[Work]]:
        async def done() -> Work:
            turns.append(name)
            return Work(count=1, seconds=1.0, cpu=1.0)

        return done

    found = await interleave(tmp_path, {"ours": work("ours"), "raw": work("raw")}, within=60)
    assert turns == ["ours", "raw"] * (len(turns) // 2)
    assert all(len(kept(found, name, mode)) >= slices.ENOUGH for name in ("ours", "raw") for mode in Mode)
    assert len(found) == len(turns)


def test_looking_at_the_disk_gives_a_rate(tmp_path: Path) -> None:
    assert disk.look(tmp_path) > 0


def test_figures_are_put_between_their_marks_and_nowhere_else() -> None:
    machine = {"cores": 2, "system": "s", "python": "p", "sqlite": "q", "load_before": 0.0, "load_after": 0.0}
    document = {"taken_at": "today", "machine": machine}
    page = put_into(f"before\n{BEGIN}\nold\n{END}\nafter\n", document)
    assert page.startswith(f"before\n{BEGIN}\n")
    assert page.endswith(f"{END}\nafter\n")
    assert "old" not in page
    assert put_into(page, document) == page
    with pytest.raises(ValueError, match="no place"):
        put_into("a page without marks", document)


# ── agents ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_resume_is_taken_apart_at_its_marks_up_to_the_first_that_says_ready() -> None:
    names = ["prompt.before", GIT, GIT_END, *PHASES, "turn.start.before", *PHASES]
    phases, git = taken_apart(10.0, [Mark(11.0 + at, name) for at, name in enumerate(names)])
    assert phases == {name: 4.0 if name == "request" else 1.0 for name in PHASES.values()}
    assert {name: calls for name, calls in git.items() if calls} == {"request": [1.0]}


def test_a_resume_without_one_of_its_marks_is_not_measured() -> None:
    with pytest.raises(AssertionError, match="another way"):
        taken_apart(0.0, [Mark(1.0, name) for name in PHASES if name != "run.claimed"])


@pytest.mark.anyio
async def test_segues_share_of_a_resume_can_be_measured(tmp_path: Path) -> None:
    figures = await resumes.measure(tmp_path, times=1, warm=0)
    assert figures["count"] == 1
    assert figures["phases"]["worktree_and_look_back"]["git_calls"] > 0
    assert report.resume(figures).rows


@pytest.mark.anyio
async def test_the_memory_of_a_live_session_can_be_measured(tmp_path: Path) -> None:
    figures = await live.measure(tmp_path, counts=(0, 1), settle=0.0)
    assert [memory["sessions"] for memory in figures["at"]] == [0, 1]
    assert report.live_session(figures).rows


@pytest.mark.anyio
async def test_a_replay_gives_no_event_and_the_turn_after_it_gives_each_once(tmp_path: Path) -> None:
    figures = await replay.measure(tmp_path, updates=50, times=1)
    assert figures["given"] == 0
    assert figures["turn_once"]
    assert report.replay(figures).rows

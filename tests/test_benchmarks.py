"""The arithmetic of the benchmarks. How fast anything is, no test says."""

import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import (
    capacity,
    checkpoint,
    context,
    context_speed,
    crowd,
    data,
    disk,
    live,
    recall,
    replay,
    report,
    resumes,
    sample_sessions,
    slices,
    tasks,
)
from benchmarks.disk import Mode, Slice, SliceWork
from benchmarks.figures import growth, percentile, slope
from benchmarks.report import BEGIN, END, put_into
from benchmarks.resumes import PHASES, taken_apart
from benchmarks.slices import interleave, kept, latencies, rates
from benchmarks.traced import GIT, GIT_END, Mark
from segue.contextfile import facts_of_file
from segue.testing.rehearsal.diary import DiaryEntry

FAST, SLOW, BETWEEN = 7_000.0, 250.0, 1_000.0


def taken(variant: str, rate: int, before: float = FAST, after: float = FAST) -> Slice:
    work = SliceWork(count=rate, seconds=1.0, cpu=0.5, latencies=[1.0 / rate])
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

    def work(name: str) -> Callable[[], Awaitable[SliceWork]]:
        async def done() -> SliceWork:
            turns.append(name)
            return SliceWork(count=1, seconds=1.0, cpu=1.0)

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


@pytest.mark.anyio
async def test_the_overhead_of_tasks_can_be_measured(tmp_path: Path) -> None:
    figures = await tasks.measure(tmp_path, tasks=4, looks=(1, 3))
    assert figures["overhead"]["count"] == 3
    assert [memory["tasks"] for memory in figures["memory"]] == [1, 3]
    assert report.tasks(figures).rows


def test_a_wait_is_from_the_end_of_a_turn_to_the_next_prompt() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    kinds = ["started", "prompt", "effect", "ended", "prompt", "ended", "prompt"]
    diary = [DiaryEntry(kind=kind, at=begin + timedelta(seconds=2**n), details={}) for n, kind in enumerate(kinds)]
    assert tasks.waits_in(diary) == [8.0, 32.0]


@pytest.mark.anyio
async def test_a_crowd_can_be_measured_and_nobody_is_left_out(tmp_path: Path) -> None:
    figures = await crowd.measure(tmp_path, workflows=3, at_once=1)
    assert (figures["finished"], figures["most_at_once"]) == (3, 1)
    assert report.crowd(figures).rows


def test_who_overtakes_others_in_the_line_is_seen() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    hours = [(0, 1, 2), (0.1, 5, 6), (0.2, 2, 3), (0.3, 3, 4)]
    figures = crowd.line_of([crowd.StartOrder(*(begin + timedelta(hours=hour) for hour in each)) for each in hours])
    assert (figures["moved"], figures["most_at_once"]) == (2, 1)
    assert figures["wait_s"]["longest"] == pytest.approx(4.9 * 3600)


@pytest.mark.anyio
async def test_the_decision_on_a_report_of_usage_can_be_measured(tmp_path: Path) -> None:
    figures = await capacity.measure(tmp_path, reports=20)
    assert figures["rungs"] == 4
    assert report.capacity(figures).rows


# ── contexts and checkpoints ────────────────────────────────────────────────────────────────────────

RETENTION = """tokenizer o200k_base; sessions 39; failed calls 1; over budget 2; mean 2824 ms a call

### STATE recall %
| system | 4k | 1k |
|---|---:|---:|
| this | 95.5 | 85.0 |

### FUTURE recall %
| system | 4k | 1k |
|---|---:|---:|
| this | 80.0 | 62.5 |

### FUTURE_OLD recall %
| system | 4k | 1k |
|---|---:|---:|
| this | 65.0 | nan |

### FUTURE_GROUNDED recall %
| system | 4k | 1k |
|---|---:|---:|
| this | 70.0 | 52.0 |
failed: some-session what it said
"""


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(data.VARIABLE, raising=False)


def scorer(folder: Path, name: str, program: str) -> Path:
    """A data folder with a scorer of our own, run by the Python of these tests."""
    (folder / "venv/bin").mkdir(parents=True)
    (folder / "venv/bin/python").symlink_to(sys.executable)
    (folder / "transcripts").mkdir()
    (folder / name).write_text(program)
    return folder


@pytest.mark.parametrize("agent", sample_sessions.FORMATS)
def test_a_made_up_session_is_as_large_as_asked_and_the_same_every_time(tmp_path: Path, agent: str) -> None:
    first, second = (sample_sessions.written(tmp_path, 100_000, agent, name) for name in ("first", "second"))
    assert 100_000 <= first.stat().st_size < 150_000
    assert first.read_bytes() == second.read_bytes()
    assert facts_of_file(first).unread_lines == 0


def test_both_agents_tell_the_same_work(tmp_path: Path) -> None:
    claude, codex = (
        facts_of_file(sample_sessions.written(tmp_path, 1, agent, agent)) for agent in sample_sessions.FORMATS
    )
    assert claude.request
    assert codex.request
    assert (claude.request.text, claude.todos) == (codex.request.text, codex.todos)
    assert {file.path for file in claude.files} == {file.path for file in codex.files}
    assert [commit.hash for commit in claude.commits] == [commit.hash for commit in codex.commits] == ["1a2b3c4"]


def test_the_scores_of_recorded_sessions_are_read_from_what_the_scorer_prints() -> None:
    scores = context.read_scores(RETENTION)
    assert scores["4000"] == {"state": 95.5, "future": 80.0, "old": 65.0, "grounded": 70.0}
    assert scores["1000"]["state"] == 85.0
    assert (scores["sessions"], scores["failed"], scores["over_budget"], scores["call_ms"]) == (39, 1, 2, 2824)
    with pytest.raises(ValueError, match="something else"):
        context.read_scores("nothing of the kind")


def test_the_scorer_is_asked_about_our_own_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = f"import sys\nassert 'segue context {{file}} --budget {{budget}}' in sys.argv[2]\nprint({RETENTION!r})"
    monkeypatch.setenv(data.VARIABLE, str(scorer(tmp_path, "retention_cli.py", program)))
    assert context.recorded()["4000"]["state"] == 95.5


def test_a_scorer_that_fails_is_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(data.VARIABLE, str(scorer(tmp_path, "retention_cli.py", "raise SystemExit('no numpy here')")))
    with pytest.raises(RuntimeError, match="no numpy here"):
        context.recorded()


def test_what_is_missing_in_the_data_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    (tmp_path / "retention_cli.py").touch()
    (tmp_path / "transcripts").mkdir()
    assert data.or_why_not(context.recorded)["not_measured"].startswith("SEGUE_BENCH_DATA has no venv/bin/python")


@pytest.mark.anyio
async def test_without_the_data_folder_the_table_says_that_it_was_not_measured(tmp_path: Path, no_data: None) -> None:
    figures = await context.measure(tmp_path, size=60_000)
    rows = {row[0]: row[1] for row in report.context(figures).rows}
    assert rows["recorded sessions, FUTURE: what its real continuation used"] == (
        "not measured: SEGUE_BENCH_DATA was not set"
    )
    assert all(0 < session["4000"]["score"] <= 100 for session in figures["synthetic"].values())


@pytest.mark.anyio
async def test_the_time_of_a_context_can_be_measured(tmp_path: Path) -> None:
    figures = await context_speed.measure(tmp_path, size=50_000, times=1, live=1)
    assert figures["files"][1]["bytes"] > figures["files"][0]["bytes"] >= 50_000
    assert report.context_speed(figures).rows


@pytest.mark.anyio
async def test_a_checkpoint_can_be_measured(tmp_path: Path) -> None:
    figures = await checkpoint.measure(tmp_path, files=60, times=1)
    assert figures["warm"]["count"] == 1
    assert report.checkpoint(figures).rows


# ── recall ──────────────────────────────────────────────────────────────────────────────────────────

RECALL = """LoCoMo recall @5 @10 @25 @50: 61.3 71.0 80.1 84.9 | p50 1.6 ms | paper's best 56.7 66.2 76.7 82.7
code, user: hit @1 @10: 36.3 71.3 (n=171)
code, todo: hit @1 @10: 19.6 73.9 (n=46)
code, commit: hit @1 @10: 23.9 78.3 (n=46)
code, symbol: hit @1 @10: 45.5 96.7 (n=121)
code p50 8.1 ms
"""


def test_the_scores_of_recall_are_read_from_what_the_scorer_prints() -> None:
    scores = recall.read_scores(RECALL)
    assert scores["locomo"] == {"at_10": 71.0, "p50_ms": 1.6}
    assert scores["code"]["symbol"] == {"at_1": 45.5, "at_10": 96.7, "count": 121}
    assert scores["code_p50_ms"] == 8.1
    with pytest.raises(ValueError, match="something else"):
        recall.read_scores(RECALL.replace("code, todo", "code, other"))


def test_recall_is_scored_beside_its_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    better = RECALL.replace("71.0", "75.0")
    program = f"import sys\nprint({better!r} if '--plugin' in sys.argv else {RECALL!r})"
    for name in ("recall-code.json.xz", "locomo"):
        (tmp_path / name).touch()
    monkeypatch.setenv(data.VARIABLE, str(scorer(tmp_path, "recall.py", program)))
    synthetic = {"turns": 5, "count": 2, "min_ms": 1.0, "median_ms": 2.0}
    rows = report.recall({"synthetic": synthetic, "recorded": data.or_why_not(recall.recorded)}).rows
    assert (rows[1][1:], rows[2][1]) == (("75.0 (p50 1.6 ms)", "71.0 (p50 1.6 ms)"), "36.3, 71.3 (of 171)")


def test_a_search_over_made_up_turns_is_timed(monkeypatch: pytest.MonkeyPatch, no_data: None) -> None:
    asked: list[str] = []

    def build(turns: list[str]) -> recall.Search:
        def search(question: str, best: int) -> list[int]:
            asked.append(question)
            return list(range(len(turns)))[:best]

        return search

    plugin = ModuleType("a_plugin")
    plugin.build = build  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "a_plugin", plugin)
    monkeypatch.setattr(recall, "PLUGIN", "a_plugin:build")
    figures = {"synthetic": recall.made_up(30, 4), "recorded": data.or_why_not(recall.recorded)}
    assert len(set(asked)) > 1
    assert figures["synthetic"]["count"] == len(asked) == 4
    assert report.recall(figures).rows[1][1] == "not measured: SEGUE_BENCH_DATA was not set"

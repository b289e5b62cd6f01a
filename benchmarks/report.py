"""The figures as tables: one for the terminal, one for the page of the documentation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from benchmarks.disk import Mode

Figures = Mapping[str, Any]
Row = tuple[str, ...]

BEGIN = "<!-- figures: written by `python -m benchmarks --page` -->"
END = "<!-- end of figures -->"


@dataclass(frozen=True, slots=True)
class Table:
    """Table of figures, as text."""

    title: str
    heads: Row
    rows: Sequence[Row]


# ── what is shown of each measurement ───────────────────────────────────────────────────────────────


def appends(figures: Figures) -> Table:
    """Show the durable appends."""
    names = {
        "ten_workflows": "10 writers, each in a workflow of its own",
        "fifty_workflows": "50 writers, each in a workflow of its own",
        "one_workflow": "50 writers in one workflow",
    }
    rows: list[Row] = []
    for name, label in names.items():
        rows.append((label, *(_rate(figures[name][mode]) for mode in Mode)))
        rows.append(("– SQLite alone, the same rows", *(_rate(figures[f"raw_{name}"][mode]) for mode in Mode)))
    rows.append(("SQLite alone, 50 lines of a plain log", *(_rate(figures["raw_plain_log"][mode]) for mode in Mode)))
    return Table("Durable appends per second, events of about 1 KB", ("", "fast disk", "slow disk"), rows)


def _rate(figures: Figures | None) -> str:
    if figures is None:
        return "not seen"
    share = "" if figures["of_raw"] is None else f" = {figures['of_raw']:.2f} of raw"
    details = f"groups of {figures['group']:.0f}, {figures['cpu_us']:.0f} µs CPU, {figures['slices']} slices"
    return f"{figures['per_second']:,.0f}{share} ({details})"


def one_event(figures: Figures) -> Table:
    names = {"one_event": "journal", "raw_commit": "SQLite alone, one row", "raw_file": "a plain file, one line"}
    rows = [(label, *(_latency(figures[name][mode]) for mode in Mode)) for name, label in names.items()]
    return Table("One event by one writer, milliseconds until it is on disk", ("", "fast disk", "slow disk"), rows)


def _latency(figures: Figures | None) -> str:
    if figures is None:
        return "not seen"
    shares = [figures["p50_of_raw"], figures["p99_of_raw"]]
    p50, p99 = ("" if share is None else f" = {share:.2f} × raw" for share in shares)
    return f"p50 {figures['p50_ms']:.2f}{p50}, p99 {figures['p99_ms']:.2f}{p99} ({figures['events']} events)"


def recovery(figures: Figures) -> Table:
    """Show the recovery."""
    fresh, again = figures["fresh_process"], figures["fresh_journal"]
    started = f"imports {fresh['import_ms']:.0f}, opening {fresh['open_ms']:.0f}, reading and folding "
    rows = [
        ("fresh journal, warm process", *_spread(again), f"opening {again['open_ms']:.0f}, {_state(again)}"),
        ("fresh process", *_spread(fresh), f"{started}{fresh['state_ms']:.0f}"),
        ("the fold alone", *_spread(figures["fold_alone"]), ""),
        ("SQLite alone: the rows, parsed as JSON", *_spread(figures["raw_rows_and_json"]), ""),
    ]
    title = f"Recovery of a workflow with {figures['events']:,} events, milliseconds"
    return Table(title, ("", "min", "median", "of which (medians)"), rows)


def _state(figures: Figures) -> str:
    return f"reading and folding {figures['state_ms']:.0f}"


def cycles(figures: Figures) -> Table:
    """Show the growth over pauses."""
    slopes, events, content = figures["bytes_per_cycle"], figures["events_per_cycle"], figures["content_per_cycle"]
    rows = [
        ("growth in the first half", f"{slopes['first_half'] / 1024:.1f} KB per cycle"),
        ("growth in the second half", f"{slopes['second_half'] / 1024:.1f} KB per cycle"),
        ("second half to first half", f"{slopes['ratio']:.3f}"),
        ("events per cycle", f"{events['min']} to {events['max']}"),
        ("bodies of events, per cycle", f"{content['events'] / 1024:.1f} KB"),
        ("documents of checkpoints, per cycle", f"{content['checkpoints'] / 1024:.1f} KB"),
        ("time of a cycle, first ten", f"{figures['cycle_ms']['first_ten']:.0f} ms"),
        ("time of a cycle, last ten", f"{figures['cycle_ms']['last_ten']:.0f} ms"),
        ("hash chain afterwards", "verified" if figures["verified"] else "BROKEN"),
    ]
    return Table(f"The database over {figures['cycles']} pauses and resumes", ("", ""), rows)


def doors(figures: Figures) -> Table:
    server, guardian = figures["server_memory"], figures["guardian_memory"]
    rows = [
        ("`segue status`, server up", _times(figures["status"])),
        ("`python -c pass`", _times(figures["bare_python"])),
        ("server started, until it serves", f"{figures['server_start_ms']:.0f} ms"),
        ("memory of the idle server", _memory(server)),
        ("memory of one agent's guardian pair", _memory(guardian)),
    ]
    return Table("At rest", ("", ""), rows)


def resume(figures: Figures) -> Table:
    """Show the resume and its phases."""
    aim = f"the aim of {figures['aim_ms']:.0f} is {'reached' if figures['reached'] else 'missed'}"
    rows = [
        ("the whole resume", _percentiles(figures["whole"])),
        ("the agent's own start, without Segue", _percentiles(figures["bare_agent"])),
        ("Segue's share: the difference", f"{_share(figures['share'])}; {aim}"),
        ("Segue alone, before and after the agent's start", _percentiles(figures["around_the_agent"])),
        *((f"– {PHASES[name]}", _phase(phase)) for name, phase in figures["phases"].items() if name in PHASES),
        ("`git rev-parse HEAD`, alone", _percentiles(figures["ground"]["git"])),
        ("`python -I -S -c pass`, alone", _percentiles(figures["ground"]["python"])),
    ]
    return Table(f"Resume, milliseconds of {figures['count']}", ("", ""), rows)


PHASES: Mapping[str, str] = {
    "request": "the request, up to the transaction",
    "transaction": "the transaction that queues the run",
    "queue_and_claim": "the engine's queue, and the claim",
    "worktree_and_look_back": "the worktree, and what changed in it",
    "guardian": "the guardians, until they have started the agent",
    "ready_written": "the step that writes `waiting_for_input`",
}


def _percentiles(figures: Figures) -> str:
    return f"min {figures['min_ms']:.0f}, p50 {figures['p50_ms']:.0f}, p95 {figures['p95_ms']:.0f}"


def _share(figures: Figures) -> str:
    """Format a share without its minimum, which only shows that the agent alone was slower by chance."""
    return f"p50 {figures['p50_ms']:.0f}, p95 {figures['p95_ms']:.0f}"


def _phase(figures: Figures) -> str:
    git = (
        f", of which {figures['git_ms']:.0f} in {figures['git_calls']:.0f} calls of git" if figures["git_calls"] else ""
    )
    return f"min {figures['min_ms']:.0f}, median {figures['median_ms']:.0f}{git}"


def live_session(figures: Figures) -> Table:
    rows = [
        (f"server with {memory['sessions']} live sessions", _memory(memory) + _own(memory["own_mb"]))
        for memory in figures["at"]
    ]
    pss, own = figures["pss_mb_per_session"], figures["own_mb_per_session"]
    if pss is not None and own is not None:
        rows.append(("each session more", f"PSS {pss * 1024:.0f} KB, its own {own * 1024:.0f} KB"))
    return Table("Memory of the server, by live sessions", ("", ""), rows)


def _own(megabytes: float | None) -> str:
    return "" if megabytes is None else f", its own {megabytes:.1f} MB"


def tasks(figures: Figures) -> Table:
    """Show the overhead per task."""
    aim = f"the aim of {figures['aim_ms']:.0f} is {'reached' if figures['reached'] else 'missed'}"
    in_fsyncs = figures["overhead"]["p50_ms"] / figures["fsync_ms"]
    rows = [
        ("from the end of a turn to the next prompt", f"{_percentiles(figures['overhead'])} ms; {aim}"),
        ("– the first quarter of the plan", f"{_percentiles(figures['first'])} ms"),
        ("– the last quarter of the plan", f"{_percentiles(figures['last'])} ms"),
        ("one raw fsync, in the same run", f"{figures['fsync_ms']:.2f} ms: the p50 is {in_fsyncs:.0f} of them"),
        ("`git rev-parse HEAD`, in the same run", f"{figures['git_ms']:.0f} ms"),
        ("events per task", f"{figures['events'] / figures['tasks']:.0f}"),
        *(
            (f"processor time per task, tasks {before['tasks'] + 1} to {after['tasks']}", _cpu(milliseconds))
            for (before, after), milliseconds in zip(
                pairwise(figures["memory"]), figures["cpu_ms_per_task"], strict=True
            )
        ),
        *(
            (f"server after {memory['tasks']} tasks", _memory(memory) + _own(memory["own_mb"]))
            for memory in figures["memory"]
        ),
    ]
    return Table(f"A plan of {figures['tasks']} tasks: Segue's overhead for each", ("", ""), rows)


def _cpu(milliseconds: float | None) -> str:
    return "unknown on this system" if milliseconds is None else f"{milliseconds:.0f} ms, git's included"


def crowd(figures: Figures) -> Table:
    """Show the waiting of many workflows."""
    wait = figures["wait_s"]
    rows = [
        ("finished", f"{figures['finished']} of {figures['workflows']}, in {figures['seconds']:.0f} s"),
        ("asked for within", f"{figures['asked_s']:.1f} s"),
        ("most agents at the same time", f"{figures['most_at_once']}"),
        ("wait for a place", f"mean {wait['mean']:.1f} s, longest {wait['longest']:.1f} s"),
        ("places by which anybody was moved in the line, at most", f"{figures['moved']}"),
    ]
    title = f"{figures['workflows']} workflows at once on a server that runs {figures['at_once']} agents"
    return Table(title, ("", ""), rows)


def capacity(figures: Figures) -> Table:
    aim = f"the aim of {figures['aim_ms']:.0f} ms is {'reached' if figures['reached'] else 'missed'}"
    rows = [
        ("the decision", f"{_microseconds(figures['decision_us'])}; {aim}"),
        ("the report, written down", _microseconds(figures["written_us"])),
        ("rungs reached on the way", f"{figures['rungs']}"),
    ]
    return Table(f"Capacity, for each of {figures['reports']:,} reports of usage", ("", ""), rows)


def _microseconds(figures: Figures) -> str:
    return f"p50 {figures['p50']:.0f} µs, p99 {figures['p99']:.0f} µs"


def replay(figures: Figures) -> Table:
    """Show the replay."""
    driver, bare = figures["driver"], figures["bare"]
    share = driver["per_second"] / bare["per_second"]
    rows = [
        ("through the driver", f"{_updates(driver)} = {share:.2f} of the lines alone"),
        ("the lines alone, parsed as JSON", _updates(bare)),
        ("events given out by the replay", f"{figures['given']}"),
        ("events of the turn after it", "each once" if figures["turn_once"] else "WRONG"),
    ]
    size = f"{figures['bytes'] / 1024 / 1024:.1f} MB"
    return Table(f"A replay of {figures['updates']:,} updates ({size}), median of {figures['count']}", ("", ""), rows)


def _updates(figures: Figures) -> str:
    return f"{figures['per_second']:,.0f} per second ({figures['cpu_us']:.0f} µs CPU each)"


def context(figures: Figures) -> Table:
    """Show the exam's scores of contexts."""
    rows = [
        (
            f"{agent}, made up, {session['bytes'] / 1000:.0f} KB: the exam",
            *(_exam(session[b]) for b in ("4000", "1000")),
        )
        for agent, session in figures["synthetic"].items()
    ]
    return Table(
        "What a context keeps, in percent",
        ("", "4,000 tokens", "1,000 tokens"),
        [*rows, *_recorded(figures["recorded"])],
    )


def _exam(figures: Figures) -> str:
    return f"{figures['score']:.0f} ({figures['tokens']:,} tokens)"


RETENTION: Mapping[str, str] = {
    "state": "STATE: what the session had established",
    "future": "FUTURE: what its real continuation used",
    "old": "OLD: of that, what had not been seen lately",
    "grounded": "GROUNDED: with the words that explain it",
}


def _recorded(figures: Figures) -> list[Row]:
    if why := figures.get("not_measured"):
        return [(f"recorded sessions, {label}", *[_not_measured(why)] * 2) for label in RETENTION.values()]
    rows = [
        (f"recorded sessions, {label}", *(f"{figures[budget][name]:.1f}" for budget in ("4000", "1000")))
        for name, label in RETENTION.items()
    ]
    calls = f"{figures['sessions']} sessions, {figures['failed']} calls failed, {figures['over_budget']} over budget"
    return [*rows, ("– its calls of `segue context`", calls, f"{figures['call_ms']} ms each")]


def _not_measured(why: str) -> str:
    return f"not measured: {why}"


def context_speed(figures: Figures) -> Table:
    once, twice = figures["files"]
    rows = [
        *((f"file of {_megabytes(file)}, in a warm process", _times(file["in_process"])) for file in (once, twice)),
        *((f"file of {_megabytes(file)}, `segue context`", _times(file["command"])) for file in (once, twice)),
        ("twice the size", f"{_grown(once, twice):.2f} times the time, in a warm process"),
        ("facts already collected, the compiler and the exam alone", _times(figures["compile"])),
    ]
    return Table("From a session file to its context of 4,000 tokens", ("", ""), rows)


def _megabytes(file: Figures) -> str:
    return f"{file['bytes'] / 1024 / 1024:.1f} MB"


def _grown(once: Figures, twice: Figures) -> float:
    return twice["in_process"]["median_ms"] / once["in_process"]["median_ms"]


def checkpoint(figures: Figures) -> Table:
    aim = f"the aim of {figures['aim_ms']:.0f} ms is {'reached' if figures['reached'] else 'missed'}"
    rows = [
        ("the first, in a worktree just made", f"{figures['first_ms']:.0f} ms"),
        ("each after it", f"{_times(figures['warm'])}; {aim}"),
        ("`git status`, alone", _times(figures["git_status"])),
    ]
    return Table(f"A checkpoint of a worktree with {figures['files']:,} files", ("", ""), rows)


def recall(figures: Figures) -> Table:
    made_up = figures["synthetic"]
    searches = f"{made_up['count']} searches over {made_up['turns']:,} made-up turns"
    time = f"min {made_up['min_ms']:.1f} ms, median {made_up['median_ms']:.1f} ms"
    return Table("Recall", ("", "Segue", "the baseline"), [(searches, time, ""), *_found(figures["recorded"])])


KINDS: Mapping[str, str] = {
    "user": "code, by what the user said",
    "todo": "code, by an entry of a to-do list",
    "commit": "code, by a commit's subject",
    "symbol": "code, by a name",
}


def _found(figures: Figures) -> list[Row]:
    if why := figures.get("not_measured"):
        return [(label, *[_not_measured(why)] * 2) for label in ("LoCoMo", *KINDS.values())]
    both = (figures["ours"], figures["baseline"])
    return [
        ("LoCoMo, percent of the evidence among the first 10", *(_locomo(each["locomo"]) for each in both)),
        *(
            (f"{label}, percent found first, among the first 10", *(_hits(each["code"][kind]) for each in both))
            for kind, label in KINDS.items()
        ),
        ("code, all kinds", *(f"p50 {each['code_p50_ms']:.1f} ms" for each in both)),
    ]


def _locomo(figures: Figures) -> str:
    return f"{figures['at_10']:.1f} (p50 {figures['p50_ms']:.1f} ms)"


def _hits(figures: Figures) -> str:
    return f"{figures['at_1']:.1f}, {figures['at_10']:.1f} (of {figures['count']})"


def _spread(figures: Figures) -> tuple[str, str]:
    return f"{figures['min_ms']:.0f}", f"{figures['median_ms']:.0f}"


def _times(figures: Figures) -> str:
    return f"min {figures['min_ms']:.0f} ms, median {figures['median_ms']:.0f} ms of {figures['count']}"


def _memory(figures: Figures) -> str:
    if figures["pss_mb"] is None:
        return "unknown on this system"
    return f"PSS {figures['pss_mb']:.1f} MB, RSS {figures['rss_mb']:.1f} MB"


TABLES: Mapping[str, Callable[[Figures], Table]] = {
    "appends": appends,
    "one_event": one_event,
    "recovery": recovery,
    "cycles": cycles,
    "doors": doors,
    "resume": resume,
    "live_session": live_session,
    "tasks": tasks,
    "crowd": crowd,
    "capacity": capacity,
    "replay": replay,
    "context": context,
    "context_speed": context_speed,
    "checkpoint": checkpoint,
    "recall": recall,
}


# ── the two forms ───────────────────────────────────────────────────────────────────────────────────


def tables(document: Figures) -> list[Table]:
    """Select the measurements that have figures."""
    return [make(document[name]) for name, make in TABLES.items() if "error" not in document.get(name, {"error": ""})]


def circumstances(document: Figures) -> str:
    machine = document["machine"]
    loads = ", ".join(f"{load:.1f}" for load in (machine["load_before"], machine["load_after"]))
    return (
        f"Taken on {document['taken_at']}: {machine['cores']} cores, {machine['system']}, Python {machine['python']}, "
        f"SQLite {machine['sqlite']}; load before and after: {loads}."
    )


def as_text(document: Figures) -> str:
    parts = [circumstances(document)]
    for table in tables(document):
        rows = [row for row in (table.heads, *table.rows) if any(row)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(table.heads))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        parts.append("\n".join([table.title, *(f"  {line}".rstrip() for line in lines)]))
    return "\n\n".join(parts) + "\n"


def as_markdown(document: Figures) -> str:
    parts = [circumstances(document)]
    for table in tables(document):
        lines = [table.heads, tuple("---" for _ in table.heads), *table.rows]
        parts.append("\n".join([f"**{table.title}**", "", *(f"| {' | '.join(cells)} |" for cells in lines)]))
    return "\n\n".join(parts) + "\n"


def put_into(page: str, document: Figures) -> str:
    """Replace the figures of the page."""
    before, found, rest = page.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise ValueError("the page has no place for figures")
    return f"{before}{BEGIN}\n\n{as_markdown(document)}\n{END}{after}"

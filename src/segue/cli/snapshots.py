"""`segue snapshots`: the snapshots of a workflow, one for each stop."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import click

from segue import client
from segue.cli import find, words
from segue.cli.command import chosen, in_group
from segue.cli.output import Output, beside, block, counted, moment, plain, table
from segue.model.errors import CheckpointNotFound

Fields = Mapping[str, Any]
MARKS = {"completed": "✓", "skipped": "✓", "in_progress": "▶", "failed": "✗"}
SHOWN = 10
"""Files, tests, decisions or errors on the page; `--part` has them all."""
OF = click.option("-w", "--workflow-id", help="The workflow, by id or slug (default: the current directory's).")


@click.group()
def snapshots() -> None:
    """Look at the snapshots of a workflow, one for each stop."""


command = in_group(snapshots)


@command
@chosen
def list_(out: Output, workflow: str | None) -> None:
    """List the snapshots of a workflow, the first one first."""
    view = find.latest(workflow)
    document = client.call("GET", f"/api/workflows/{view['id']}/snapshots")
    out.result(document)
    if not document["snapshots"]:
        out.say(f"{view['slug']} has no snapshot yet; a pause makes one: segue pause {view['slug']}")
        return
    head = ("snapshot", "session", "trigger", "taken", "done", "left", "exam", "boundary")
    rows = [_row(each) for each in reversed(document["snapshots"])]
    for line in table([head, *rows], right=(1, 4, 5, 6)):
        out.say(line)


def _row(each: Fields) -> tuple[str, ...]:
    """Return a snapshot as a row of the list."""
    return (
        each["id"],
        str(each["session_number"]),
        each["trigger"].replace("_", " "),
        moment(each["created_at"]),
        str(each["tasks_completed"]),
        str(each["tasks_remaining"]),
        "-" if each["exam"] is None else f"{each['exam']:.0%}",
        "clean" if each["clean_boundary"] else "torn",
    )


# ── one ─────────────────────────────────────────────────────────────────────────────────────────────


@command
@click.argument("name", metavar="[ID]", default="latest")
@click.option("--part", help="One part in full: decisions, errors, git-changes, reviewer-feedback, tests or messages.")
@OF
def show(out: Output, name: str, part: str | None, workflow_id: str | None) -> None:
    """Show a snapshot: the reason for the stop, and the state of the work.

    ID may be short (003 for ckpt-…-003), latest or previous; without one it is the latest.
    """
    if part is not None and part not in PARTS:
        raise click.UsageError(f"A snapshot has no part {part!r}. It has: {', '.join(PARTS)}.")
    view = find.latest(workflow_id)
    document = client.call("GET", _path(view, name) + (f"/{part}" if part else ""))
    out.result(document)
    if part is None:
        _page(document, view, out)
        return
    lines = list(PARTS[part](document))
    for line in lines or ["nothing"]:
        out.say(line)


def _path(view: Fields, name: str) -> str:
    """Return the address of a snapshot; raise CheckpointNotFound if the name is not valid."""
    if not find.NAME.fullmatch(name):
        raise CheckpointNotFound(
            f"No snapshot is called {name!r}.", hint=f"List them with: segue snapshots list {view['slug']}"
        )
    return f"/api/workflows/{view['id']}/snapshots/{name}"


def _page(document: Fields, view: Fields, out: Output) -> None:
    """Print the overview of one snapshot."""
    checkpoint = document["checkpoint"]
    out.say(f"Snapshot {checkpoint['id']} of {view['slug']}")
    for line in table(list(_facts(checkpoint, document["findings"]))):
        out.say(f"  {line}")


def _facts(checkpoint: Fields, findings: Fields) -> Iterator[tuple[str, str]]:
    """Yield the overview of a snapshot as rows of name and value."""
    why = f": {plain(checkpoint['reason'])}" if checkpoint["reason"] else ""
    where = "between two tasks" if checkpoint["clean_boundary"] else "in the middle of the work"
    yield "stopped", f"{checkpoint['trigger'].replace('_', ' ')}{why} ({where})"
    yield "taken", f"{moment(checkpoint['created_at'])}, in session {checkpoint['session_number']}"
    yield from beside("tasks", _tasks(checkpoint))
    yield from beside("git", _git(checkpoint))
    yield from beside("tests", _some(_tests(findings["tests"])))
    yield from beside("decisions", _some(map(_decision, findings["decisions"]), latest=True))
    unresolved = [error for error in findings["errors"] if error["resolution"] == "unresolved"]
    yield from beside("open errors", _some(map(_error, unresolved), latest=True))
    yield from beside("reviews", _some(map(_review, findings["feedback"]), latest=True))
    calls = (f"{plain(call['title'])} (nobody saw it end)" for call in checkpoint["open_calls"])
    yield from beside("open calls", calls)
    if checkpoint["in_flight_prompt"]:
        yield "on its way", f"{checkpoint['in_flight_prompt']} (it is not known whether the agent got it)"
    yield "used", _used(checkpoint["usage"])
    yield from beside("exam", _exam(findings["exam"]))
    yield from beside("! problem", [plain(each["problem"]) for each in (checkpoint, findings) if each["problem"]])


def _tasks(checkpoint: Fields) -> Iterator[str]:
    """Yield the counts of tasks, then each task with its mark; the next one is marked."""
    done = sum(task["status"] == "completed" for task in checkpoint["tasks"])
    yield f"{done} done, {len(checkpoint['tasks']) - done} remaining"
    for task in checkpoint["tasks"]:
        following = "  (next)" if task["id"] == checkpoint["next_task"] else ""
        yield f"{MARKS.get(task['status'], '○')} [{plain(task['id'])}] {plain(task['title'])}{following}"


def _git(checkpoint: Fields) -> Iterator[str]:
    """Yield the branch, changed files, saved commit and what was left out; `unknown` without git state."""
    git = checkpoint["git"]
    if git is None:
        yield "unknown"
        return
    start = f", from {git['base'][:12]}" if git["base"] and git["base"] != git["head"] else ""
    yield f"{plain(git['branch'])} at {git['head'][:12]}{start}"
    yield from _some([*map(_committed, git["committed"]), *map(_file, git["changes"])])
    if checkpoint["commit"]:
        yield f"the whole worktree is kept as {checkpoint['commit'][:12]}"
    if checkpoint["left_out"]:
        yield f"not kept, because they may be secrets: {plain(', '.join(checkpoint['left_out']))}"


def _committed(change: Fields) -> str:
    """Return a committed change as a line."""
    return f"{change['action']} {plain(change['path'])} (committed)"


def _file(change: Fields) -> str:
    """Return an uncommitted change as a line."""
    return f"{change['action']} {plain(change['path'])}" + (" (staged)" if change["staged"] else "")


def _tests(tests: Fields | None) -> Iterator[str]:
    """Yield the test phase and numbers, the last command, and the failing tests; nothing if no tests ran."""
    if tests is None:
        return
    numbers = [f"{tests[name]} {name}" for name in ("passing", "failing", "pending") if tests[name] is not None]
    yield ", ".join([tests["phase"], *numbers])
    if tests["last_test_command"]:
        yield f"{plain(tests['last_test_command'])} ({moment(tests['last_test_run_at'])})"
    expected = set(tests["expected_failures"])
    for name in tests["failing_tests"]:
        yield f"✗ {plain(name)}" + (" (expected)" if name in expected else "")


def _decision(decision: Fields) -> str:
    """Return a decision in one line, with its author if that is the user, and if it was taken back."""
    back = " (taken back)" if decision["superseded_by"] else ""
    by = ", the user's" if decision["by"] == "user" else ""
    return f"{decision['decision_type']}{by}: {plain(decision['description'])}{back}"


def _error(error: Fields) -> str:
    """Return an error with its context in one line."""
    return plain(error["error_message"]) + (f" ({plain(error['context'], 80)})" if error["context"] else "")


def _review(review: Fields) -> str:
    """Return a review in one line: reviewer, verdict, severity and comments."""
    verdict = "approved" if review["approved"] else "not approved"
    addressed = ", addressed" if review["addressed"] else ""
    comments = plain("; ".join(review["comments"]))
    return f"{plain(review['reviewer_persona'])} ({verdict}, {review['severity']}{addressed}): {comments}"


def _used(usage: Fields) -> str:
    """Return turns, tool calls, tokens, cost and context of a session in one line."""
    tokens = f"{usage['input_tokens']:,} tokens in, {usage['output_tokens']:,} out"
    cost = "" if usage["cost_usd"] is None else f", ${usage['cost_usd']:,.2f}"
    about = words.about(usage["context_estimated"])
    context = "" if usage["context_tokens"] is None else f"; {about}{usage['context_tokens']:,} tokens in its window"
    return f"{counted(usage['turns'], 'turn')}, {counted(usage['tool_calls'], 'tool call')}, {tokens}{cost}{context}"


def _exam(exam: Fields | None) -> Iterator[str]:
    """Yield the exam's score, and the first things that are missing; nothing without an exam."""
    if exam is None:
        return
    size = f"{exam['tokens']:,} of {exam['budget']:,} tokens"
    yield f"{exam['score']:.0%} of what matters is in the context made from it ({size})"
    for about in exam["missing"][:SHOWN]:
        yield f"missing: {plain(about)}"


def _some(lines: Iterable[str], latest: bool = False) -> list[str]:
    """Return at most as many lines as the page has room for, the first or the latest, and the count of the others."""
    found = list(lines)
    if len(found) <= SHOWN + 1:
        return found
    more = f"… and {len(found) - SHOWN} more"
    return [more, *found[-SHOWN:]] if latest else [*found[:SHOWN], more]


# ── one part of it ──────────────────────────────────────────────────────────────────────────────────


def _decisions_part(decisions: list[Fields]) -> Iterator[str]:
    """Yield every decision in full: time, reason, alternatives, task and event."""
    for each in decisions:
        yield f"{moment(each['timestamp'])}  {_decision(each)}"
        yield from _details(
            because=each["rationale"],
            instead_of="; ".join(each["alternatives_considered"]),
            task=each["task_id"],
            event=each["seq"],
            taken_back_in_event=each["superseded_by"],
        )


def _errors_part(errors: list[Fields]) -> Iterator[str]:
    """Yield every error in full: time, resolution, context, notes, task and event."""
    for each in errors:
        yield f"{moment(each['timestamp'])}  {each['resolution']}: {plain(each['error_message'])}"
        yield from _details(
            kind=each["error_type"],
            context=each["context"],
            note=each["resolution_notes"],
            task=each["task_id"],
            event=each["seq"],
        )


def _details(**details: object) -> Iterator[str]:
    """Yield each detail that is not empty as an indented line."""
    for name, value in details.items():
        if value:
            yield f"    {name.replace('_', ' ')}: {plain(value)}"


def _git_part(git: Fields) -> Iterator[str]:
    """Yield the whole git state of a snapshot, with files that were left out."""
    if git["branch"] is not None:
        yield f"branch {plain(git['branch'])}"
        yield f"commit {git['commit_at_snapshot']}, from {git['commit_at_workflow_start'] or 'unknown'}"
    yield from map(_committed, git["committed"])
    yield from map(_file, git["uncommitted"])
    if git["saved_as"]:
        yield f"the whole worktree is kept as {git['saved_as']}"
    for name in git["left_out"]:
        yield f"not kept, because it may be a secret: {plain(name)}"
    if git["problem"]:
        yield f"! {plain(git['problem'])}"


def _reviews_part(reviews: list[Fields]) -> Iterator[str]:
    """Yield every review with all its comments."""
    for each in reviews:
        yield f"{moment(each['timestamp'])}  {_review({**each, 'comments': []}).removesuffix(': ')}"
        yield from (f"    {plain(comment, 1_000)}" for comment in each["comments"])


def _tests_part(tests: Fields | None) -> Iterator[str]:
    """Yield the state of the tests, and the summary of the last run; nothing if no tests ran."""
    yield from _tests(tests)
    if tests and tests["last_test_output_summary"]:
        yield plain(tests["last_test_output_summary"])


def _messages_part(messages: list[Fields]) -> Iterator[str]:
    """Yield the messages in full, each under a line with role, task and time."""
    for each in messages:
        task = f", task {plain(each['task_id'])}" if each["task_id"] else ""
        yield f"── {each['role']}{task}  {moment(each['at'])}  (event {each['seq']})"
        yield block(each["text"].rstrip())


PARTS: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "decisions": _decisions_part,
    "errors": _errors_part,
    "git-changes": _git_part,
    "reviewer-feedback": _reviews_part,
    "tests": _tests_part,
    "messages": _messages_part,
}


# ── two ─────────────────────────────────────────────────────────────────────────────────────────────


@command
@click.argument("before", metavar="[A]", default="previous")
@click.argument("after", metavar="[B]", default="latest")
@OF
def diff(out: Output, before: str, after: str, workflow_id: str | None) -> None:
    """Show what changed from snapshot A to snapshot B: the last two, unless you name others.

    Each may be short (003), latest or previous.
    """
    view = find.latest(workflow_id)
    _path(view, after)
    document = client.call("GET", f"{_path(view, before)}/diff/{after}")
    out.result(document)
    out.say(f"{document['before']} → {document['after']} of {view['slug']}")
    for about, changes in groupby(document["changes"], key=lambda change: change["about"]):
        out.say(about)
        for change in changes:
            out.say(f"  {change['sign']} {_name(change)}{_values(change)}")
    if not document["changes"]:
        out.say("nothing changed")


def _name(change: Fields) -> str:
    """Return the name of a changed thing, readable."""
    return plain(change["name"].replace("_", " ") if change["about"] == "usage" else change["name"])


def _values(change: Fields) -> str:
    """Return the values of a change: added or removed in brackets, else before → after, with the difference of
    numbers."""
    before, after = change["before"], change["after"]
    if change["sign"] != "~":
        return f" ({_value(before if after is None else after)})"
    numbers = isinstance(before, (int, float)) and isinstance(after, (int, float))
    return f": {_value(before)} → {_value(after)}" + (f" ({round(after - before, 6):+,})" if numbers else "")


def _value(value: object) -> str:
    """Return a number with separators, or text on one line."""
    return f"{value:,}" if isinstance(value, (int, float)) else plain(value).replace("_", " ")

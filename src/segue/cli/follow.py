"""Progress of a workflow: a line for each milestone and, on a terminal, one more with the present state."""

import shutil
import sys
from typing import Any
from unicodedata import east_asian_width

from segue import client
from segue.cli import render, words
from segue.cli.output import Output, block, counted, moment, plain
from segue.cli.status import task_title
from segue.model.errors import SegueError, ServerError

LONG_POLL = 25.0
STOPPED = frozenset({"paused", "blocked", "review", "completed", "failed", "cancelled"})
ENDED = frozenset({"completed", "cancelled"})


class Failed(SegueError):
    """The workflow did not come to its end."""


class Screen:
    """Display of progress: the last line of a terminal is drawn anew, elsewhere lines follow each other."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._live = not out.as_json and sys.stdout.isatty()
        self._drawn = False

    def line(self, text: str) -> None:
        """Print a line in place of the status."""
        self.clear()
        self._out.say(text)

    def status(self, text: str) -> None:
        """Draw the status anew in the terminal's last line; with --json, or without a terminal, do nothing."""
        if self._live:
            sys.stdout.write("\r\x1b[K" + fit(text, shutil.get_terminal_size().columns - 1))
            sys.stdout.flush()
            self._drawn = True

    def clear(self) -> None:
        """Remove the drawn status, if there is one."""
        if self._drawn:
            sys.stdout.write("\r\x1b[K")
            sys.stdout.flush()
            self._drawn = False


def fit(text: str, columns: int) -> str:
    """Cut `text` to so many columns; some characters take two."""
    used = 0
    for position, character in enumerate(text):
        used += 2 if east_asian_width(character) in "WF" else 1
        if used > columns:
            return text[: max(0, position - 1)] + "…"
    return text


def status_line(view: dict[str, Any]) -> str:
    """Return a workflow's progress in one line: status, tasks, context, retry and open question."""
    parts = [f"{view['tasks_done']}/{view['tasks_total']} tasks" if view["tasks_total"] else "makes a plan"]
    if view["current_task"]:
        parts.append(plain(task_title(view, view["current_task"]), 60))
    if view["context"] and view["context"]["utilization"] is not None:
        parts.append(f"context {view['context']['utilization']:.0%}")
    if view["pause_requested"]:
        parts.append("pause requested")
    if view["retry"]:
        parts.append(f"{words.attempt(view['retry'])} at {moment(view['retry']['at'])}")
    if view["question"]:
        question = plain(view["question"]["title"], 60)
        parts.append(f"asks: {question} (segue approve {view['slug']} | segue reject {view['slug']})")
    return " · ".join([f"{view['slug']}: {view['status'].replace('_', ' ')}", *parts])


def events(name: str, after: int, wait: float) -> dict[str, Any]:
    """Return a page of events after number `after`; without any the server waits up to `wait` seconds."""
    params = {"after": after, "wait": wait, "limit": 500}
    return client.call("GET", f"/api/workflows/{name}/events", params=params, timeout=wait + 30)


def watch(view: dict[str, Any], after: int, out: Output) -> None:
    """Follow a workflow until it stops, and print how it ended; Ctrl-C ends the following and leaves it running."""
    screen = Screen(out)
    try:
        view = _until_stopped(view, after, screen)
    except KeyboardInterrupt:
        screen.clear()
        out.say(f"Detached: {view['slug']} goes on without you.")
        out.say(f"  Watch it with: segue logs --follow {view['slug']}")
        out.result(client.call("GET", f"/api/workflows/{view['id']}"))
        return
    except ServerError as error:
        error.hint = f"Go on later with: segue resume {view['slug']}"
        raise
    finally:
        screen.clear()
    out.result(view)
    _conclude(view, out)


def _until_stopped(view: dict[str, Any], after: int, screen: Screen) -> dict[str, Any]:
    """Print milestones until the workflow has stopped with no retry scheduled, and return its last state."""
    name = view["id"]
    while view["status"] not in STOPPED or view["retry"] or view["head"] > after:
        screen.status(status_line(view))
        records = events(name, after, LONG_POLL)["events"]
        # Read after the events, it knows the tasks of a plan that one of them brings.
        view = client.call("GET", f"/api/workflows/{name}")
        for record in records:
            after = record["seq"]
            text = render.line(record, render.names_of(view), render.MILESTONES)
            if text is not None:
                screen.line(text)
    return view


def explain(resumed: dict[str, Any], out: Output) -> None:
    """Print the way that was taken and why, and the price of each way."""
    if resumed["status"] == "blocked":
        out.say("✓ It waits for your word again, as it did before the pause; no agent was started.")
        return
    if resumed["status"] == "waiting":
        out.say(
            f"✓ It goes on by itself when the quota is full again; no agent was started. {plain(resumed['reason'])}"
        )
        return
    what = "Workflow resumed" if resumed["status"] == "resumed" else "It was on its way already"
    way = f"{resumed['agent']}, session {resumed['session_number']}, run {resumed['run']}, {words.way(resumed['way'])}"
    out.say(f"✓ {what} ({way}: {plain(resumed['reason'])})")
    for line in words.prices(resumed["prices"], resumed["way"]):
        out.say(f"  {line}")
    for sentence in resumed["divergence"]:
        out.say(f"  ! Since the pause: {plain(sentence)}")


def _conclude(view: dict[str, Any], out: Output) -> None:
    """Print how a workflow stopped and how to go on; raise Failed if it failed or was cancelled."""
    slug, reason = view["slug"], plain(view["reason"] or "")
    if view["status"] == "completed":
        sessions, runs = counted(view["sessions"], "session"), counted(view["runs"], "run")
        out.say(f"✓ {plain(view['title'])}: {view['tasks_done']}/{view['tasks_total']} tasks, {sessions}, {runs}")
        if view["merge_hint"]:
            out.say(f"  Merge it with: {block(view['merge_hint'])}")
    elif view["status"] == "blocked":
        for line in words.asked(view):
            out.say(line)
        out.say(f"  To change it first: segue plan {slug} > plan.yaml, and then: segue approve {slug} --plan plan.yaml")
    elif view["status"] == "review" and view["asks"]:
        for line in words.asked(view)[1:]:
            out.say(line)
    elif view["status"] in ("paused", "review"):
        for line in words.trouble(view) or [f"Go on with: segue resume {slug}"]:
            out.say(f"  {line}")
    else:
        hints = words.trouble(view)[1:] or [f"try again with: segue resume {slug}"]
        raise Failed(
            f"{slug} is {view['status']}" + (f": {reason}" if reason else "."),
            hint="; ".join([f"Look at it with: segue logs {slug}", *(hints if view["status"] == "failed" else [])]),
        )

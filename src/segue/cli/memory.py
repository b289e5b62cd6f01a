"""`segue recall` and `segue memorize`: search in past work, and entries that are remembered."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from segue import client
from segue.cli.command import borrowed_server, in_group
from segue.cli.issue import read_content
from segue.cli.output import Output, block, counted, moment, plain

KEEPING = click.Choice(["short-term", "working", "long-term", "persistent"])
CATCHING_UP = 600.0
"""Seconds: the first search after much work waits until all of it is indexed."""


@click.argument("query", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 50), default=5, show_default=True, help="The most results to show.")
@click.option("-w", "--workflow", help="Search this workflow only, by id or slug.")
@click.option("--full", is_flag=True, help="Print the whole text instead of an excerpt.")
def recall(out: Output, query: tuple[str, ...], limit: int, workflow: str | None, full: bool) -> None:
    """Search past work for QUERY.

    QUERY is one or more terms, or a name: of a workflow, a session, an event (slug#12), or an entry of `segue
    memorize`, by id or tag. Nothing is changed, and no model is asked.
    """
    body = {"query": " ".join(query), "limit": limit, "workflow": workflow}
    with borrowed_server():
        found = client.call("POST", "/api/recall", body, timeout=CATCHING_UP)
    out.result(found)
    out.say(_verdict(found))
    for place, each in enumerate(found["results"]):
        if place and place == found["found"]:
            out.say("\nThe nearest beside:")
        out.say(f"\n{_source(each)}")
        text = block(each["text"]) if full else plain(each["excerpt"], 400)
        out.say("\n".join(f"  {line}" for line in text.splitlines()))


def _verdict(found: dict[str, Any]) -> str:
    """Return the heading of a search's results, by how surely they match."""
    if not found["results"]:
        return "Nothing in past work has any of these words."
    if found["verdict"] == "not_found":
        return "Nothing in past work has all of this. The nearest:"
    passages = counted(found["found"], "passage")
    return f"Recalled {passages}:" if found["verdict"] == "recalled" else f"{passages} may be meant:"


def _source(each: dict[str, Any]) -> str:
    """Return the source of a result in one line, with a warning if it is old."""
    source = each["provenance"]
    event = f"{source['workflow']}#{source['seq']}" if source["seq"] is not None else source["workflow"]
    parts = (each["kind"], source["memory_id"], event, source["session_id"], moment(each["at"]), f"{each['score']:.2f}")
    stale = "  (more than 180 days old: check it before you rely on it)" if each["stale"] else ""
    return "  ".join(part for part in parts if part) + stale


# ── memorize ────────────────────────────────────────────────────────────────────────────────────────


@click.group()
def memorize() -> None:
    """Store entries that are to be remembered."""


command = in_group(memorize)


def _described(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that describe an entry to a command."""

    @click.option("--tag", help="Its name: topic_context_YYYY (default: made from its first line).")
    @click.option("--label", "labels", multiple=True, help="A label to find it by; may be given several times.")
    @click.option("--importance", type=click.FloatRange(0, 1), help="From 0 to 1 (default: 0.5).")
    @click.option("--domain", help="What it is about (default: general).")
    @click.option("--keep", type=KEEPING, help="24 hours, 7 days, 90 days (default), or for good.")
    @click.option("-w", "--workflow", help="The workflow it comes from, by id or slug.")
    @wraps(function)
    def run(out: Output, *, labels: tuple[str, ...], keep: str | None, **options: Any) -> None:
        function(out, tags=labels or None, keeping=keep, **options)

    return run


@command
@click.argument("content")
@click.option("--key", help="Storing twice under one key stores once.")
@_described
def new(out: Output, content: str, **note: Any) -> None:
    """Store CONTENT as a new entry: text, @FILE, or - to read it from standard input."""
    _memorize(out, {"mode": "new", "content": read_content(content), **note})


@command
@click.argument("name")
@click.argument("content", required=False)
@_described
def update(out: Output, name: str, content: str | None, **note: Any) -> None:
    """Replace the content of the entry NAME by CONTENT.

    NAME is an entry's id or tag, or a workflow's id or slug. Without CONTENT the present state of the workflow is
    stored, in eight sections; there is one such entry for each workflow.
    """
    _memorize(out, {"mode": "update", "name": name, "content": content and read_content(content), **note})


@command
@click.argument("content")
@_described
def auto(out: Output, content: str, **note: Any) -> None:
    """Store CONTENT, or replace the entry whose content is nearly the same.

    Where that is not clear, nothing is stored, and the commands to choose from are printed.
    """
    _memorize(out, {"mode": "auto", "content": read_content(content), **note})


@command
@click.argument("name")
def forget(out: Output, name: str) -> None:
    """Delete the entry NAME, which is its id or tag."""
    path = f"/api/memories/{client.in_path(name)}"
    with borrowed_server():
        forgotten = client.call("DELETE", path)
    out.say(f"✓ Forgotten: {forgotten['memory_id']}")
    out.result(forgotten)


def _memorize(out: Output, request: dict[str, Any]) -> None:
    """Send an entry to the server, and print what was stored and until when."""
    with borrowed_server():
        memorized = client.call("POST", "/api/memories", request, timeout=CATCHING_UP)
    entry = memorized["memory"]
    what = {"stored": "Stored", "updated": "Updated", "unchanged": "Already stored"}[memorized["status"]]
    until = f"until {moment(entry['expires_at'])}" if entry["expires_at"] else "for good"
    out.say(f"✓ {what}: {entry['tag']} ({entry['keeping']}, {until})")
    out.say(f"  {entry['id']}")
    out.result(memorized)

"""`segue sessions`: a workflow's conversations."""

from collections.abc import Iterator
from typing import Any

import click

from segue import client
from segue.cli import find, words
from segue.cli.command import chosen, ensure_server, environment, in_group
from segue.cli.output import Output, beside, counted, moment, plain, reason, table
from segue.model.errors import SessionNotFound, WorkflowNotFound

FORKED_WITHIN = 900.0
"""Seconds to wait for a fork: the setup command runs in its worktree."""
CARRYING = {
    "needed": "it has yet to be told what was said before it",
    "done": "it was told what was said before it",
}


@click.group()
def sessions() -> None:
    """Look at a workflow's conversations, or go on from one in a new workflow."""


command = in_group(sessions)


@command
@chosen
def list_(out: Output, workflow: str | None) -> None:
    """List the conversations of a workflow, the first one first."""
    view = find.latest(workflow)
    document = client.call("GET", f"/api/workflows/{view['id']}/sessions")
    out.result(document)
    head = ("", "session", "agent", "status", "runs", "context", "started")
    rows = [
        (
            str(each["number"]) if each["role"] == "writer" else each["role"],
            each["id"],
            each["agent"],
            _status(each),
            str(each["runs"]),
            _context(each["usage"]),
            moment(each["started_at"]),
        )
        for each in document["sessions"]
    ]
    for line in table([head, *rows], right=(0, 4)):
        out.say(line)


@command
@click.argument("name", metavar="[SESSION | WORKFLOW]", required=False)
@click.option("--files", is_flag=True, help="Write its files anew from the journal, and print their paths.")
def show(out: Output, name: str | None, files: bool) -> None:
    """Show everything about one conversation: its process, its token, and how it would come back at which price.

    SESSION may be short: session-abc123. Without one, it is the latest of WORKFLOW, or of the current directory's.
    """
    detail = _found(name)
    if files:
        written = client.call("POST", f"/api/sessions/{detail['id']}/files")
        out.result(written)
        state = "right" if written["were_right"] else "missing, or not what the journal says"
        out.say(f"✓ {written['entries']} entries; what was there before was {state}")
        out.say(f"  {written['history']}\n  {written['session']}")
        return
    workflow = client.call("GET", f"/api/workflows/{detail['workflow_id']}")
    out.result(detail)
    who = f"Session {detail['number']}" if detail["role"] == "writer" else f"A {detail['role']}"
    out.say(f"{who} of {workflow['slug']} ({detail['id']})")
    for line in table(list(_facts(detail, workflow))):
        out.say(f"  {line}")


@command
@click.argument("name", metavar="[SESSION | WORKFLOW]", required=False)
@click.option("--from", "snapshot", help="The snapshot to go on from: its id or number, or `previous`.")
@click.option("--agent", help="Another agent takes the fork.")
@click.option("--model", help="The model that the other agent works with.")
@click.option("--mode", help="The mode that the other agent works in.")
@click.option("--title", default="", help="The title of the new workflow.")
@click.option("--start", is_flag=True, help="Let an agent go on with it at once.")
def fork(out: Output, name: str | None, title: str, start: bool, **asked: str | None) -> None:
    """Go on from a snapshot in a new workflow, with a worktree and a branch of its own; the original stays as it is.

    Without --from it is the last snapshot of SESSION, or of the latest session of WORKFLOW. The files are those of the
    snapshot, and no agent is started: `segue resume` does that.
    """
    ensure_server(out)
    detail = _found(name)
    body = {"environment": environment(), "title": title, "to_start": start, **asked}
    forked = client.call("POST", f"/api/sessions/{detail['id']}/fork", body, timeout=FORKED_WITHIN)
    view = forked["workflow"]
    out.say(f"✓ Forked at {forked['checkpoint_id']} as {view['slug']}: {plain(view['title'])}")
    out.say(f"  Worktree {view['worktree']} on branch {view['branch']}")
    out.say(f"  Tasks: {view['tasks_done']} done, {view['tasks_total'] - view['tasks_done']} remaining")
    if forked["left_out"]:
        out.say(f"  ! The snapshot does not hold these, so the fork has none: {plain(', '.join(forked['left_out']))}")
    if start:
        client.call("POST", f"/api/workflows/{view['id']}/resume", {"environment": environment()}, timeout=120)
        out.say(f"  It is at work. Watch it with: segue logs --follow {view['slug']}")
    else:
        out.say(f"  Go on with: segue resume {view['slug']}")
    out.result(forked)


def _found(name: str | None) -> dict[str, Any]:
    """Return the session of this id, or the latest session of the workflow of this name, or of the current
    directory's."""
    if name and name.startswith("session-") and find.NAME.fullmatch(name):
        try:
            return client.call("GET", f"/api/sessions/{name}")
        except SessionNotFound as missing:
            # A workflow may be called so too.
            try:
                return _latest(name)
            except WorkflowNotFound:
                raise missing from None
    return _latest(name)


def _latest(name: str | None) -> dict[str, Any]:
    """Return the latest session of a workflow; raise SessionNotFound if it has none."""
    view = find.latest(name)
    if view["session"] is None:
        raise SessionNotFound(f"{view['slug']} has no session yet.", hint=f"Begin it with: segue resume {view['slug']}")
    return client.call("GET", f"/api/sessions/{view['session']['id']}")


def _facts(detail: dict[str, Any], workflow: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield everything about a session as rows of name and value."""
    yield "status", _status(detail) + (f": {reason(detail['reason'])}" if detail["reason"] else "")
    yield "agent", detail["agent"]
    yield "started", moment(detail["started_at"])
    yield "runs", str(detail["runs"])
    if detail["parent"]:
        yield "follows", detail["parent"]
    if detail["children"]:
        yield "followed by", ", ".join(detail["children"])
    yield from _process(detail["runtime"])
    yield "token", plain(detail["token"]) if detail["token"] else "none"
    if detail["refused_tokens"]:
        yield "refused", ", ".join(plain(token) for token in detail["refused_tokens"])
    yield "can", "unknown" if detail["capabilities"] is None else ", ".join(detail["capabilities"]) or "nothing special"
    if detail["carrying"] in CARRYING:
        yield "history", CARRYING[detail["carrying"]]
    yield from _use(detail)
    yield from beside("failure", words.failure(detail, workflow["slug"]))
    yield from beside("way back", _way_back(detail["way_back"]))


def _process(runtime: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the rows on a session's process, its execution and events dropped from dead processes."""
    if runtime["pid"] is None:
        yield "process", "none"
    else:
        state = "alive" if runtime["alive"] else "gone"
        yield "process", f"pid {runtime['pid']}, {state}, last seen {moment(runtime['last_seen_at'])}"
    if runtime["execution"]:
        yield "execution", f"{runtime['execution']}, generation {runtime['generation']}"
    if runtime["dropped_events"]:
        yield "dropped", f"{counted(runtime['dropped_events'], 'event')} of a dead process, which nobody wrote down"


def _use(detail: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the rows on a session's context, tokens, cost and compactions."""
    usage = detail["usage"]
    yield "context", _context(usage)
    if detail["context_tokens_new"]:
        yield "new", f"{detail['context_tokens_new']:,} tokens since the last refresh"
    cached = "" if usage["cached_tokens"] is None else f", {usage['cached_tokens']:,} from the cache"
    tokens = f"{usage['input_tokens']:,} tokens in, {usage['output_tokens']:,} out{cached}"
    yield "used", f"{counted(usage['turns'], 'turn')}, {counted(usage['tool_calls'], 'tool call')}, {tokens}"
    if usage["turns"]:
        yield "cost", words.spent(detail["spent"])
    if detail["compactions"]:
        yield "compactions", f"{detail['compactions']} (the agent replaced its conversation by a summary)"


def _way_back(found: dict[str, Any] | None) -> list[str]:
    """Return the way back and the price of each way as lines."""
    if found is None:
        return ["none: there is nothing to bring back"]
    return [f"{words.way(found['way'])}: {plain(found['reason'])}", *words.prices(found["prices"], found["way"])]


def _status(detail: dict[str, Any]) -> str:
    """Return a session's status, and what it waits for."""
    waiting = f" (for a {detail['waiting_for']})" if detail["waiting_for"] else ""
    return detail["status"].replace("_", " ") + waiting


def _context(usage: dict[str, Any]) -> str:
    """Return the tokens in the context, of the window if that is known; `unknown` if they were never counted."""
    if usage["context_tokens"] is None:
        return "unknown"
    used = f"{words.about(usage['context_estimated'])}{usage['context_tokens']:,}"
    if not usage["window"]:
        return f"{used} tokens"
    return f"{used} of {usage['window']:,} tokens ({usage['context_tokens'] / usage['window']:.0%})"

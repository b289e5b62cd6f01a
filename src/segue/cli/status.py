"""`segue status`, which must answer at once: only the standard library and the client."""

from typing import Any

from segue import client
from segue.cli import words
from segue.cli.output import Output, counted, plain
from segue.model.errors import NotRunning, SegueError


def status(as_json: bool) -> int:
    """Print what the server is doing; return the exit code, 1 only if a server that runs cannot answer."""
    out = Output(as_json)
    try:
        document = client.call("GET", "/api/status")
        server = client.find()
    except NotRunning as error:
        out.result({"running": False, "message": error.message, "hint": error.hint})
        out.say(f"{error.message}\n  {error.hint}")
        return 0
    except SegueError as error:
        out.complain(error)
        return 1
    out.result({"running": True, "url": server.url, **document})
    out.say(f"Segue {document['version']} is up (pid {document['pid']}, {server.url}).")
    for view in document["workflows"]:
        out.say(workflow_line(view))
        for line in _below(view):
            out.say(f"      {line}")
    if not document["workflows"]:
        out.say('  No workflows yet. Begin one in a repository with: segue run "what is to be done"')
    return 0


def workflow_line(view: dict[str, Any]) -> str:
    """Return a workflow in one line: slug, status, tasks and details."""
    total = view["tasks_total"]
    tasks = f"{view['tasks_done']}/{total} tasks" if total else words.progress(view)
    parts = [f"  {view['slug']:<32}", f"{view['status']:<12}", tasks]
    return "  ".join([*parts, *_details(view)])


def _details(view: dict[str, Any]) -> list[str]:
    """Return the open question or current task, the context, the cost and a requested pause, as far as there are
    any."""
    details: list[str] = []
    if view["question"]:
        details.append(f"asks: {plain(view['question']['title'], 60)} (segue approve {view['slug']})")
    elif view["current_task"]:
        details.append(plain(task_title(view, view["current_task"]), 60))
    if view["context"] and view["context"]["utilization"] is not None:
        details.append(f"context {view['context']['utilization']:.0%}")
    if view["spent"]["cost_usd"] is not None:
        details.append(words.spent(view["spent"]))
    if view["pause_requested"] and view["status"] != "paused":
        details.append("pause requested")
    return details


def _below(view: dict[str, Any]) -> list[str]:
    """Return the lines below a workflow's line: its question, why it stands still, waiting messages, and snapshots."""
    first, *more = words.trouble(view) or [""]
    lines = [*words.proposed(view), *words.asked(view), *words.rest(view)]
    if first:
        lines += [f"! {first}", *more]
    if view["waiting_messages"]:
        verb = "waits" if view["waiting_messages"] == 1 else "wait"
        lines.append(f"{counted(view['waiting_messages'], 'message')} {verb} for the agent")
    if view["snapshots"]:
        lines.append(f"snapshots: {view['snapshots']}, last {view['last_snapshot']}")
    return lines


def task_title(view: dict[str, Any], task_id: str) -> str:
    """Return the title of a workflow's task, or its id if it is unknown."""
    return next((task["title"] for task in view["tasks"] if task["id"] == task_id), task_id)

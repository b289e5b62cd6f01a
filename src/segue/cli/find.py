"""Choice of the workflow that a command is about: by its name, or by the current directory."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from segue import client
from segue.model.errors import SegueError, WorkflowNotFound

ACTIVE = ("pending", "in_progress", "blocked", "review")
RESUMABLE = ("paused", "pending", "failed", "review", "blocked")
AT_WORK = "in_progress"
AT_REST = ("paused", "failed")
OPEN = (*ACTIVE, *AT_REST)
OVER = ("completed", "cancelled")

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class NoWorkflowHere(SegueError):
    """No workflow in current directory."""


class SeveralWorkflowsHere(SegueError):
    """Several workflows belong to the current directory."""


def by_name(name: str) -> dict[str, Any]:
    """Return the workflow with this id or slug; raise WorkflowNotFound if it is no valid name."""
    if not NAME.fullmatch(name):
        raise WorkflowNotFound(f"No workflow is called {name!r}.", hint="See them all with: segue status")
    return client.call("GET", f"/api/workflows/{name}")


def here(statuses: Sequence[str]) -> list[dict[str, Any]]:
    """Return the workflows of the current directory in one of these statuses: the directory's own, or else those of the
    repository."""
    directory = Path.cwd()
    params = {"directory": directory, "status": ",".join(statuses)}
    found: list[dict[str, Any]] = client.call("GET", "/api/workflows", params=params)["workflows"]
    inside = [view for view in found if view["worktree"] and directory.is_relative_to(Path(view["worktree"]))]
    return inside or found


def pausable(name: str | None) -> dict[str, Any]:
    """Find the workflow to pause: one that is at work or would go on by itself, or else one that is paused already."""
    if name:
        return by_name(name)
    found = here((*ACTIVE, "paused"))
    going = [view for view in found if view["status"] != "paused" or view["retry"]]
    return _only(going or found, "active", "No active workflow in current directory.")


def paused(name: str | None, *, or_at_work: bool = False) -> dict[str, Any]:
    """Find the workflow to go on with: a paused one first, then one at work if that is allowed, then one that failed or
    never began."""
    if name:
        return by_name(name)
    found = here((*RESUMABLE, AT_WORK) if or_at_work else RESUMABLE)
    resting, at_work = ([view for view in found if view["status"] == status] for status in ("paused", AT_WORK))
    return _only(resting or at_work or found, "paused", "No paused workflow in current directory.")


def asking(name: str | None) -> dict[str, Any]:
    """Find the workflow with an open question, or else the one for which the server explains why it has none."""
    if name:
        return by_name(name)
    found = here(ACTIVE)
    asking = [view for view in found if view["question"] or view["asks"]]
    if not (found := asking or found):
        resting = here(AT_REST)
        found = [view for view in resting if view["proposed_plan"]] or _alone(resting) or _alone(here(OVER))
    return _only(found, "waiting for an answer", "No active workflow in current directory.")


def unfinished(name: str | None) -> dict[str, Any]:
    """Return the named workflow, or the only open one of the current directory."""
    return by_name(name) if name else _only(here(OPEN), "open", "No active workflow in current directory.")


def listening(name: str | None) -> dict[str, Any]:
    """Find the workflow to send a message to, or else the one for which the server answers that it is over."""
    if name:
        return by_name(name)
    return _only(here(OPEN) or _alone(here(OVER)), "open", "No active workflow in current directory.")


def latest(name: str | None) -> dict[str, Any]:
    """Find the only open workflow, or else the one that moved last."""
    if name:
        return by_name(name)
    found = here(())
    going = [view for view in found if view["status"] in OPEN]
    if len(going) > 1 or not found:
        return _only(going, "open", "No workflow in current directory.")
    return going[0] if going else max(found, key=lambda view: view["updated_at"])


def _alone(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the list if it has one workflow, else an empty list: of several that are not active, none is meant."""
    return found if len(found) == 1 else []


def _only(found: list[dict[str, Any]], kind: str, none: str) -> dict[str, Any]:
    """Return the only workflow; raise an error if there is none or more than one."""
    if not found:
        raise NoWorkflowHere(none, hint="Name one, as `segue status` lists them.")
    if len(found) > 1:
        listed = ", ".join(f"{view['slug']} ({view['status']})" for view in found)
        raise SeveralWorkflowsHere(
            f"Several workflows are {kind} in current directory: {listed}.", hint="Name the one you mean."
        )
    return found[0]

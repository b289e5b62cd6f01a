"""Which workflow a command means: the one it names, or the one the current directory belongs to."""

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
    if not NAME.fullmatch(name):
        raise WorkflowNotFound(f"No workflow is called {name!r}.", hint="See them all with: segue status")
    return client.call("GET", f"/api/workflows/{name}")


def here(statuses: Sequence[str]) -> list[dict[str, Any]]:
    """The workflows of the current directory in one of these statuses, the directory's own before the repository's."""
    directory = Path.cwd()
    params = {"directory": directory, "status": ",".join(statuses)}
    found: list[dict[str, Any]] = client.call("GET", "/api/workflows", params=params)["workflows"]
    inside = [view for view in found if view["worktree"] and directory.is_relative_to(Path(view["worktree"]))]
    return inside or found


def pausable(name: str | None) -> dict[str, Any]:
    """The one that goes on, or would by itself; to pause one that is paused already changes nothing."""
    if name:
        return by_name(name)
    found = here((*ACTIVE, "paused"))
    going = [view for view in found if view["status"] != "paused" or view["retry"]]
    return _only(going or found, "active", "No active workflow in current directory.")


def paused(name: str | None, *, or_at_work: bool = False) -> dict[str, Any]:
    """The one to go on with: a paused one before one that is at work, if that will do, and one that failed or never
    began."""
    if name:
        return by_name(name)
    found = here((*RESUMABLE, AT_WORK) if or_at_work else RESUMABLE)
    resting, at_work = ([view for view in found if view["status"] == status] for status in ("paused", AT_WORK))
    return _only(resting or at_work or found, "paused", "No paused workflow in current directory.")


def asking(name: str | None) -> dict[str, Any]:
    """The one with an open question, or else the one of which the server can say why it has none."""
    if name:
        return by_name(name)
    found = here(ACTIVE)
    asking = [view for view in found if view["question"] or view["asks"]]
    found = asking or found or _with_a_plan(here(AT_REST)) or _alone(here(OVER))
    return _only(found, "waiting for an answer", "No active workflow in current directory.")


def unfinished(name: str | None) -> dict[str, Any]:
    return by_name(name) if name else _only(here(OPEN), "open", "No active workflow in current directory.")


def listening(name: str | None) -> dict[str, Any]:
    """The one to talk to, or else the one of which the server can say that it is over."""
    if name:
        return by_name(name)
    return _only(here(OPEN) or _alone(here(OVER)), "open", "No active workflow in current directory.")


def latest(name: str | None) -> dict[str, Any]:
    """The only open one, or else the one that moved last."""
    if name:
        return by_name(name)
    found = here(())
    going = [view for view in found if view["status"] in OPEN]
    if len(going) > 1 or not found:
        return _only(going, "open", "No workflow in current directory.")
    return going[0] if going else max(found, key=lambda view: view["updated_at"])


def _with_a_plan(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [view for view in found if view["proposed_plan"]] or _alone(found)


def _alone(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of several that are not active none is meant."""
    return found if len(found) == 1 else []


def _only(found: list[dict[str, Any]], kind: str, none: str) -> dict[str, Any]:
    if not found:
        raise NoWorkflowHere(none, hint="Name one, as `segue status` lists them.")
    if len(found) > 1:
        listed = ", ".join(f"{view['slug']} ({view['status']})" for view in found)
        raise SeveralWorkflowsHere(
            f"Several workflows are {kind} in current directory: {listed}.", hint="Name the one you mean."
        )
    return found[0]

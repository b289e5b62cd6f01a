"""`segue approve`, `segue reject` and `segue plan`: a person's answers, and the plan."""

from pathlib import Path
from typing import Any

import click

from segue import client
from segue.cli import find
from segue.cli.command import chosen, ensure_server, environment
from segue.cli.follow import explain, watch
from segue.cli.issue import read_plan
from segue.cli.output import Output, block, plain
from segue.cli.words import RESTING
from segue.model.errors import NotFound, WorkflowNotFound


@click.option(
    "--plan", type=click.Path(path_type=Path), help="A plan in place of the proposed one: a .yaml or .md file."
)
@click.option(
    "-r", "--reason", default="", help="Why a task is done although its tests or reviews failed; the agent gets it."
)
@click.option("--request-id", help="The permission that is meant, if not the oldest open question.")
@click.option("--detach", is_flag=True, help="Say so, and do not follow the work that goes on.")
@chosen
def approve(
    out: Output, workflow: str | None, plan: Path | None, reason: str, request_id: str | None, detach: bool
) -> None:
    """Approve a permission request, a proposed plan, or a task that failed its tests or reviews.

    An approved plan starts the work. `segue plan` prints the plan; give a changed one back with --plan.
    """
    body = {"request_id": request_id, "plan": read_plan(plan) if plan else None, "reason": reason}
    _answer(out, workflow, "approve", body, detach)


@click.argument("words", nargs=-1, metavar="[WORKFLOW] [REASON]")
@click.option("-w", "--workflow-id", help="The workflow, by id or slug.")
@click.option("-r", "--reason", help="The reason, for the agent; the same as REASON.")
@click.option("--request-id", help="The permission that is meant, if not the oldest open question.")
@click.option("--detach", is_flag=True, help="Say so, and do not follow the work that goes on.")
def reject(
    out: Output,
    words: tuple[str, ...],
    workflow_id: str | None,
    reason: str | None,
    request_id: str | None,
    detach: bool,
) -> None:
    """Reject a permission request, or a proposed plan.

    A plan is rejected with a reason, and the agent makes another. A single argument with a space in it is the REASON.
    """
    workflow, given = _workflow_and_reason(words, workflow_id, reason)
    try:
        _answer(out, workflow, "reject", {"reason": given, "request_id": request_id}, detach)
    except WorkflowNotFound as error:
        if words == (workflow,):
            error.hint = f"If it is the reason: segue reject -r {workflow}"
        raise


def _workflow_and_reason(words: tuple[str, ...], workflow: str | None, reason: str | None) -> tuple[str | None, str]:
    """Return the named workflow, None for that of the current directory, and the reason; raise UsageError for more
    arguments."""
    left = list(words)
    if left and workflow is None and (len(left) > 1 or find.NAME.fullmatch(left[0])):
        workflow = left.pop(0)
    if left and reason is None:
        reason = left.pop(0)
    if left:
        raise click.UsageError("There are more words than a WORKFLOW and a REASON; put the reason into quotes.")
    return workflow, reason or ""


def _answer(out: Output, workflow: str | None, verb: str, body: dict[str, Any], detach: bool) -> None:
    """Send an approval or a rejection to the server, print the result, and follow the work if it goes on."""
    ensure_server(out)
    view = find.asking(workflow)
    body = {**body, "environment": environment()}
    answered = client.call("POST", f"/api/workflows/{view['id']}/{verb}", body, timeout=120)
    out.say(f"✓ {answered['status'].capitalize()}: {plain(answered['title'])}")
    if answered["resumed"] is None:
        out.result(answered)
        return
    explain(answered["resumed"], out)
    if detach:
        out.result(answered)
        return
    watch(client.call("GET", f"/api/workflows/{view['id']}"), view["head"], out)


@chosen
def plan(out: Output, workflow: str | None) -> None:
    """Print the plan as YAML: the plan that waits for approval, else the present plan.

    Change it in a file and give it back: segue approve --plan FILE, or segue run --plan FILE.
    """
    view = find.latest(workflow)
    found = client.call("GET", f"/api/workflows/{view['id']}/plan")
    if found["status"] == "none":
        resting = view["status"] in RESTING and not view["retry"]
        hint = (
            f"Go on with: segue resume {view['slug']}"
            if resting
            else f"Watch it with: segue logs --follow {view['slug']}"
        )
        raise NotFound(f"{view['slug']} has no plan yet.", hint=hint)
    out.write(block(found["text"]))
    out.result(found)

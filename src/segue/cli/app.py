"""The commands: each parses, asks the client, and prints."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import click

from segue import __version__, client, paths
from segue.cli import find, render, talk, words
from segue.cli.agents import agents
from segue.cli.answers import approve, plan, reject
from segue.cli.command import chosen, ensure_server, environment, in_group
from segue.cli.context import expand as expand_events
from segue.cli.context import is_file, show_context, show_difference
from segue.cli.follow import ENDED, LONG_POLL, events, explain, watch
from segue.cli.importing import import_
from segue.cli.issue import read_context, read_issue, read_plan, read_servers, read_text
from segue.cli.limits import change, given, limited, quota, tell_changed, work_settings, working
from segue.cli.memory import memorize, recall
from segue.cli.output import Output, counted, moment, plain
from segue.cli.sessions import sessions
from segue.cli.snapshots import snapshots
from segue.cli.status import status as show_status
from segue.cli.usage import usage
from segue.model.bounds import MOST
from segue.model.errors import AgentMissing, BadInput, NotRunning, SegueError, WrongState

PORT = click.IntRange(0, 65535)
DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
PERMISSIONS = click.Choice(["ask", "edits", "all", "read-only"])


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="segue %(version)s")
def segue() -> None:
    """Keep coding-agent work alive across crashes, restarts and context windows."""


command = in_group(segue)
segue.add_command(sessions)
segue.add_command(snapshots)
segue.add_command(agents)
command(approve)
command(reject)
command(plan)
command(import_)
command(recall)
command(usage)
segue.add_command(memorize)


def _become(*command: str) -> NoReturn:
    """Replace this process by another program in the same terminal."""
    sys.stdout.flush()
    os.execv(command[0], command)


# ── the server ──────────────────────────────────────────────────────────────────────────────────────


@command
@click.option("--port", type=PORT, help="The port to listen on; 0 takes any free one.")
@click.option("--foreground", is_flag=True, help="Stay in this terminal until Ctrl-C.")
def up(out: Output, port: int | None, foreground: bool) -> None:
    """Start the server."""
    arguments = [] if port is None else ["--port", str(port)]
    if foreground:
        _become(*client.server_command(), *arguments)
    server, started = ensure_server(out, *arguments)
    if not started:
        out.say(f"The Segue server is already up (pid {server.pid}).")
    out.say(f"  {server.url}, data in {paths.home()}")
    out.result({"started": started, "url": server.url, **server._asdict()})


@command
def down(out: Output) -> None:
    """Stop the server; work in progress is brought to rest first."""
    try:
        client.find()
    except NotRunning as error:
        out.say(error.message)
        out.result({"stopped": False, "message": error.message})
        return
    waiting = _retries()
    server = client.stop_server()
    out.say(f"Stopped the Segue server (pid {server.pid}).")
    if waiting:
        verb = "waits" if waiting == 1 else "wait"
        out.say(f"  {counted(waiting, 'workflow')} {verb} to be tried again; the next server does that.")
    out.result({"stopped": True, "pid": server.pid, "retries": waiting})


def _retries() -> int:
    """Count the paused workflows with a scheduled retry; 0 if the server cannot answer."""
    try:
        found = client.call("GET", "/api/workflows", params={"status": "paused"})["workflows"]
    except SegueError:
        return 0
    return sum(view["retry"] is not None for view in found)


@command
def status(out: Output) -> None:
    """Show the server and its workflows."""
    sys.exit(show_status(out.as_json))


@command
def demo(out: Output) -> None:
    """Play the whole story on the rehearsal agent, with data and a server of its own."""
    _become(sys.executable, "-P", "-m", "segue.testing.demo", *(["--json"] if out.as_json else []))


@command
@click.argument("source", metavar="[WORKFLOW | FILE]", type=click.Path(), required=False)
@click.option("--budget", type=click.IntRange(100, MOST), help="Tokens it may take (default: 6 % of the window).")
@click.option("--expand", metavar="N[,M]", help="Print these lines of the record in full, and nothing else.")
@click.option("--diff", "pair", nargs=2, metavar="A B", help="Print how the contexts of two workflows or files differ.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="Text, or sections as JSON."
)
@click.option("--exam", is_flag=True, help="Report on the error stream what it holds and what is false.")
def context(
    out: Output,
    source: str | None,
    budget: int | None,
    expand: str | None,
    pair: tuple[str, str] | None,
    form: str,
    exam: bool,
) -> None:
    """Print what a successor would read: of a workflow, or of a session file of Claude Code or Codex.

    A FILE needs no server and is left as it is; without an argument it is this directory's workflow. No model is asked.
    """
    if pair:
        show_difference(*pair, budget)
    elif source is None or not is_file(source):
        view = find.latest(source)
        if expand:
            expand_events(view, _line_numbers(expand))
        else:
            show_context(view, budget, exam, out, document=form == "json")
    else:
        size = [] if budget is None else ["--budget", str(budget)]
        options = [*size, *(["--expand", expand] if expand else []), "--format", form]
        options += [*(["--exam"] if exam else []), *(["--json"] if out.as_json else [])]
        _become(sys.executable, "-P", "-m", "segue.contextfile", *options, "--", source)


def _line_numbers(text: str) -> list[int]:
    """Read line numbers such as `12,#40`; raise BadParameter if one is no number."""
    try:
        return [int(part.strip().lstrip("#")) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text} is no list of numbers, such as 12 or 12,40.") from None


@command
def doctor(out: Output) -> None:
    """Check whether this machine has what Segue needs."""
    from segue.cli.doctor import examine

    checks = examine()
    for item in checks:
        out.say(f"{'ok     ' if item['ok'] else 'problem'}  {item['name']}: {item['detail']}")
        if item["hint"] and not item["ok"]:
            out.say(f"         {item['hint']}")
    out.result({"ok": all(item["ok"] for item in checks), "checks": checks})
    if not all(item["ok"] for item in checks):
        sys.exit(1)


# ── a workflow's life ───────────────────────────────────────────────────────────────────────────────


@command
@click.argument("issue")
@click.option("--plan", type=click.Path(path_type=Path), help="Your own plan: a .yaml or .md file.")
@click.option("--one-task", is_flag=True, help="Take the issue as one task, without a plan.")
@click.option("-y", "--yes", is_flag=True, help="Take the plan that the agent proposes without asking.")
@click.option("--agent", help="The agent that does the work (default: the setting).")
@click.option("--permissions", type=PERMISSIONS, default="ask", show_default=True, help="What it may do unasked.")
@click.option("--model", help="The model it works with, as the agent calls it.")
@click.option("--mode", help="The mode it works in, as the agent calls it (default: what --permissions means to it).")
@click.option("--mcp", type=click.Path(path_type=Path), help='Servers of tools: a JSON file with "mcpServers".')
@working
@limited
@click.option("--here", is_flag=True, help="Work in this checkout instead of a worktree of its own.")
@click.option("--detach", is_flag=True, help="Begin, and do not follow.")
@click.option("--repository", type=DIRECTORY, default=".", help="The repository to work in (default: this one).")
def run(
    out: Output,
    issue: str,
    plan: Path | None,
    one_task: bool,
    yes: bool,
    agent: str | None,
    permissions: str,
    model: str | None,
    mode: str | None,
    mcp: Path | None,
    here: bool,
    detach: bool,
    repository: Path,
    **options: Any,
) -> None:
    """Begin a workflow: let an agent work on ISSUE.

    ISSUE is text, @FILE, the path of a .md or .txt file, or - for standard input. Its first line is the title. It may
    also be an issue of GitHub or GitLab as JSON: gh issue view 12 --json title,body,number,url,labels,comments | segue
    run -

    Unless you give a plan, the agent proposes one first, and nothing is done before you approve it. An agent that makes
    no plans gets the issue as one task, and a warning tells you so.

    The command follows the work until it stops. The exit code is 0 when the workflow is complete, paused or waits for
    your answer, and 1 when it failed or was cancelled.
    """
    if plan and one_task:
        raise click.UsageError("--plan and --one-task exclude each other.")
    request = {
        "issue": read_issue(issue),
        "plan": read_plan(plan) if plan else None,
        "propose": plan is None and not one_task,
        "agent": agent,
        "permissions": permissions,
        "repository": str(repository.absolute()),
        "here": here,
        "choices": {
            "model": model,
            "mode": mode,
            "mcp_servers": read_servers(mcp) if mcp else [],
            **work_settings(options),
            "approve_plan": yes,
        },
        "environment": environment(),
    }
    _, started = ensure_server(out)
    try:
        view = client.call("POST", "/api/workflows", request, timeout=120)
    except (BadInput, AgentMissing):
        if started:
            # A refused request leaves nothing behind, not even the server that was started for it.
            client.stop_idle_server()
        raise
    if view["from_repository"]:
        out.note(f"From the repository's own settings: {plain('; '.join(view['from_repository']), 500)}")
    if not detach:
        watch(view, 0, out)
        return
    out.say(f"{view['slug']} is at work. Watch it with: segue logs --follow {view['slug']}")
    out.result(view)


@command
@click.option("-r", "--reason", default="", help="Why, for the record.")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is paused.")
@chosen
def pause(out: Output, workflow: str | None, reason: str, no_wait: bool) -> None:
    """Pause a workflow at the end of its current task."""
    view = find.pausable(workflow)
    out.say(f"Pausing workflow {view['slug']}...")
    if view["question"] and not no_wait:
        action = _pause_at_a_question(view, reason, out)
    else:
        action = _pause(view, reason, wait=not no_wait)
    if action["status"] == "paused":
        kept = f" (snapshot: {action['snapshot_id']})" if action["snapshot_id"] else ""
        out.say(f"✓ Workflow paused{kept}")
    else:
        out.say("✓ Pause requested; the current task is finished first")
    if action["retry_called_off"]:
        out.say("  What was to be tried again by itself was called off.")
    out.say(f"  Resume with: segue resume --workflow-id {view['slug']}")
    out.result(action)


def _pause(view: dict[str, Any], reason: str, *, wait: bool) -> dict[str, Any]:
    """Request a pause from the server, and return its answer: after the pause, or at once without `wait`."""
    path, params = f"/api/workflows/{view['id']}/pause", {"wait": str(wait).lower()}
    return client.call("POST", path, {"reason": reason}, params=params, timeout=None if wait else 30)


def _pause_at_a_question(view: dict[str, Any], reason: str, out: Output) -> dict[str, Any]:
    """Request a pause, show the open question that it waits for, then wait for the pause, and return its result."""
    action = _pause(view, reason, wait=False)
    if action["status"] != "pause_requested":
        return action
    requested = [each for each in events(view["id"], view["head"], 0)["events"] if each["kind"] == "pause.requested"]
    for line in words.open_question(view):
        out.say(f"  {line}")
    if requested:
        out.say(f"  It is paused at the latest at {moment(requested[-1]['event']['force_at'])}, by force.")
    return {**_pause(view, reason, wait=True), "retry_called_off": action["retry_called_off"]}


@command
@click.option("--reattach", is_flag=True, help="The agent that went on in its container, or nothing.")
@click.option("--native", is_flag=True, help="The agent's own conversation or nothing, even if the agent refused it.")
@click.option("--context", is_flag=True, help="A new conversation that begins with a compiled context.")
@click.option("--context-file", "own", metavar="FILE", help="A new conversation that begins with the text in FILE.")
@click.option("--history", is_flag=True, help="A new conversation that begins with the history.")
@click.option("--fresh", is_flag=True, help="A new conversation that knows the plan and the files alone.")
@click.option("--workspace-only", is_flag=True, help="Make the worktree again if it is gone, and start no agent.")
@click.option("--from", "snapshot", help="Take files and tasks back first: a snapshot's id or number, or `previous`.")
@limited
@quota
@click.option("--agent", help="Another agent takes over, by a compiled context.")
@click.option("--model", help="The model that the other agent works with.")
@click.option("--mode", help="The mode that the other agent works in.")
@click.option("--detach", is_flag=True, help="Go on, and do not follow.")
@chosen
def resume(
    out: Output,
    workflow: str | None,
    snapshot: str | None,
    own: str | None,
    agent: str | None,
    model: str | None,
    mode: str | None,
    detach: bool,
    **options: Any,
) -> None:
    """Go on with a workflow where it stopped.

    Without an option Segue takes the first way that is possible: join an agent that went on in its container; continue
    the agent's own conversation; begin a new one with a compiled context, with the history, or with the plan and the
    files alone. The price of each way is shown.

    With --from, the present state is saved as a snapshot first, so that going back can be undone. While the agent is at
    work, limits that are given alone are changed, and the work goes on.
    """
    limits = given(options)
    wanted = [name for name, asked in options.items() if asked]
    if len(wanted) > 1:
        raise click.UsageError(f"--{wanted[0]} and --{wanted[1]} exclude each other.".replace("_", "-"))
    if own is not None and wanted not in ([], ["context"]):
        raise click.UsageError(f"--context-file and --{wanted[0]} exclude each other.".replace("_", "-"))
    context = read_context(own) if own is not None else None
    if snapshot is not None and wanted == ["workspace_only"]:
        raise click.UsageError("--from and --workspace-only exclude each other.")
    ensure_server(out)
    view = find.paused(workflow, or_at_work=bool(limits))
    if wanted == ["workspace_only"]:
        _restore(view, out)
        return
    if limits:
        changed = _limit(view, limits, any((wanted, own, snapshot, agent, model, mode)))
        if changed["status"] == find.AT_WORK:
            tell_changed(view, changed, limits, out)
            return
    way = wanted[0] if wanted else None
    body = {"environment": environment(), "way": way, "agent": agent, "model": model, "mode": mode}
    body |= {"snapshot": snapshot, "context": context, "wait_for_quota": limits.get("wait_for_quota", False)}
    resumed = client.call("POST", f"/api/workflows/{view['id']}/resume", body, timeout=120)
    _summarize(view, out)
    out.say(f"\nResuming workflow {view['slug']}...")
    explain(resumed, out)
    for line in words.proposed(view) if resumed["status"] == "blocked" else ():
        out.say(f"  {line}")
    _tell_undone(resumed, view, out)
    if detach:
        out.result(resumed)
        return
    watch(client.call("GET", f"/api/workflows/{view['id']}"), view["head"], out)


def _limit(view: dict[str, Any], limits: dict[str, Any], asks_for_more: bool) -> dict[str, Any]:
    """Change the workflow's limits, and return the workflow; raise WrongState if it is at work and more was asked
    for."""
    if asks_for_more and view["status"] == find.AT_WORK:
        hint = f"Give the limits alone, or pause it first: segue pause {view['slug']}"
        raise WrongState(f"{view['slug']} is at work; nothing but its limits can be changed now.", hint=hint)
    return change(view, limits)


def _restore(view: dict[str, Any], out: Output) -> None:
    """Ask the server to make the worktree again, and print where it is; no agent is started."""
    restored = client.call("POST", f"/api/workflows/{view['id']}/workspace", {}, timeout=120)
    out.say(f"✓ The worktree is there, on branch {restored['branch']}; no agent was started.")
    out.say(f"  {restored['worktree']}")
    if restored["note"]:
        out.say(f"! {restored['note']}")
    out.result(restored)


def _summarize(view: dict[str, Any], out: Output) -> None:
    """Print what a workflow is resumed from: session, time of the pause, tasks, trouble and undelivered prompts."""
    session = view["session"]
    out.say(f"Resuming from session {session['number']}:" if session else "Resuming before its first session:")
    out.say(f"  Paused: {moment(view['paused_at'] or view['updated_at'])}")
    out.say(f"  Tasks: {words.progress(view)}")
    for line in words.trouble(view)[:1]:
        out.say(f"  ! {line}")
    for prompt in view["undelivered"]:
        out.say(f"  ! It is not known whether the agent got prompt {prompt['prompt_id']}; it is not sent again.")


def _tell_undone(resumed: dict[str, Any], view: dict[str, Any], out: Output) -> None:
    """Print what going back has changed, and how to undo it; nothing if no snapshot was saved before."""
    if resumed["saved"] is None:
        return
    for sentence in resumed["undone"]:
        out.say(f"  - Undone: {plain(sentence)}")
    if resumed["left_alone"]:
        out.say(f"  ! No snapshot holds these, so they stayed as they are: {plain(', '.join(resumed['left_alone']))}")
    out.say(f"  What was there before is {resumed['saved']}; have it again with:")
    out.say(f"  segue resume --from {resumed['saved']} {view['slug']}")


@command
@click.argument("text")
@click.option("--detach", is_flag=True, help="Send it, and do not wait for the answer.")
@click.option("--now", is_flag=True, help="Interrupt an agent that is at work; it goes on with its task after.")
@click.option(
    "--image",
    "images",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="Show a picture with it (PNG, JPEG, GIF or WebP, up to 5 MB); may be given five times.",
)
@chosen
def prompt(out: Output, workflow: str | None, text: str, detach: bool, now: bool, images: tuple[Path, ...]) -> None:
    """Send TEXT to a workflow's agent, and print its answer; - reads TEXT from standard input.

    An agent that is gone is brought back for it, but does not work on the plan: use `segue resume` for that.
    """
    message, pictures = read_text(text), [talk.picture(file) for file in images]
    ensure_server(out)
    view = find.listening(workflow)
    talk.say(view, message, pictures, detach, now, out)


@command
@click.option("-r", "--reason", default="", help="Why, for the record.")
@chosen
def cancel(out: Output, workflow: str | None, reason: str) -> None:
    """End a workflow for good; its worktree stays."""
    view = find.unfinished(workflow)
    action = client.call("POST", f"/api/workflows/{view['id']}/cancel", {"reason": reason}, timeout=120)
    out.say(f"✓ Workflow {view['slug']} cancelled")
    out.result(action)


@command
@click.option("-f", "--follow", is_flag=True, help="Go on printing as things happen, until Ctrl-C.")
@click.option("--after", type=click.IntRange(0, MOST), default=0, help="Begin after this event.")
@chosen
def logs(out: Output, workflow: str | None, follow: bool, after: int) -> None:
    """Print what happened; with --json, one event in each line."""
    view = find.latest(workflow)
    after = _log(view, after, out)
    with suppress(KeyboardInterrupt):
        while follow and not (view["status"] in ENDED and after >= view["head"]):
            after = _log(view, after, out, LONG_POLL)
            view = client.call("GET", f"/api/workflows/{view['id']}")


def _log(view: dict[str, Any], after: int, out: Output, wait: float = 0) -> int:
    """Print the events after number `after`, up to the journal's present end; return the number of the last."""
    head: int | None = None
    while head is None or after < head:
        page = events(view["id"], after, wait)
        head = head or page["head"]
        for record in page["events"]:
            out.result(record)
            text = render.line(record, render.names_of(view))
            if text is not None:
                out.say(f"{record['seq']:>5}  {moment(record['at'])}  {text}")
            after = record["seq"]
        if not page["events"]:
            break
    return after

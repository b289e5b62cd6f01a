"""`segue import`: a session that Segue never ran becomes a workflow."""

from pathlib import Path
from typing import Any

import click

from segue import client
from segue.cli.command import ensure_server, environment
from segue.cli.issue import is_text
from segue.cli.output import Output, counted, plain
from segue.model.errors import BadInput, SessionNotFound

DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
PATIENCE = 600.0
"""Seconds that a very large file may take."""

_DONE = {
    "imported": "✓ Imported {file} as {slug}",
    "extended": "✓ {file} has grown: what is new was added to {slug}",
    "already_imported": "{file} is imported already, as {slug} ({status})",
}


@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--agent", type=click.Choice(["claude", "codex"]), help="Its newest session in this repository.")
@click.option("--repository", type=DIRECTORY, help="Where to go on if the session's own directory is not there.")
def import_(out: Output, file: Path | None, agent: str | None, repository: Path | None) -> None:
    """Make a session of Claude Code or Codex into a workflow that can be resumed: FILE is its own session file.

    The file is read and left as it is; no agent is started. The same content twice is one workflow.
    """
    if (file is None) == (agent is None):
        raise click.UsageError("Give either FILE or --agent.")
    if file is not None and not is_text(str(file)):
        raise BadInput("The name of this file is not UTF-8.", hint="Copy it to a name that is, and import the copy.")
    place = repository or (Path.cwd() if file is None else None)
    request = {
        "file": str(file.absolute()) if file else None,
        "agent": agent,
        "repository": str(place.absolute()) if place else None,
        "environment": environment(),
    }
    _, started = ensure_server(out)
    try:
        imported = client.call("POST", "/api/imports", request, timeout=PATIENCE)
    except (BadInput, SessionNotFound):
        if started:
            # What was refused leaves nothing behind, not even the server that refused it.
            client.stop_idle_server()
        raise
    _tell(imported, out)
    out.result(imported)


def _tell(imported: dict[str, Any], out: Output) -> None:
    """Print the result of an import, and how to go on with the workflow."""
    view = imported["workflow"]
    name = plain(Path(imported["file"]).name)
    out.say(_DONE[imported["status"]].format(file=name, slug=view["slug"], status=view["status"]))
    out.say(f"  {imported['agent']}, {counted(imported['lines'], 'thing')} said or done: {plain(view['title'])}")
    out.say(f"  Worktree {view['worktree']} on branch {view['branch']}")
    if imported["unread_lines"]:
        out.say(f"  ! Lines of the file that could not be read, and were left out: {imported['unread_lines']}")
    if not imported["clean_boundary"]:
        calls = ", ".join(plain(call, 60) for call in imported["open_calls"])
        out.say("  ! It ends in the middle of a turn" + (f"; nobody saw these calls end: {calls}" if calls else ""))
    if view["status"] == "paused":
        out.say(f"  Go on with: segue resume {view['slug']}; the ways and prices: segue sessions show {view['slug']}")

"""Parts that all commands share: `--json`, errors as sentences, and how a workflow is named."""

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from typing import Any, cast

import click

from segue import client
from segue.cli.issue import is_text
from segue.cli.output import Output
from segue.model.errors import BadInput, SegueError

Command = Callable[..., None]


def in_group(group: click.Group) -> Callable[[Command], click.Command]:
    """Add a command to `group`, with `--json`; an error ends it with a sentence and exit code 1."""

    def command(function: Command) -> click.Command:
        @wraps(function)
        def run(*arguments: Any, as_json: bool, **options: Any) -> None:
            out = Output(as_json)
            try:
                _require_text(click.get_current_context())
                function(out, *arguments, **options)
            except SegueError as error:
                out.complain(error)
                sys.exit(1)

        # A function whose name is taken in Python (`list`) ends in an underscore, which its command has not.
        name = function.__name__.rstrip("_")
        return group.command(name)(click.option("--json", "as_json", is_flag=True, help="Print JSON.")(run))

    return command


def _require_text(context: click.Context) -> None:
    """Raise BadInput if an argument is not UTF-8 text, which cannot be sent to the server; file names are not
    checked."""
    for parameter in context.command.params:
        given: object = context.params.get(parameter.name or "")
        values = cast(tuple[object, ...], given) if isinstance(given, tuple) else (given,)
        is_file = isinstance(parameter.type, click.Path)
        if not is_file and not all(is_text(value) for value in values if isinstance(value, str)):
            raise BadInput(f"{parameter.get_error_hint(context)} is not UTF-8 text.")


def chosen(function: Command) -> Command:
    """Add the arguments that name a workflow; the command gets its name, or None for that of the current directory."""

    @click.argument("workflow", required=False)
    @click.option("-w", "--workflow-id", help="The workflow, by id or slug; the same as WORKFLOW.")
    @wraps(function)
    def run(out: Output, *arguments: Any, workflow: str | None, workflow_id: str | None, **options: Any) -> None:
        if workflow and workflow_id and workflow != workflow_id:
            raise click.UsageError("WORKFLOW and --workflow-id name two different workflows.")
        function(out, workflow or workflow_id, *arguments, **options)

    return run


def ensure_server(out: Output, *arguments: str) -> tuple[client.Server, bool]:
    """Start the server if none runs, and note that; return it, and True if it was started here."""
    server, started = client.ensure_server(arguments)
    if started:
        out.note(f"Started the Segue server (pid {server.pid}).")
    return server, started


@contextmanager
def borrowed_server() -> Generator[None]:
    """Start the server if none runs; on exit stop it if it was started here and is idle."""
    _, started = client.ensure_server()
    try:
        yield
    finally:
        if started:
            client.stop_idle_server()


def environment() -> dict[str, str]:
    """Return the caller's variables, without those that are not text, which JSON cannot carry."""
    return {name: value for name, value in os.environ.items() if is_text(name) and is_text(value)}

"""What all commands have in common: `--json`, errors as sentences, and how a workflow is named."""

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
    """Commands of `group`, each with `--json`, whose errors end as a sentence and exit code 1."""

    def command(function: Command) -> click.Command:
        @wraps(function)
        def run(*arguments: Any, as_json: bool, **options: Any) -> None:
            out = Output(as_json)
            try:
                _refuse_bytes(click.get_current_context())
                function(out, *arguments, **options)
            except SegueError as error:
                out.complain(error)
                sys.exit(1)

        # `list` is a word of Python's, so a function may end in an underscore that its command has not.
        name = function.__name__.rstrip("_")
        return group.command(name)(click.option("--json", "as_json", is_flag=True, help="Print JSON.")(run))

    return command


def _refuse_bytes(context: click.Context) -> None:
    """What is no text reaches no server; only a file may be called as it likes."""
    for parameter in context.command.params:
        if not isinstance(parameter.type, click.Path) and not _is_said(context.params.get(parameter.name or "")):
            raise BadInput(f"{parameter.get_error_hint(context)} is not UTF-8 text.")


def _is_said(given: object) -> bool:
    words = cast(tuple[object, ...], given) if isinstance(given, tuple) else (given,)
    return all(is_text(word) for word in words if isinstance(word, str))


def chosen(function: Command) -> Command:
    """A command about one workflow: named by its id or slug, or else that of the current directory."""

    @click.argument("workflow", required=False)
    @click.option("-w", "--workflow-id", help="The workflow, by id or slug; WORKFLOW says the same.")
    @wraps(function)
    def run(out: Output, *arguments: Any, workflow: str | None, workflow_id: str | None, **options: Any) -> None:
        if workflow and workflow_id and workflow != workflow_id:
            raise click.UsageError("WORKFLOW and --workflow-id name two different workflows.")
        function(out, workflow or workflow_id, *arguments, **options)

    return run


def ensure_server(out: Output, *arguments: str) -> tuple[client.Server, bool]:
    server, started = client.ensure_server(arguments)
    if started:
        out.note(f"Started the Segue server (pid {server.pid}).")
    return server, started


@contextmanager
def borrowed_server() -> Generator[None]:
    """A server for one question: one that was started only for it is stopped again."""
    _, started = client.ensure_server()
    try:
        yield
    finally:
        if started:
            client.stop_idle_server()


def environment() -> dict[str, str]:
    """The caller's variables, but for those that are no text: JSON cannot carry them."""
    return {name: value for name, value in os.environ.items() if is_text(name) and is_text(value)}

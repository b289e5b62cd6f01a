"""`segue usage`: what a workflow used, and what that cost."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from segue import client
from segue.cli import find
from segue.cli.command import chosen
from segue.cli.output import Output, counted, plain, table
from segue.cli.words import cost

Fields = Mapping[str, Any]
HEAD = ("", "input", "cached", "output", "cost", "")


@chosen
def usage(out: Output, workflow: str | None) -> None:
    """Show the tokens and the cost of a workflow, by session and by model.

    A cost is what the agent reports, else what its tokens cost by the bundled prices, else unknown.
    """
    view = find.latest(workflow)
    document = client.call("GET", f"/api/workflows/{view['id']}/usage")
    out.result(document)
    if not document["sessions"]:
        out.say(f"No agent has been at work on {view['slug']} yet.")
        return
    for line in table([HEAD, *_rows(document)], right=(1, 2, 3, 4)):
        out.say(line)


def _rows(document: Fields) -> Iterator[tuple[str, ...]]:
    """Yield a row for each session and model, and one for all together."""
    for session in document["sessions"]:
        yield _row(f"{_name(session)} ({session['agent']}, {counted(session['turns'], 'turn')})", session["account"])
    yield from _models(document["models"])
    yield _row("together", document["account"])


def _name(session: Fields) -> str:
    """Return the name of a session: its role, else its number, else its id."""
    if session["role"] != "writer":
        return session["role"]
    return f"session {session['number']}" if session["number"] else plain(session["session_id"])


def _models(models: Iterable[Fields]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each model."""
    for each in models:
        yield _row(plain(each["model"]) if each["model"] else "a model without a name", each["account"])


def _row(name: str, account: Fields) -> tuple[str, ...]:
    """Return tokens and cost of an account, with the source of the cost unless it is unknown."""
    tokens = (_number(account[kind]) for kind in ("input_tokens", "cached_tokens", "output_tokens"))
    return name, *tokens, cost(account), "" if account["cost_source"] == "unknown" else account["cost_source"]


def _number(tokens: int | None) -> str:
    """Return a count of tokens, or `unknown` for None."""
    return "unknown" if tokens is None else f"{tokens:,}"

"""`segue agents`: the configured agents, and their own reports."""

import sys
from collections.abc import Iterator
from shlex import join
from typing import Any

import click

from segue import client
from segue.cli.command import borrowed_server, environment, in_group
from segue.cli.output import Output, plain, reason, table


@click.group()
def agents() -> None:
    """Look at the agents that can do the work."""


command = in_group(agents)


@command
def list_(out: Output) -> None:
    """List the agents, and whether their programs are on your PATH; the server looks, and starts none."""
    with borrowed_server():
        document = client.call("POST", "/api/agents", {"environment": environment()})
    out.result(document)
    for line in table([row for each in document["agents"] for row in _rows(each)]):
        out.say(line)


def _rows(agent: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield two lines of one agent: its program or the problem with it, and how its conversations come back."""
    where = agent["program"] or plain(agent["problem"]) or agent["install"] or f"{agent['command'][0]} is not on PATH"
    yield agent["name"], "found" if agent["program"] else "missing", where
    yield "", "", f"comes back {agent['resume']}"


@command
@click.argument("name")
def check(out: Output, name: str) -> None:
    """Start the agent NAME, and show its version and its features; no conversation is opened."""
    path = f"/api/agents/{client.in_path(name)}/check"
    with borrowed_server():
        found = client.call("POST", path, {"environment": environment()}, timeout=180)
    out.result(found)
    out.say(f"{'✓' if found['ok'] else '✗'} {name}" + ("" if found["ok"] else f": {reason(found['problem'])}"))
    for line in table(list(_facts(found))):
        out.say(f"  {line}")
    if not found["ok"]:
        sys.exit(1)


def _facts(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the result of an agent's check as rows of name and value."""
    agent = found["agent"]
    yield "command", join(agent["command"])
    if not agent["problem"]:
        yield "program", agent["program"] or "not found on PATH"
    if found["ok"]:
        yield "version", " ".join(plain(part) for part in (found["reported"], found["version"]) if part) or "unknown"
        yield "can", ", ".join(found["capabilities"]) or "nothing special"
        yield "logins", ", ".join(plain(each) for each in found["logins"]) or "none named"
    yield "comes back", found["resume"] or agent["resume"]
    if found["hint"]:
        yield "do" if not found["ok"] else "note", reason(found["hint"])
    if agent["login"] and agent["login"] not in found["hint"]:
        yield "login", agent["login"]

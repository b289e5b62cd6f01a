"""Starts the agent."""

import argparse
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from segue import __version__
from segue.drivers.skeleton.entry import run
from segue.drivers.skeleton.payloads import Payload, introduction

if TYPE_CHECKING:
    from segue.drivers.skeleton.agent_program import Starter


def main() -> int:
    """Run the agent program for a LangGraph graph; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -P -m segue.drivers.langgraph", description="Be a graph's agent.")
    parser.add_argument(
        "graph",
        nargs="?",
        default=os.environ.get("SEGUE_LANGGRAPH_GRAPH", ""),
        help="module:attribute or path/to/file.py:attribute; without it, the value of SEGUE_LANGGRAPH_GRAPH",
    )
    return run(_introduce, partial(_load, parser.parse_args().graph))


def _introduce() -> Payload:
    """Return name, version and capabilities."""
    return introduction("langgraph", __version__, sessions=("close", "fork", "list", "resume"))


def _load(name: str) -> "Starter":
    """Import the graph, and return the agent's starter; a graph that cannot be imported fails later, with a
    conversation."""
    from segue.drivers.langgraph.agent import start
    from segue.drivers.langgraph.graphs import NoGraph, find

    # No event loop runs here: a module may start one of its own while it is imported.
    try:
        graph = find(name, Path.cwd())
    except NoGraph as problem:
        graph = problem
    return partial(start, graph)


if __name__ == "__main__":
    sys.exit(main())

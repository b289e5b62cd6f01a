"""Starts the agent."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from segue.drivers.langgraph.agent import serve
from segue.drivers.langgraph.graphs import NoGraph, find
from segue.drivers.langgraph.pipes import take_over
from segue.drivers.langgraph.threads import place


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -P -m segue.drivers.langgraph", description="Be a graph's agent.")
    parser.add_argument(
        "graph",
        nargs="?",
        default=os.environ.get("SEGUE_LANGGRAPH_GRAPH", ""),
        help="module:attribute or path/to/file.py:attribute; without it, what SEGUE_LANGGRAPH_GRAPH says",
    )
    given = parser.parse_args()
    pipes = take_over()
    # Before the loop runs: a module may start one of its own while it is imported.
    try:
        graph = find(given.graph, Path.cwd())
    except NoGraph as problem:
        graph = problem
    asyncio.run(serve(pipes, graph, place(os.environ)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

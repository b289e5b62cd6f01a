"""Starts the scripted model, prints its address, and serves until it is ended."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from segue.model.errors import SegueError
from segue.testing.model.answers import Script
from segue.testing.model.answers_yaml import read_script
from segue.testing.model.server import scripted_model


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve a scripted model until it is interrupted; return 130 then, or 2 if the script is bad."""
    parser = argparse.ArgumentParser(prog="python -m segue.testing.model", description="A scripted model on loopback.")
    parser.add_argument("--port", type=int, default=0, help="the port; 0 takes any free one")
    parser.add_argument("--script", type=Path, help="what it answers (YAML); without: says Done.")
    parser.add_argument("--log", type=Path, help="append every request to this file, one JSON line each")
    given = parser.parse_args(arguments)
    try:
        script = read_script(given.script) if given.script else Script()
    except SegueError as error:
        sys.stderr.write(f"model: {error.message}\n")
        return 2
    try:
        anyio.run(_serve, script, given.port, given.log)
    except KeyboardInterrupt:
        return 130
    return 0


async def _serve(script: Script, port: int, log: Path | None) -> None:
    """Serve the model, and print its address."""
    async with scripted_model(script, port=port, log=log) as model:
        sys.stdout.write(f"{model.url}\n")
        sys.stdout.flush()
        await anyio.sleep_forever()


if __name__ == "__main__":
    sys.exit(main())

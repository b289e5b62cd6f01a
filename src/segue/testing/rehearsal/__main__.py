"""Starts the rehearsal agent."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from segue.model.errors import SegueError
from segue.testing.rehearsal.agent import serve
from segue.testing.rehearsal.conversation_store import ConversationStore
from segue.testing.rehearsal.diary import Diary
from segue.testing.rehearsal.script import Script
from segue.testing.rehearsal.script_yaml import read_script


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rehearsal agent; return 2 with a message if the home is missing or the script is bad, else 0."""
    given = _parser().parse_args(arguments)
    if given.home is None:
        sys.stderr.write("rehearsal: give --home DIR, or set SEGUE_REHEARSAL_HOME\n")
        return 2
    try:
        script = read_script(given.script) if given.script else Script()
        asyncio.run(serve(script, ConversationStore(given.home), Diary(given.diary or given.home / "diary.jsonl")))
    except SegueError as error:
        sys.stderr.write(f"rehearsal: {error.message}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    parser = argparse.ArgumentParser(prog="python -m segue.testing.rehearsal", description="A scripted ACP agent.")
    parser.add_argument("--script", type=Path, default=_path("SCRIPT"), help="what it does (YAML); without: says Done.")
    parser.add_argument("--home", type=Path, default=_path("HOME"), help="where it keeps its conversations")
    parser.add_argument("--diary", type=Path, default=_path("DIARY"), help="its diary; without: HOME/diary.jsonl")
    return parser


def _path(name: str) -> Path | None:
    """Return the path in a SEGUE_REHEARSAL variable, or None."""
    value = os.environ.get(f"SEGUE_REHEARSAL_{name}")
    return Path(value) if value else None


if __name__ == "__main__":
    sys.exit(main())

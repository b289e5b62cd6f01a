"""`python -m certify [AGENT …]`: certify agents, and write build/certify.json."""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from certify import programs
from certify.agents import CANDIDATES, Candidate
from certify.page import page
from certify.play import Observed, perform, playing
from certify.proof import Row, judge, with_compaction
from segue.testing.rehearsal.diary import DiaryEntry

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "build" / "certify.json"
PAGE = ROOT / "docs" / "reference" / "agents.md"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m certify", description="Kill real agents, and bring them back.")
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=f"which ones; without: {', '.join(CANDIDATES)}")
    parser.add_argument("--page", action="store_true", help="only write docs/reference/agents.md from the results")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave everything the agents wrote in this directory")
    given = parser.parse_args(arguments)
    unknown = set(given.agents) - set(CANDIDATES)
    if unknown:
        parser.error(f"unknown agent: {min(unknown)}")
    rows = [] if given.page else [_certify(CANDIDATES[name], given.keep) for name in given.agents or CANDIDATES]
    # Some agents alone would leave a page without the others.
    if given.page or {row["agent"] for row in _results()} >= set(CANDIDATES):
        PAGE.write_text(page(_results()))
    return 1 if any("failed" in (row.native_resume, row.after_compaction) for row in rows) else 0


def _certify(candidate: Candidate, keep: Path | None) -> Row:
    _say(f"{candidate.name}: installing {programs.PROGRAMS[candidate.name].version} …")
    programs.install(candidate.name)
    begin = monotonic()
    seen, diary = _play(candidate, keep)
    row = judge(candidate, seen, diary, datetime.now(UTC).date().isoformat())
    if candidate.full is not None:
        row = with_compaction(row, _play(candidate, keep, compacting=True)[0])
    row = replace(row, seconds=round(monotonic() - begin, 1))
    _tell(row)
    _save(row)
    return row


def _play(candidate: Candidate, keep: Path | None, *, compacting: bool = False) -> tuple[Observed, list[DiaryEntry]]:
    root = Path(tempfile.mkdtemp(prefix=f"segue-certify-{candidate.name}-", dir=keep))
    try:
        with playing(candidate, root / "stage", compacting=compacting) as (stage, actor, log):
            return perform(stage, actor, candidate, log, compacting=compacting), actor.client_diary()
    finally:
        if keep is None:
            shutil.rmtree(root, ignore_errors=True)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _tell(row: Row) -> None:
    _say(f"{row.agent}: {row.native_resume} ({row.seconds:g} s)")
    for sentence in row.evidence:
        _say(f"  + {sentence}")
    for sentence in row.problems:
        _say(f"  - {sentence}")


def _results() -> list[dict[str, Any]]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else []


def _save(row: Row) -> None:
    """The new row in place of the agent's old one; the others stay."""
    known = {known["agent"]: known for known in _results()} | {row.agent: row.document()}
    RESULTS.parent.mkdir(exist_ok=True)
    ordered = [known[name] for name in CANDIDATES if name in known]
    RESULTS.write_text(json.dumps(ordered, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())

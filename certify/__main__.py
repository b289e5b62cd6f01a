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
from secrets import token_hex
from time import monotonic
from typing import Any

import anyio

from certify import installed_programs
from certify.agents_page import page, rows_of
from certify.candidates import CANDIDATES, CertifiedAgent, Housing, environment
from certify.handover import HandoverRow, certify_handover, pairs
from certify.play import Observed, perform, playing
from certify.proof import Row, judge, unplayed, with_compaction, with_suite, without_what_is_lacking
from certify.story import AGENT, StoryRow, certify_story
from certify.suite import examine
from segue.drivers import Launch, load
from segue.settings import BUILT_IN_AGENTS
from segue.testing.rehearsal.diary import DiaryEntry

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "build" / "certify.json"
HANDOVERS = ROOT / "build" / "handovers.json"
STORY = ROOT / "build" / "story.json"
PAGE = ROOT / "docs" / "reference" / "agents.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Certify the chosen agents; return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m certify", description="Kill real agents, and bring them back.")
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=f"which ones; without: {', '.join(CANDIDATES)}")
    parser.add_argument("--page", action="store_true", help="only write the results into docs/reference/agents.md")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave everything the agents wrote in this directory")
    given = parser.parse_args(arguments)
    unknown = set(given.agents) - set(CANDIDATES)
    if unknown:
        parser.error(f"unknown agent: {min(unknown)}")
    chosen = [] if given.page else given.agents or list(CANDIDATES)
    rows = [_certify(CANDIDATES[name], given.keep) for name in chosen]
    handovers = [_hand_over(before, after, given.keep) for before, after in pairs(set(chosen))]
    stories = [_tell_story(given.keep)] if AGENT in chosen else []
    # A run of some agents must not remove the others from the page.
    if given.page or {row["agent"] for row in _read(RESULTS)} >= set(CANDIDATES):
        PAGE.write_text(_page())
    verdicts = [verdict for row in rows for verdict in (row.native_resume, row.after_compaction)]
    return 1 if "failed" in [*verdicts, *(row.verdict for row in (*handovers, *stories))] else 0


def _page() -> str:
    """Compose the page from new results, and from its own rows for agents that were not certified now."""
    before = rows_of(PAGE.read_text())
    rows = {row["agent"]: row for row in (*before.rows, *_read(RESULTS))}
    return page(
        [rows[name] for name in CANDIDATES if name in rows],
        _read(HANDOVERS) or before.handovers,
        _read(STORY) or before.stories,
    )


def _tell_story(keep: Path | None) -> StoryRow:
    root = Path(tempfile.mkdtemp(prefix=f"segue-certify-story-{AGENT}-", dir=keep))
    try:
        row = certify_story(CANDIDATES[AGENT], root / "stage", _today())
    finally:
        if keep is None:
            shutil.rmtree(root, ignore_errors=True)
    _say(f"the whole story with {row.agent}: {row.verdict} ({row.seconds:g} s)")
    _explain(row.evidence, row.problems)
    STORY.write_text(json.dumps([row.document()], indent=2) + "\n")
    return row


def _hand_over(before: CertifiedAgent, after: CertifiedAgent, keep: Path | None) -> HandoverRow:
    root = Path(tempfile.mkdtemp(prefix=f"segue-certify-{before.name}-{after.name}-", dir=keep))
    try:
        row = certify_handover(before, after, root / "stage", _today())
    finally:
        if keep is None:
            shutil.rmtree(root, ignore_errors=True)
    _say(f"{row.before} → {row.after}: {row.verdict}")
    _explain(row.evidence, row.problems)
    known = {(each["before"], each["after"]): each for each in _read(HANDOVERS)}
    known[row.before, row.after] = row.document()
    HANDOVERS.write_text(json.dumps(list(known.values()), indent=2) + "\n")
    return row


def _certify(candidate: CertifiedAgent, keep: Path | None) -> Row:
    _say(f"{candidate.name}: installing …")
    installed_programs.install(candidate.name)
    begin = monotonic()
    row = _played(candidate, keep) if candidate.plays else _started(candidate)
    if (examined := examine(candidate.name)) is not None:
        row = with_suite(row, examined)
    row = replace(without_what_is_lacking(row, candidate), seconds=round(monotonic() - begin, 1))
    _tell(row)
    _save(row)
    return row


def _played(candidate: CertifiedAgent, keep: Path | None) -> Row:
    seen, diary = _play(candidate, keep)
    row = judge(candidate, seen, diary, _today())
    if candidate.full is not None:
        row = with_compaction(row, _play(candidate, keep, compacting=True)[0])
    return row


def _started(candidate: CertifiedAgent) -> Row:
    """Start an agent that cannot play without its vendor's server, and return its row."""
    agent = BUILT_IN_AGENTS[candidate.name]
    with tempfile.TemporaryDirectory(prefix=f"segue-certify-{candidate.name}-") as place:
        housing = Housing(Path(place, "agent-home"), "", Path(place))
        launch = Launch(
            command=(*agent.command, *installed_programs.install(candidate.name)),
            directory=Path(place),
            environment=environment(candidate, housing),
            execution=f"certify-{token_hex(4)}",
        )
        introduction = anyio.run(load(agent.driver).introduce, launch)
    return unplayed(candidate, introduction, _today())


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _play(
    candidate: CertifiedAgent, keep: Path | None, *, compacting: bool = False
) -> tuple[Observed, list[DiaryEntry]]:
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
    _explain(row.evidence, row.problems)


def _explain(evidence: Sequence[str], problems: Sequence[str]) -> None:
    for sentence in evidence:
        _say(f"  + {sentence}")
    for sentence in problems:
        _say(f"  - {sentence}")


def _read(file: Path) -> list[dict[str, Any]]:
    return json.loads(file.read_text()) if file.exists() else []


def _save(row: Row) -> None:
    """Write the row in place of the agent's old one."""
    known = {known["agent"]: known for known in _read(RESULTS)} | {row.agent: row.document()}
    RESULTS.parent.mkdir(exist_ok=True)
    ordered = [known[name] for name in CANDIDATES if name in known]
    RESULTS.write_text(json.dumps(ordered, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())

"""Page `docs/reference/agents.md`: written from results, and read again to keep agents certified elsewhere."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HEAD = """# Agents

<!-- Written by `python -m certify --page` from build/certify.json and from itself; do not edit. -->

`make certify` installs the real programs at the versions below and runs Segue with each one against the [scripted
model](scripted-model.md). It kills the server with SIGKILL twice (in the middle of a shell command, and while a
permission request is open), and resumes. *Verified* means that the same conversation continued both times: in the
model's request log the first request after each resume contains the earlier prompts, answers, tool calls and
results; the journal contains no answer and no tool call twice; nothing acknowledged is lost; and no process is
left. *After compaction* is the same with one kill, after the agent has compacted its conversation because the model
reported a full window. The model is scripted, so the table shows nothing about the quality of answers.

*Not certified* means that something that the agent needs was not available. What was seen is listed below.

| agent | program | advertises | way back | native resume | after compaction | checked |
|---|---|---|---|---|---|---|
"""


HANDED = """
## From one agent to another

The first agent is paused after two tasks, the server is killed and restarted, and `segue resume --agent OTHER` lets
the other agent continue with a resume context. *Verified* means that the successor's first request in the model's
log contains what it must know, that it did only the next task, and that the exam's score is in the journal.

| from | to | hand-over | exam | tokens | checked |
|---|---|---|---|---|---|
"""

STORY = """
## The whole story

An agent proposes a plan, which waits for approval through a kill of the server. The first task is reviewed,
rejected, corrected and approved. At the soft cap a second session continues with a resume context. The server is
killed in the middle of a command, and the work is resumed and completed.

| agent | program | story | checked |
|---|---|---|---|
"""

SHARED = "Evidence"
"""Heading of the sentences that several rows have in common."""


def page(
    rows: Sequence[Mapping[str, Any]], handovers: Sequence[Mapping[str, Any]], stories: Sequence[Mapping[str, Any]]
) -> str:
    """Return the text of the page."""
    lines = [_line(row) for row in rows]
    handed = HANDED + "".join(map(_handed, handovers)) if handovers else ""
    story = STORY + "".join(map(_story_line, stories)) if stories else ""
    titled = [(row["agent"], row) for row in rows]
    titled += [(f"{row['before']} → {row['after']}", row) for row in handovers]
    titled += [(f"The whole story: {row['agent']}", row) for row in stories]
    return HEAD + "\n".join(lines) + "\n" + handed + story + _evidence(titled)


def _story_line(row: Mapping[str, Any]) -> str:
    cells = (f"`{row['agent']}`", row["version"].replace(", ", "<br>"), f"**{row['verdict']}**", row["checked"])
    return f"| {' | '.join(cells)} |\n"


def _handed(row: Mapping[str, Any]) -> str:
    score = "none" if row["score"] is None else f"{row['score']:.0%}"
    cells = (f"`{row['before']}`", f"`{row['after']}`", f"**{row['verdict']}**", score, row["tokens"], row["checked"])
    return f"| {' | '.join(map(str, cells))} |\n"


def _line(row: Mapping[str, Any]) -> str:
    program = row["version"].replace(", ", "<br>")
    reason = f" ({row['reason']})" if row.get("reason") else ""
    verdict = f"**{row['native_resume'].replace('_', ' ')}**{reason}"
    offers = ", ".join(row["capabilities"]) or "nothing"
    compacted = str(row.get("after_compaction", "not_tried")).replace("_", " ")
    cells = (f"`{row['agent']}`", program, offers, row["way"], verdict, compacted, row["checked"])
    return f"| {' | '.join(cells)} |"


def _evidence(titled: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Return the sections of evidence: first the sentences of several rows, then the others under each row's title."""
    owners: dict[str, list[str]] = {}
    for title, row in titled:
        for sentence in row["evidence"]:
            owners.setdefault(sentence, []).append(title)
    shared = {sentence: titles for sentence, titles in owners.items() if len(titles) > 1}
    common = "".join(f"- {each} ({', '.join(f'`{title}`' for title in titles)})\n" for each, titles in shared.items())
    text = f"\n## {SHARED}\n\n{common}" if shared else ""
    for title, row in titled:
        own = "".join(f"- {sentence}\n" for sentence in row["evidence"] if sentence not in shared)
        own += "".join(f"- **not so:** {sentence}\n" for sentence in row["problems"])
        text += f"\n## {title}\n\n{own}" if own else ""
    return text


# ── reading a page ──────────────────────────────────────────────────────────────────────────────────

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PageRows:
    """Rows of a page."""

    rows: list[Row]
    handovers: list[Row]
    stories: list[Row]


def rows_of(text: str) -> PageRows:
    """Return the rows of a page, with their evidence."""
    head, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    found = {title: body for title, _, body in (section.partition("\n") for section in sections)}
    return PageRows(
        rows=[row | _shown(found, row["agent"]) for row in map(_row, _cells(head))],
        handovers=[
            row | _shown(found, f"{row['before']} → {row['after']}")
            for row in map(_handover, _cells(found.get("From one agent to another", "")))
        ],
        stories=[
            row | _shown(found, f"The whole story: {row['agent']}")
            for row in map(_story, _cells(found.get("The whole story", "")))
        ],
    )


def _cells(section: str) -> Iterator[list[str]]:
    for line in section.splitlines():
        if line.startswith("| `"):
            yield [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]


def _row(cells: list[str]) -> Row:
    agent, program, offers, way, verdict, compacted, checked = cells
    return {
        "agent": agent,
        "version": program.replace("<br>", ", "),
        "capabilities": [] if offers == "nothing" else offers.split(", "),
        "way": way,
        **_verdict(verdict),
        "after_compaction": compacted.replace(" ", "_"),
        "checked": checked,
    }


def _verdict(cell: str) -> Row:
    _, verdict, reason = cell.split("**")
    return {"native_resume": verdict.replace(" ", "_"), "reason": reason.strip(" ()")}


def _handover(cells: list[str]) -> Row:
    before, after, verdict, score, tokens, checked = cells
    return {
        "before": before,
        "after": after,
        "verdict": verdict.strip("*"),
        "score": None if score == "none" else int(score.rstrip("%")) / 100,
        "tokens": tokens,
        "checked": checked,
    }


def _story(cells: list[str]) -> Row:
    agent, program, verdict, checked = cells
    return {
        "agent": agent,
        "version": program.replace("<br>", ", "),
        "verdict": verdict.strip("*"),
        "checked": checked,
    }


def _shown(sections: Mapping[str, str], title: str) -> Row:
    lines = [line.removeprefix("- ") for line in sections.get(title, "").splitlines() if line.startswith("- ")]
    problem = "**not so:** "
    return {
        "evidence": [
            *_common(sections.get(SHARED, ""), title),
            *(line for line in lines if not line.startswith(problem)),
        ],
        "problems": [line.removeprefix(problem) for line in lines if line.startswith(problem)],
    }


def _common(section: str, title: str) -> Iterator[str]:
    for sentence, titles in re.findall(r"^- (.*) \((`.*`)\)$", section, re.MULTILINE):
        if f"`{title}`" in titles.split(", "):
            yield sentence

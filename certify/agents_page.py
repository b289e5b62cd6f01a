"""`docs/reference/agents.md`, written from the results, and read again: not every agent is certified everywhere."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HEAD = """# Agents

<!-- Written by `python -m certify --page` from build/certify.json and from itself; do not edit. -->

`make certify` installs the real programs at the versions below, lets Segue work with each one against the
[scripted model](scripted-model.md), kills the server with SIGKILL twice (in the middle of a shell command, and while a
permission waits for an answer), and resumes. *Verified* means that the same conversation went on both times: the
model's request log shows the earlier prompts, answers, tool calls and results in the first request after each resume;
no answer and no tool call stands twice in the journal, nothing acknowledged is lost, and no process is left over.
*After compaction* is the same with one kill, after the agent has summed up its conversation by itself because the model
said that the window was full. The model is scripted, so nothing here speaks of the quality of an answer.

*Not certified* means that something that belongs to the agent cannot be had here. What was seen all the same stands
below.

| agent | program | advertises | way back | native resume | after compaction | checked |
|---|---|---|---|---|---|---|
"""


HANDED = """
## From one agent to another

The first agent is paused after two tasks, the server is killed and started again, and `segue resume --agent OTHER` lets
the other one go on from a compiled context. *Verified* means that the successor's first request in the model's log
holds what it must know, that it did the next task and no other, and that the exam's score is in the journal.

| from | to | hand-over | exam | tokens | checked |
|---|---|---|---|---|---|
"""

STORY = """
## The whole story

One agent proposes a plan, which waits for approval through a kill of the server; the first task is reviewed, not
approved, mended and approved; at the soft cap a second session goes on with a compiled context by itself; the server is
killed in the middle of a command; the work is resumed, and completed.

| agent | program | story | checked |
|---|---|---|---|
"""


def page(
    rows: Sequence[Mapping[str, Any]], handovers: Sequence[Mapping[str, Any]], stories: Sequence[Mapping[str, Any]]
) -> str:
    lines = [_line(row) for row in rows]
    handed = HANDED + "".join(map(_handed, handovers)) if handovers else ""
    shown = [_evidence(row["agent"], row) for row in rows]
    shown += [_evidence(f"{row['before']} → {row['after']}", row) for row in handovers]
    shown += [_evidence(f"The whole story: {row['agent']}", row) for row in stories]
    story = STORY + "".join(map(_story_line, stories)) if stories else ""
    return HEAD + "\n".join(lines) + "\n" + handed + story + "".join(shown)


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


def _evidence(title: str, row: Mapping[str, Any]) -> str:
    found = "".join(f"- {sentence}\n" for sentence in row["evidence"])
    problems = "".join(f"- **not so:** {sentence}\n" for sentence in row["problems"])
    return f"\n## {title}\n\n{found}{problems}"


# ── what a page says ────────────────────────────────────────────────────────────────────────────────

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PageRows:
    """Rows of a page."""

    rows: list[Row]
    handovers: list[Row]
    stories: list[Row]


def rows_of(text: str) -> PageRows:
    """Parse the rows of a page, with their evidence."""
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
        "evidence": [line for line in lines if not line.startswith(problem)],
        "problems": [line.removeprefix(problem) for line in lines if line.startswith(problem)],
    }

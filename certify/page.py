"""`docs/reference/agents.md`, written from the results."""

from collections.abc import Mapping, Sequence
from typing import Any

HEAD = """# Agents

<!-- Written by `python -m certify --page` from build/certify.json; do not edit. -->

`make certify` installs the real programs at the versions below, lets Segue work with each one against the
[scripted model](scripted-model.md), kills the server with SIGKILL twice (in the middle of a shell command, and while a
permission waits for an answer), and resumes. *Verified* means that the same conversation went on both times: the
model's request log shows the earlier prompts, answers, tool calls and results in the first request after each resume;
no answer and no tool call stands twice in the journal, nothing acknowledged is lost, and no process is left over.
*After compaction* is the same with one kill, after the agent has summed up its conversation by itself because the model
said that the window was full. The model is scripted, so nothing here speaks of the quality of an answer.

| agent | program | advertises | way back | native resume | after compaction | checked |
|---|---|---|---|---|---|---|
"""


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [_line(row) for row in rows]
    return HEAD + "\n".join(lines) + "\n" + "".join(_evidence(row) for row in rows)


def _line(row: Mapping[str, Any]) -> str:
    program = row["version"].replace(", ", "<br>")
    verdict = str(row["native_resume"]).replace("_", " ")
    offers = ", ".join(row["capabilities"]) or "nothing"
    compacted = str(row.get("after_compaction", "not_tried")).replace("_", " ")
    cells = (f"`{row['agent']}`", program, offers, row["way"], f"**{verdict}**", compacted, row["checked"])
    return f"| {' | '.join(cells)} |"


def _evidence(row: Mapping[str, Any]) -> str:
    found = "".join(f"- {sentence}\n" for sentence in row["evidence"])
    problems = "".join(f"- **not so:** {sentence}\n" for sentence in row["problems"])
    return f"\n## {row['agent']}\n\n{found}{problems}"

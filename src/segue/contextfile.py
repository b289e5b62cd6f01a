"""`python -m segue.contextfile FILE --budget N`: a resume context from an agent's own session file.

Prints the context and nothing else; with `--exam`, what the exam says goes to the error stream. Needs no server.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from segue.drivers.native import read
from segue.model.errors import BadInput, NotASession, SegueError
from segue.model.facts import SessionFacts
from segue.resume.compiler import DEFAULT_BUDGET, ResumeContext
from segue.resume.exam import Grade, compile_examined
from segue.snapshot.facts import facts_of

LEAST_BUDGET = 100


def facts_of_file(file: Path) -> SessionFacts:
    if not file.is_file():
        raise NotASession(f"{file} is not a file." if file.exists() else f"{file} does not exist.")
    recording = read(file)
    facts = facts_of(recording.lines)
    if not facts.lines:
        raise NotASession(f"{file.name} holds no conversation yet.")
    return replace(facts, unread_lines=recording.tally.unread)


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    try:
        if given.budget < LEAST_BUDGET:
            raise BadInput(f"A budget of {given.budget} tokens holds nothing.", hint=f"Give at least {LEAST_BUDGET}.")
        facts = facts_of_file(given.file)
        context, grade = compile_examined(facts, given.budget)
    except SegueError as error:
        sys.stderr.write(f"segue: {error.message} {error.hint}".rstrip() + "\n")
        return 1
    if given.json:
        sys.stdout.write(json.dumps(_document(grade, context, facts), ensure_ascii=True) + "\n")
        return 0
    sys.stdout.buffer.write(context.text.encode(errors="replace"))
    if given.exam:
        sys.stdout.flush()
        sys.stderr.write(_report(grade, context, facts))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="segue context", description="Compile a resume context from a session file.")
    parser.add_argument("file", type=Path, help="a session file of Claude Code or Codex (JSON lines)")
    parser.add_argument("--budget", type=int, default=DEFAULT_BUDGET, help="tokens the context may take")
    parser.add_argument("--exam", action="store_true", help="say on the error stream how well the context did")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def _document(grade: Grade, context: ResumeContext, facts: SessionFacts) -> dict[str, object]:
    return {
        "context": context.text,
        "tokens": context.tokens,
        "budget": context.budget,
        "score": grade.score,
        "by_category": dict(grade.by_category),
        "missing": [probe.about for probe in grade.missing],
        "unread_lines": facts.unread_lines,
    }


def _report(grade: Grade, context: ResumeContext, facts: SessionFacts) -> str:
    lines = [f"exam: {grade.score:.0%}, about {context.tokens} of {context.budget} tokens"]
    if facts.unread_lines:
        lines.append(f"  lines of the file that could not be read: {facts.unread_lines}")
    lines += [f"  {category}: {score:.0%}" for category, score in grade.by_category.items()]
    lines += [f"  missing: {probe.about}" for probe in grade.missing]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())

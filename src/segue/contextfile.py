"""`python -m segue.contextfile FILE --budget N`: a resume context from an agent's own session file.

Prints the context and nothing else; with `--exam`, what the exam found goes to the error stream. Needs no server.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from segue.drivers.native import read
from segue.exam import Evidence, Grade, entries_of_file, evidence_of, grade
from segue.model.errors import BadInput, NotASession, SegueError
from segue.model.events import AgentMessage, AgentThought, TodoUpdated, ToolCalled, ToolFinished, ToolProgressed
from segue.model.facts import SessionFacts
from segue.model.transcript import Said, Summarised, UserSaid
from segue.resume.compiler import DEFAULT_BUDGET, ResumeContext, compile_context, document
from segue.resume.repair import compile_repaired
from segue.snapshot.facts import facts_of

LEAST_BUDGET = 100
LARGEST_EXAMINED = 32 * 1024 * 1024
"""Bytes of a file up to which its context is examined before it is printed."""


def facts_of_file(file: Path) -> SessionFacts:
    """Read a session file into facts of the session; raise NotASession if it is no file or holds no conversation."""
    if not file.is_file():
        raise NotASession(f"{file} is not a file." if file.exists() else f"{file} does not exist.")
    recording = read(file)
    facts = facts_of(recording.lines)
    if not facts.lines:
        raise NotASession(f"{file.name} holds no conversation yet.")
    return replace(facts, unread_lines=recording.tally.unread)


def evidence_of_file(file: Path) -> Evidence:
    """Read a session file as the exam does, by code of its own."""
    with file.open("rb") as lines:
        return evidence_of(entries_of_file(lines))


def compiled_file(file: Path, budget: int) -> tuple[ResumeContext, Grade | None, SessionFacts]:
    """Return the context of a session file, its grade and the facts; a file too large for the exam has no grade
    (None)."""
    facts = facts_of_file(file)
    if file.stat().st_size > LARGEST_EXAMINED:
        return compile_context(facts, budget), None, facts
    record = evidence_of_file(file)
    context, verdict = compile_repaired(facts, budget, lambda text: grade(text, record))
    return context, verdict, facts


def expanded(file: Path, numbers: Iterable[int]) -> str:
    """Return these lines of the file in full: as read, or raw if the reader skips them; raise BadInput if one is
    missing."""
    wanted = sorted(set(numbers))
    told: dict[int, list[str]] = {number: [] for number in wanted}
    for line in read(file).lines:
        if line.number in told:
            told[line.number].append(_in_full(line.said))
        elif line.number > wanted[-1]:
            break
    with file.open("rb") as stream:
        raw = {at: text for at, text in enumerate(islice(stream, wanted[-1]), start=1) if at in told}
    missing = [number for number in wanted if number not in raw]
    if missing:
        raise BadInput(f"{file.name} has no line {missing[0]}.")
    parts = (
        f"#{number}\n" + ("\n".join(told[number]) or raw[number].decode(errors="replace").strip()) for number in wanted
    )
    return "\n\n".join(parts) + "\n"


def _in_full(said: Said) -> str:
    """Return one entry of the conversation as text, marked with its kind."""
    match said:
        case UserSaid(text=text):
            return f"[user] {text}"
        case AgentMessage(text=text) | AgentThought(text=text):
            return f"[agent] {text}"
        case Summarised(text=text):
            return f"[summary] {text}"
        case ToolCalled(title=title, input=given):
            return f"[call] {title}\n" + "\n".join(f"{key}: {value}" for key, value in given.items())
        case ToolFinished(status=status, output=output):
            return f"[{status}] {output}"
        case ToolProgressed(output=output):
            return f"[still running] {output}"
        case TodoUpdated(entries=entries):
            return "\n".join(f"[{each.status}] {each.content}" for each in entries)
        case _:
            return f"[{said.kind}] {said}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the context of a session file, or some of its lines; return 1 after an error, which goes to stderr, else
    0."""
    given = _parser().parse_args(arguments)
    try:
        if given.expand:
            sys.stdout.buffer.write(expanded(given.file, _numbers(given.expand)).encode(errors="replace"))
            return 0
        if given.budget < LEAST_BUDGET:
            raise BadInput(f"A budget of {given.budget} tokens holds nothing.", hint=f"Give at least {LEAST_BUDGET}.")
        context, verdict, facts = compiled_file(given.file, given.budget)
    except SegueError as error:
        sys.stderr.write(f"segue: {error.message} {error.hint}".rstrip() + "\n")
        return 1
    if given.format == "json" or given.json:
        sys.stdout.write(json.dumps(_document(verdict, context, facts), ensure_ascii=True) + "\n")
        return 0
    sys.stdout.buffer.write(context.text.encode(errors="replace"))
    if given.exam:
        sys.stdout.flush()
        sys.stderr.write(_report(verdict, context, facts))
    return 0


def _numbers(text: str) -> list[int]:
    """Read line numbers such as `12,#40`; raise BadInput if one is no number or below 1."""
    try:
        numbers = [int(part.strip().lstrip("#")) for part in text.split(",")]
    except ValueError:
        raise BadInput(f"{text} is no list of line numbers.", hint="Give them as 12 or 12,40.") from None
    if min(numbers) < 1:
        raise BadInput("Lines are counted from 1.")
    return numbers


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    parser = argparse.ArgumentParser(prog="segue context", description="Compile a resume context from a session file.")
    parser.add_argument("file", type=Path, help="a session file of Claude Code or Codex (JSON lines)")
    parser.add_argument("--budget", type=int, default=DEFAULT_BUDGET, help="tokens the context may take")
    parser.add_argument("--expand", metavar="N[,M]", help="print these lines of the file in full, and nothing else")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to print the context")
    parser.add_argument("--exam", action="store_true", help="say on the error stream how well the context did")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def _document(verdict: Grade | None, context: ResumeContext, facts: SessionFacts) -> dict[str, object]:
    """Return the context, its grade (None if not examined) and the count of unread lines for JSON."""
    return {
        **document(context),
        "score": verdict.score if verdict else None,
        "by_category": dict(verdict.by_category) if verdict else {},
        "missing": [question.about for question in verdict.missing] if verdict else [],
        "falsehoods": [each.why for each in verdict.falsehoods] if verdict else [],
        "unread_lines": facts.unread_lines,
    }


def _report(verdict: Grade | None, context: ResumeContext, facts: SessionFacts) -> str:
    """Return the result of the exam as lines of text: the score, unread lines, falsehoods and gaps."""
    size = f"about {context.tokens} of {context.budget} tokens"
    lines = [f"exam: {verdict.score:.0%}, {size}" if verdict else f"exam: not taken, the file is too large; {size}"]
    if facts.unread_lines:
        lines.append(f"  lines of the file that could not be read: {facts.unread_lines}")
    if verdict:
        lines += [f"  FALSE: {each.why}" for each in verdict.falsehoods]
        lines += [f"  {category}: {score:.0%}" for category, score in verdict.by_category.items()]
        lines += [f"  missing: {question.about}" for question in verdict.missing]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())

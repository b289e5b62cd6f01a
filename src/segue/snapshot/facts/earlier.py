"""The beginning of a continued session: a compiled context, a note, or the summary of a vendor's compaction.

It is read as the continuation that it is: its request is the request, its rules are rules, its headings do not nest.
"""

import re
from dataclasses import dataclass

from segue.snapshot.facts.text import flattened, sentences

_MARKED = re.compile(
    r"^\s*(?:##? Session Resume Context\b|#{1,3} .{0,40}\b(?:hand-?over|hand-?off|resume) (?:note|context)\b)",
    re.IGNORECASE,
)
_NOW = "This is what to do now:\n\n"
_SECTION = re.compile(r"^(?:#{1,4}\s+|\d{1,2}\.\s+(?=[A-Z][\w ,/&-]{2,50}:\s*$))(.+?):?\s*$", re.MULTILINE)
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_SOURCE = re.compile(r"\s*\((?:→ )?(?:see |withdrawn in |later )?#\d+[^()]*\)|^#\d+(?:[,–-]\d+)*:?\s+")
_QUOTED = re.compile(r"^[“\"](.*?)[”\"](?=\s*(?:\(|→|$))")
_TYPE = re.compile(r"^\[\w+\] ")
_KINDS = (
    ("request", re.compile(r"request|original issue|\bgoal\b|primary request|\btask\b(?!s)", re.IGNORECASE)),
    ("rules", re.compile(r"\brules?\b|constraint", re.IGNORECASE)),
    ("said", re.compile(r"user said|user messages|said since", re.IGNORECASE)),
    (
        "skipped",
        re.compile(
            r"where it stands|git state|files changed|plan status|^note\b|what to do next|tdd state|resume context",
            re.IGNORECASE,
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Earlier:
    """Content of a context, note or summary that opens a session."""

    request: str = ""
    rules: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    now: str = ""
    """The request that came with it."""


def handed_down(text: str, *, summary: bool = False) -> Earlier | None:
    """Read a text as the context of an earlier session; return None if it is none."""
    if not summary and not _MARKED.match(text):
        return None
    body, _, now = text.partition(_NOW)
    body = body.partition("\n---\n")[0] if now else body
    found: dict[str, list[str]] = {"request": [], "rules": [], "said": [], "told": [], "skipped": []}
    marks = list(_SECTION.finditer(body))
    ends = [mark.start() for mark in marks[1:]] + [len(body)]
    if not marks:
        return Earlier(told=tuple(sentences(body)), now=now.strip())
    for mark, end in zip(marks, ends, strict=True):
        kind = next((kind for kind, pattern in _KINDS if pattern.search(mark[1])), "told")
        part = body[mark.end() : end].strip()
        if kind == "request":
            found[kind].append(_SOURCE.sub("", part))
        elif kind in ("rules", "said"):
            found[kind] += [each for line in part.split("\n") if (each := _item(line))]
        elif kind == "told":
            found[kind] += [_SOURCE.sub("", _TYPE.sub("", each)) for each in sentences(part)]
    return Earlier(
        request="\n".join(found["request"]).strip(),
        rules=tuple(dict.fromkeys(found["rules"])),
        said=tuple(dict.fromkeys(found["said"])),
        told=tuple(each for each in found["told"] if not each.startswith("(no ")),
        now=now.strip(),
    )


def _item(line: str) -> str:
    """Return an item of a list without mark, source and quotation marks; empty for placeholders."""
    words = _SOURCE.sub("", _ITEM.sub("", line.strip()))
    quoted = _QUOTED.match(words)
    words = flattened(quoted[1] if quoted else words)
    return "" if words.startswith(("(no ", "…")) else words

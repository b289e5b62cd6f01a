"""Prose as whole sentences, without code, tables' frames and marks of emphasis."""

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_SPACE = re.compile(r"\s+")
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{1,200})\]\(([^()\s]{1,400})\)")
_LINE = re.compile(r"#L(\d+)(?:-L?\d+)?$")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)]|[a-z]\)|\[[ x~]\])\s+")
_HEADING = re.compile(r"^\s*#{1,6}\s+|^\s*\*\*[^*]{2,60}\*\*:?\s*$")
_RULER = re.compile(r"^[\s|:+=_*─━-]+$")
# A sentence ends before a capital, a quotation or a figure, and in scripts without capitals at their own full stop.
_END = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=[\"'`(\[*A-ZÀ-Þ0-9\u0400-\u042f])|(?<=[。！？])")
_ABBREVIATED = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|cf|etc|approx|resp|incl|bzw|z\.B|d\.h|Nr|No|St)\.|\b[A-Z]\.|^\d{1,2}\.)$"
)
_ENDS = frozenset(".!?:;。！？`")
_BEGINS = re.compile(r"[A-ZÀ-Þ#*`\-]|[\u3040-\u9fff\uac00-\ud7af]")
SHORTEST = 12
LONGEST = 420
PARAGRAPH = 4_000
"""Characters above which broken lines are joined no further."""
MARGIN = 48
"""Characters from which a line may have been broken at a margin."""
JOINED = 300
"""Characters up to which the items of a list stand in one sentence with the line that leads to it."""


def unlinked(text: str) -> str:
    """Return the text with each link to a file as its path alone, and each other link as its words."""
    return _LINK.sub(_target, text) if "](" in text else text


def _target(link: re.Match[str]) -> str:
    """Return a link's path with its line, or its words if it leads to no file."""
    words, target = link[1], link[2].strip("<>[]")
    if "://" in target or "/" not in target:
        return words
    return _LINE.sub(r":\1", target)


def joined(before: str, after: str) -> str:
    """Join two pieces of an agent's text; a sentence that ended and one that begins are two paragraphs."""
    apart = before[-1:] in _ENDS and after[:1] not in " \n" and _BEGINS.match(after) is not None
    return f"{before}\n\n{after}" if apart else f"{before}{after}"


def flattened(text: str) -> str:
    """Return text on one line with single spaces."""
    return _SPACE.sub(" ", text).strip()


def clipped(text: str, limit: int) -> str:
    """Return the text, cut at a space and marked if it is longer than the limit."""
    if len(text) <= limit:
        return text
    words = text[:limit].rsplit(" ", 1)[0]
    return (words if len(words) > 0.7 * limit else text[:limit]).rstrip(" ,;:") + "…"


def split(text: str) -> list[str]:
    """Split one paragraph into sentences; an abbreviation ends none."""
    parts: list[str] = []
    for part in _END.split(text):
        if part is None or not (part := part.strip()):
            continue
        if parts and _ABBREVIATED.search(parts[-1]):
            parts[-1] = f"{parts[-1]} {part}"
        else:
            parts.append(part)
    return parts


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a message; a list stands with the line that leads to it."""
    lead, items = "", [""]
    if "```" in text or "~~~" in text:
        text = _FENCE.sub("\n", text)
    for line in _unwrapped(unlinked(text).split("\n")):
        if not line.strip() or _RULER.match(line) or _HEADING.match(line):
            if line.strip():
                yield from _flushed(lead, items)
                lead, items = "", [""]
            continue
        bullet = _BULLET.match(line)
        words = _plain(line[bullet.end() :] if bullet else line)
        if not words:
            continue
        if bullet and lead:
            if len(lead) + len(items[-1]) + len(words) > JOINED and items[-1]:
                items.append(words)
            else:
                items[-1] = f"{items[-1]}; {words}" if items[-1] else words
            continue
        yield from _flushed(lead, items)
        lead, items = "", [""]
        if words.endswith((":", "：")) and not bullet:
            *before, lead = split(words) or [words]
            yield from _told(before)
        else:
            yield from _told(split(words))
    yield from _flushed(lead, items)


def _unwrapped(lines: list[str]) -> list[str]:
    """Join lines that were broken at a margin: the one before has no end mark, and the next begins no item."""
    joined: list[str] = []
    for line in lines:
        before = joined[-1].rstrip() if joined else ""
        goes_on = MARGIN <= len(before) <= PARAGRAPH and before[-1] not in ".!?:;。！？|" and not _HEADING.match(before)
        if goes_on and line.strip() and not _BULLET.match(line) and line.lstrip()[0] not in "|#>*-":
            joined[-1] = f"{before} {line.strip()}"
        else:
            joined.append(line)
    return joined


def _plain(line: str) -> str:
    """Return a line without emphasis; a table's row as its cells."""
    line = line.strip()
    if line.startswith("|") and line.endswith("|"):
        line = ", ".join(cell.strip() for cell in line.strip("|").split("|") if cell.strip())
    return flattened(line.replace("**", "").replace("<br>", " "))


def _flushed(lead: str, items: list[str]) -> Iterator[str]:
    """Yield a list's lead with its first items, then the other items."""
    first, *others = items
    if lead or first:
        yield from _told([f"{lead} {first}".strip()])
    yield from _told(others)


def _told(parts: list[str]) -> Iterator[str]:
    """Yield the sentences that are long enough, cut at the limit."""
    for part in parts:
        if len(part) >= SHORTEST or (len(part) >= 4 and not part.isascii()):
            yield clipped(part, LONGEST)

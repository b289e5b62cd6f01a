"""Texts that the agent wrote for others to read: commit messages, pull requests, review replies, documents."""

import re
from collections.abc import Iterator

from segue.model.events import ToolCalled
from segue.snapshot.facts.commands import commands_of
from segue.snapshot.facts.text import sentences

_WRITES = re.compile(r"git (?:-C \S+ )?(?:commit|tag)|\bg(?:h|lab) (?:pr|mr|issue|api|release)")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n(.*?)\n\s*\1", re.DOTALL)
_GIVEN = re.compile(
    r"(?:\s-[a-z]*m|--message|--body|--title|\s-b|\s-t|-f body|--field body|-F body|--notes)[ =](?:\"((?:[^\"\\]"
    r"|\\.)*)\"|'([^']*)')",
    re.DOTALL,
)
_SIGNED = re.compile(r"(?:Co-Authored-By|Signed-off-by|Generated with|Claude-Session|Entire-|🤖)", re.IGNORECASE)
_DOCUMENT = re.compile(r"\.(?:md|markdown|rst|txt|adoc)$", re.IGNORECASE)
_ADDED = re.compile(
    r"^\*\*\* (?:Add|Update) File: (\S+\.(?:md|rst|txt|adoc))$(.*?)(?=^\*\*\* |\Z)", re.MULTILINE | re.DOTALL
)
_UNESCAPED = re.compile(r"\\([`\"'$\\])")
MOST_OF_A_DOCUMENT = 120


def written_in(call: ToolCalled) -> Iterator[str]:
    """Yield the sentences that a call wrote for people."""
    for command in commands_of(call):
        if _WRITES.search(command):
            here = [found[1] for found in _HEREDOC.findall(command)]
            given = [one or other for one, other in _GIVEN.findall(command)]
            told = [_UNESCAPED.sub(r"\1", text.replace("\\n", "\n")) for text in here or given]
            yield from (each for text in told for each in sentences(text) if not _SIGNED.match(each))
    for text in _documents(call):
        yield from list(sentences(text))[:MOST_OF_A_DOCUMENT]


def _documents(call: ToolCalled) -> Iterator[str]:
    """Yield the texts that a call writes into documents, or adds by a patch."""
    content = call.input.get("content") or call.input.get("file_text")
    if isinstance(content, str) and any(_DOCUMENT.search(path) for path in call.paths):
        yield content
    patch = call.input.get("input") or call.input.get("patch")
    if isinstance(patch, str) and "*** " in patch:
        for _, body in _ADDED.findall(patch):
            yield "\n".join(line[1:] for line in body.split("\n") if line.startswith("+"))

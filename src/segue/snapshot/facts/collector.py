"""Hears a transcript line by line and keeps what a successor may need."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, assert_never

from segue.model.checkpoint import Usage
from segue.model.events import (
    AgentMessage,
    AgentThought,
    FileAction,
    FilesChanged,
    JsonObject,
    TodoEntry,
    TodoUpdated,
    ToolCalled,
    ToolFinished,
    ToolProgressed,
    UsageReported,
    WorkLocation,
)
from segue.model.facts import Ask, FileFact, Passage, SessionFacts
from segue.model.transcript import Line, Summarised, UserSaid
from segue.snapshot.facts import names as n
from segue.snapshot.facts import passages
from segue.snapshot.facts.commands import Purpose, commands_of, file_shown, purpose, searches
from segue.snapshot.facts.decisions import Decisions
from segue.snapshot.facts.edits import Edit, change_told, edits_of, elsewhere
from segue.snapshot.facts.runs import MOST_COMMANDS, Runs
from segue.snapshot.facts.words import constraints, sentences, unlinked

MOST_FILES = 80
MOST_SAID = 60
LONGEST_ASK = 6000
LONGEST_PASTE = 3000
"""A message longer than this is mostly something pasted, in which nobody laid down rules."""
LATEST = 6
_CALLS: dict[str, n.Place] = {
    "execute": n.COMMAND, "edit": n.EDIT, "delete": n.EDIT, "read": n.LOOK, "search": n.LOOK,
}  # fmt: skip
_ANSWERS: dict[str, n.Place] = {"execute": n.OUTPUT, "read": n.READ, "search": n.FOUND}
# A command is a look at files when it does nothing else, whether the agent has a tool of its own for that or not.
_COMMANDS: dict[Purpose, tuple[n.Place, n.Place]] = {
    "test": (n.COMMAND, n.OUTPUT), "work": (n.COMMAND, n.OUTPUT), "git": (n.COMMAND, n.VERSIONS),
    "talk": (n.COMMAND, n.OUTPUT), "look": (n.LOOK, n.READ),
}  # fmt: skip


@dataclass(slots=True)
class Collector:
    """The state of the hearing."""

    number: int = 0
    standing: WorkLocation = field(default_factory=WorkLocation)
    asks: list[Ask] = field(default_factory=list[Ask])
    summary: str = ""
    plan: str = ""
    todos: tuple[TodoEntry, ...] = ()
    files: dict[str, FileFact] = field(default_factory=dict[str, FileFact])
    looked_at: dict[str, FileFact] = field(default_factory=dict[str, FileFact])
    calls: dict[str, tuple[int, ToolCalled]] = field(default_factory=dict[str, tuple[int, ToolCalled]])
    """Calls that are not finished, and the lines in which they were begun."""
    runs: Runs = field(default_factory=Runs)
    decisions: Decisions = field(default_factory=Decisions)
    latest: deque[Passage] = field(default_factory=lambda: deque[Passage](maxlen=LATEST))
    names: n.Names = field(default_factory=n.Names)
    usage: Usage = field(default_factory=Usage)
    intent: str = ""
    """What the agent said last about what it is doing."""

    def hear(self, line: Line) -> None:
        self.number = line.number
        match line.said:
            case UserSaid(text=text):
                self._asked(text)
            case AgentMessage(text=text):
                self._spoke("agent", text)
            case AgentThought(text=text):
                self._spoke("thought", text)
            case Summarised(text=text):
                self.summary = text
                self.names.hear(self.number, n.SUMMARY, text)
            case TodoUpdated(entries=entries):
                self.todos = tuple(entry for entry in entries if entry.content)
                self.names.hear(self.number, n.AGENT, "\n".join(entry.content for entry in entries))
            case ToolCalled():
                self._called(line.said)
            case ToolProgressed():
                self._progressed(line.said)
            case ToolFinished():
                self._finished(line.said)
            case FilesChanged(changes=changes):
                for path, action in changes:
                    self._changed(Edit(path, action))
            case WorkLocation():
                self._stands(line.said)
            case UsageReported():
                self._used(line.said)
            case _:
                assert_never(line.said)

    def facts(self) -> SessionFacts:
        asked = self.asks[-1].number if self.asks else 0
        names, found = passages.tell(self.names, self.number, asked)
        request, *said = self.asks or [None]
        return SessionFacts(
            lines=self.number,
            directory=self.standing.directory or "",
            branches=tuple(self.runs.branches),
            commit=self.standing.commit or "",
            request=request,
            said=tuple(ask for ask in said if ask is not None),
            summary=self.summary,
            plan=self.plan,
            todos=self.todos,
            files=tuple(self.files.values())[-MOST_FILES:],
            looked_at=tuple(self.looked_at.values())[-MOST_FILES:],
            commands=tuple(self.runs.commands.values())[-MOST_COMMANDS:],
            tests=self.runs.tests(),
            errors=tuple(self.runs.errors.values()),
            decisions=self.decisions.facts(),
            commits=tuple(self.runs.commits),
            latest=tuple(self.latest),
            # What was begun for an earlier request, and never told its end, matters no more.
            open_calls=tuple(title_of(call) for begun, call in self.calls.values() if begun > asked),
            names=names,
            passages=found,
            usage=self.usage,
        )

    def _asked(self, text: str) -> None:
        text = text.strip()
        # The same prompt is sometimes recorded twice, when it was sent and when it was taken up.
        if self.asks and self.asks[-1].text == text[:LONGEST_ASK]:
            return
        rules = constraints(text) if self.asks and len(text) <= LONGEST_PASTE else ()
        self.asks.append(Ask(number=self.number, text=text[:LONGEST_ASK], constraints=rules))
        if len(self.asks) > MOST_SAID + 1:
            del self.asks[1]
        self.names.hear(self.number, n.USER, text)
        self.decisions.asked(self.number, rules)

    def _spoke(self, speaker: Literal["agent", "thought"], text: str) -> None:
        text = self.names.shortened(unlinked(text))
        self.names.hear(self.number, n.AGENT if speaker == "agent" else n.THOUGHT, text)
        told = list(sentences(text))
        if told:
            self.intent = told[-1].rstrip(":")
        self.decisions.spoke(self.number, told)
        if speaker == "agent":
            self.latest.append(Passage(number=self.number, speaker="agent", text=text))

    def _called(self, call: ToolCalled) -> None:
        self.usage = replace(self.usage, tool_calls=self.usage.tool_calls + 1)
        self.calls[call.call_id] = (self.number, call)
        edits, (place, _) = self._edits(call), _places(call)
        for edit in edits:
            self.names.hear(self.number, n.EDIT, f"{edit.path}: {edit.change}")
        source = self.names.relative(edits[0].path) if edits else ""
        self.names.hear(self.number, place, "\n".join(_texts(call.input)), source)
        for path in _files_read(call):
            self._read(path)
        if call.tool == "plan" and isinstance(plan := call.input.get("plan"), str):
            self.plan = plan

    def _progressed(self, news: ToolProgressed) -> None:
        _, call = self.calls.get(news.call_id, (0, None))
        if call is not None:
            for command in commands_of(call):
                self.runs.progressed(self.number, command, news.output)

    def _finished(self, result: ToolFinished) -> None:
        _, call = self.calls.pop(result.call_id, (0, None))
        tool = call.tool if call else ""
        read = _files_read(call) if call and result.status == "completed" else []
        # An edit is answered with what was edited, which is known already.
        if tool != "edit" or result.status == "failed":
            place = _places(call)[1] if call else n.OTHER
            source = self.names.relative(read[0]) if read else ""
            self.names.hear(self.number, place, result.output, source)
        if call is None:
            return
        if tool == "ask" and result.status == "completed":
            self.decisions.asked(self.number, tuple(sentences(result.output)))
        failed = result.status == "failed"
        for edit in () if failed and tool != "execute" else self._edits(call):
            self._changed(self._told(edit, result.output) if tool == "edit" else edit)
        for command in commands_of(call):
            self.runs.finished(self.number, command, failed, result.output)

    def _edits(self, call: ToolCalled) -> list[Edit]:
        return [edit for edit in edits_of(call) if not elsewhere(self.names.relative(edit.path))]

    def _told(self, edit: Edit, answer: str) -> Edit:
        """The edit, with what was written as the answer tells it; some agents announce it without."""
        if edit.change or not (change := change_told(answer)):
            return edit
        self.names.hear(self.number, n.EDIT, f"{edit.path}: {change}")
        return replace(edit, change=change)

    def _changed(self, edit: Edit) -> None:
        path = self.names.relative(edit.path)
        before = self.files.pop(path, None)
        action: FileAction = "created" if before and before.action == "created" != edit.action else edit.action
        if edit.action == "deleted":
            action = "deleted"
        times = before.times if before else 0
        self.files[path] = FileFact(
            number=self.number,
            path=path,
            action=action,
            times=times + 1 if edit.change or not before else times,
            reason=self.intent,
            change=edit.change or (before.change if before else ""),
        )
        self.runs.edit(path)

    def _read(self, path: str) -> None:
        path = self.names.relative(path)
        before = self.looked_at.pop(path, None)
        times = before.times + 1 if before else 1
        self.looked_at[path] = FileFact(number=self.number, path=path, action="read", times=times, reason=self.intent)

    def _stands(self, standing: WorkLocation) -> None:
        known = self.standing
        if standing.branch and standing.branch != known.branch:
            self.runs.on(standing.branch)
        self.standing = WorkLocation(
            directory=known.directory or standing.directory,
            branch=standing.branch or known.branch,
            commit=standing.commit or known.commit,
        )
        self.names.directory = self.standing.directory or ""

    def _used(self, report: UsageReported) -> None:
        used = self.usage
        self.usage = replace(
            used,
            context_tokens=report.context_tokens or used.context_tokens,
            window=report.window or used.window,
            input_tokens=used.input_tokens + (report.input_tokens or 0),
            output_tokens=used.output_tokens + (report.output_tokens or 0),
            cached_tokens=(used.cached_tokens or 0) + (report.cached_tokens or 0) or None,
            cost_usd=report.cost_usd if report.cost_usd is not None else used.cost_usd,
        )


def _texts(value: object) -> Iterator[str]:
    """Every text in a call's input, whatever its shape."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        fields: JsonObject = value  # pyright: ignore[reportUnknownVariableType]
        for each in fields.values():
            yield from _texts(each)
    elif isinstance(value, list):
        items: list[object] = value  # pyright: ignore[reportUnknownVariableType]
        for each in items:
            yield from _texts(each)


def _places(call: ToolCalled) -> tuple[n.Place, n.Place]:
    """Where the names stand that are given to a call, and those in what it answers."""
    command = next(iter(commands_of(call)), "")
    if not command:
        return _CALLS.get(call.tool, n.OTHER), _ANSWERS.get(call.tool, n.OTHER)
    asked, answered = _COMMANDS[purpose(command)]
    return asked, n.FOUND if answered == n.READ and searches(command) else answered


def _files_read(call: ToolCalled) -> list[str]:
    if call.tool == "read":
        return list(call.paths)
    return [file for command in commands_of(call)[:1] if (file := file_shown(command))]


def title_of(call: ToolCalled) -> str:
    """A call by its name, and what it was about."""
    shown = next(iter(commands_of(call)), "") or ", ".join(call.paths)
    return f"{call.title}: {shown}"[:160] if shown else call.title

"""Read a transcript line by line and keep what a successor may need."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

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
from segue.model.facts import ActionFact, FileFact, Outcome, Sentence, SessionFacts, StateFact, Voice
from segue.model.transcript import Line, Summarised, UserSaid
from segue.snapshot.facts.asks import Asks
from segue.snapshot.facts.commands import commands_of, headline, purpose
from segue.snapshot.facts.decisions import Decisions
from segue.snapshot.facts.earlier import Earlier, handed_down
from segue.snapshot.facts.edits import Edit, change_told, edits_of, elsewhere
from segue.snapshot.facts.outcomes import error_message, test_summary
from segue.snapshot.facts.results import result_of
from segue.snapshot.facts.runs import MOST_COMMANDS, Runs, outcome_of
from segue.snapshot.facts.text import SHORTEST, clipped, flattened, sentences
from segue.snapshot.facts.versions import Versions, is_scratch
from segue.snapshot.facts.written import written_in

MOST_FILES = 400
MOST_SENTENCES = 40_000
"""Above it, announcements and results of the older half are dropped; nothing that a person said is among them."""
_ANNOUNCES = re.compile(
    r"^(?:(?:ok(?:ay)?|great|perfect|good|excellent|alright|now|next|first|so|and|then|also|got it"
    r"|right)[,.!:]?\s+)*(?:let me|let's (?!not|go with|use|switch)|now (?:let|i|the)\b"
    r"|i['’]?ll (?:now |start|begin|check|look|read|run|also|use|create|update|add|fix|verify|take|see|inspect"
    r"|explore|search|do|first|continue)"
    r"|i(?:['’]m| am) (?:going to|now|checking|reading|looking|running|opening|pulling|scanning|inspecting|tracing)"
    r"|i will|i need to|i want to|time to"
    r"|next,? i|first,? i|looking|checking|reading|running|starting|here(?:['’]s| is| are)"
    r"|everything (?:is )?(?:builds|clean|green)|done[.!]?$)",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"^(?:you(?:['’]re| are) (?:absolutely |totally )?right|good (?:question|thinking|catch|point|idea|news)|great"
    r"|excellent|perfect|nice"
    r"|no response requested|got it|understood|sure|makes sense|sorry|my bad)\b.{0,30}$",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"user doesn't want to (?:proceed|take)|tool use was rejected|rejected by (?:the )?user|user (?:denied|declined"
    r"|rejected)",
    re.IGNORECASE,
)
_ANSWERED = re.compile(r"\"([^\"]{3,400})\"\s*=\s*\"([^\"]{1,1500})\"")
_APPROVED = re.compile(r"User has approved your plan")
_READS_HISTORY = re.compile(
    r"git (?:-\S+ \S+ )*(?:diff|status|log|show|branch|rev-parse|ls-files|ls-remote|blame|remote|describe|fetch"
    r"|merge-base|config)\b"
    r"|gh \w+ (?:view|list|diff|checks)\b"
)
_MOVED = re.compile(
    r"\bgit mv +(?:-\w+ +)*['\"]?([\w./@+-]+)['\"]? +['\"]?([\w./@+-]+)['\"]?[ \t]*(?=$|&&|;|\n)", re.MULTILINE
)
_LEAD = re.compile(
    r"^(?:(?:ok(?:ay)?|great|perfect|good|now|next|first|so|and|then|also)[,.!:]?\s+)*(?:let me|i'll|i will"
    r"|let's)\s+(?:now |just |quickly |also )?",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w-]{3,}")


@dataclass(slots=True)
class Collector:
    """Everything known of a session so far."""

    number: int = 0
    standing: WorkLocation = field(default_factory=WorkLocation)
    asks: Asks = field(default_factory=Asks)
    summary: str = ""
    plan: str = ""
    todos: tuple[TodoEntry, ...] = ()
    files: dict[str, FileFact] = field(default_factory=dict[str, FileFact])
    calls: dict[str, tuple[int, ToolCalled]] = field(default_factory=dict[str, tuple[int, ToolCalled]])
    """Calls that are not finished, and the lines in which they were begun."""
    runs: Runs = field(default_factory=Runs)
    versions: Versions = field(default_factory=Versions)
    decisions: Decisions = field(default_factory=Decisions)
    told: list[Sentence] = field(default_factory=list[Sentence])
    closing: tuple[int, int] = (0, 0)
    """The sentences of the agent's latest message, as a part of `told`."""
    message: str = ""
    message_at: int = 0
    usage: Usage = field(default_factory=Usage)
    intent: str = ""
    """The agent's latest words about what it is doing."""
    intent_at: int = 0
    last: ActionFact | None = None
    refused: ActionFact | None = None
    written: dict[str, int] = field(default_factory=dict[str, int])
    """Words of edits, each with the line that wrote it last."""

    def hear(self, line: Line) -> None:
        """Add one line of the session."""
        self.number = line.number
        match line.said:
            case UserSaid(text=text):
                self._asked(text.strip())
            case AgentMessage(text=text):
                self._spoke(text)
            case AgentThought(text=text):
                self.decisions.spoke(self.number, [each for each in sentences(text) if "because" in each])
            case Summarised(text=text):
                self._summarised(text)
            case TodoUpdated(entries=entries):
                self.todos = tuple(entry for entry in entries if entry.content)
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
        """Return all facts of the session so far."""
        asks = self.asks.facts(self.written)
        request, *said = asks or [None]
        self.decisions_of_answers()
        return SessionFacts(
            lines=self.number,
            directory=self.standing.directory or "",
            branches=tuple(self.versions.branches),
            commit=self.standing.commit or "",
            request=request,
            said=tuple(ask for ask in said if ask is not None),
            summary=self.summary,
            plan=self.plan,
            todos=self.todos,
            files=tuple(self.files.values())[-MOST_FILES:],
            commands=tuple(self.runs.commands.values())[-MOST_COMMANDS:],
            tests=self.runs.tests(),
            errors=tuple(self.runs.errors.values()),
            decisions=self.decisions.facts(),
            commits=tuple(self.versions.commits),
            pull_requests=tuple(self.versions.requests.values()),
            sentences=self._sentences(),
            state=self._state(),
            open_calls=tuple(title_of(call) for begun, call in self.calls.values() if begun > self.asks.last_at),
            usage=self.usage,
        )

    def decisions_of_answers(self) -> None:
        """Add the proposals that were accepted since the last call to the decisions."""
        for number, proposal in self.asks.accepted():
            self.decisions.accepted(number, proposal)

    def _asked(self, text: str) -> None:
        """Add a message of the user; a first one that carries an earlier session's context is taken apart."""
        if not text:
            return
        earlier = handed_down(text) if self.asks.empty else None
        if earlier is not None:
            self._inherited(earlier)
            text = earlier.now
            if not text:
                return
        ask = self.asks.add(self.number, text, self.message)
        if ask is None:
            return
        start, end = self.closing
        self.told[start:end] = [replace(each, closing=True) for each in self.told[start:end]]
        self.closing = (len(self.told), len(self.told))
        for part, sentence in enumerate(self.asks.quoted):
            self.told.append(Sentence(number=self.number, part=part, voice="pasted", text=clipped(sentence, 420)))
        self.decisions.asked(
            self.number,
            [phrase.text for phrase in ask.phrases if phrase.rule or (phrase.correction and not phrase.question)],
        )

    def _inherited(self, earlier: Earlier) -> None:
        """Add what an earlier session's context holds."""
        self.asks.inherit(self.number, earlier.request, earlier.rules, earlier.said)
        self._tell("summary", earlier.told)
        self.decisions.spoke(self.number, earlier.told)

    def _summarised(self, text: str) -> None:
        """Keep the agent's summary, and add what it holds of an earlier session."""
        self.summary = text
        earlier = handed_down(text, summary=True)
        if earlier is not None:
            if self.asks.empty:
                self.asks.inherit(self.number, earlier.request, earlier.rules, earlier.said)
            self._tell("summary", earlier.told)

    def _tell(self, voice: Voice, told: Sequence[str]) -> None:
        """Add sentences in this voice; beyond the limit the early half loses results and announcements first."""
        for part, sentence in enumerate(told):
            announces = voice == "agent" and _says_nothing(sentence)
            self.told.append(Sentence(number=self.number, part=part, voice=voice, text=sentence, announces=announces))
        if len(self.told) > MOST_SENTENCES:
            half = MOST_SENTENCES // 2
            kept = [each for each in self.told[:half] if not each.announces and each.voice != "result"]
            self.told[:half] = kept[-half // 2 :]

    def _spoke(self, text: str) -> None:
        """Add a message of the agent: its sentences, intention and decisions, and remarks on errors."""
        if self.standing.directory:
            text = text.replace(f"{self.standing.directory.rstrip('/')}/", "")
        # A message of one word is too short for a sentence, and may still be the last thing that was reported.
        said = list(sentences(text)) or [each for each in (flattened(text),) if 0 < len(each) < SHORTEST]
        start = len(self.told)
        self._tell("agent", said)
        self.closing = (min(start, len(self.told)), len(self.told))
        self.message, self.message_at = text, self.number
        if said:
            self.intent, self.intent_at = said[-1].rstrip(":："), self.number
        self.decisions.spoke(self.number, said)
        self.runs.spoke(self.number, said)

    def _called(self, call: ToolCalled) -> None:
        """Add the begin of a tool call, with texts, a plan and names that it writes."""
        self.usage = replace(self.usage, tool_calls=self.usage.tool_calls + 1)
        self.calls[call.call_id] = (self.number, call)
        self.refused = None
        self._tell("written", list(written_in(call)))
        if call.tool == "plan" and isinstance(plan := call.input.get("plan"), str):
            self.plan = plan
            self._tell("plan", list(sentences(plan)))
            self.message, self.message_at = plan, self.number
        if call.tool in ("edit", "delete"):
            for word in set(_WORD.findall("\n".join(_texts(call.input)))):
                self.written[word] = self.number

    def _progressed(self, news: ToolProgressed) -> None:
        """Add the output so far of a running call; nothing for an unknown call."""
        _, call = self.calls.get(news.call_id, (0, None))
        if call is not None:
            for command in commands_of(call):
                self.runs.begun(self.number, command)
                self.runs.progressed(self.number, command, news.output)

    def _finished(self, result: ToolFinished) -> None:
        """Add the end of a call: refusal, answers, edits, commands and results; nothing for an unknown call."""
        begun, call = self.calls.pop(result.call_id, (0, None))
        if call is None:
            return
        failed = result.status == "failed"
        if failed and _REFUSED.search(result.output[:600]):
            self.refused = self.last = ActionFact(
                number=self.number, what=title_of(call), outcome="failed", detail="the user refused it"
            )
            self._tell("result", [f"The user refused this call: {title_of(call)}"])
            return
        if call.tool == "ask" or call.tool == "plan":
            self._answered(call, result)
        if call.tool == "delegate" and not failed:
            self._tell("helper", list(sentences(result.output)))
        outcome: Outcome = "failed" if failed else "unknown" if result.status == "unknown" else "passed"
        scratch = any(map(is_scratch, commands_of(call)))
        for edit in () if scratch or (failed and call.tool != "execute") else edits_of(call):
            change = edit.change or (change_told(result.output) if call.tool == "edit" else "")
            self._changed(replace(edit, change=change))
        for command in commands_of(call):
            outcome = outcome_of(command, result.status, result.output)
            self.runs.finished(self.number, command, outcome, result.output)
            self.versions.finished(self.number, command, outcome, result.output)
            if outcome == "passed" and not scratch:
                self._moved(command)
        self._acted(call, outcome, result.output)
        if found := result_of(call, outcome, result.output, self.standing.directory or ""):
            # An announcement is worth telling with what came of it.
            near = (
                self.intent_at
                and 0 <= begun - self.intent_at <= 3
                and self.intent.count(" ") >= 5
                and len(self.intent) < 160
            )
            lead = _LEAD.sub("", self.intent).rstrip(".") if near else ""
            self._tell("result", [clipped(f"{lead[:1].upper()}{lead[1:]} — {found}" if lead else found, 420)])

    def _answered(self, call: ToolCalled, result: ToolFinished) -> None:
        """Add the user's answers in a tool's result, or the approval of the plan."""
        for question, answer in _ANSWERED.findall(result.output):
            self.asks.answer(self.number, question, answer)
        if call.tool == "plan" and _APPROVED.search(result.output[:400]):
            self.asks.approve(self.number, clipped(next(iter(sentences(self.plan)), ""), 200))

    def _acted(self, call: ToolCalled, outcome: Outcome, output: str) -> None:
        """Note the last action, if it is a command or an edit; a command that only looks counts only if it failed."""
        command = next(iter(commands_of(call)), "")
        if not command and call.tool not in ("edit", "delete"):
            return
        if command and outcome != "failed" and (purpose(command) == "look" or _READS_HISTORY.match(headline(command))):
            return
        what = (
            f"`{clipped(headline(command), 140)}`"
            if command
            else f"the edit of {', '.join(map(self._relative, call.paths)) or call.title}"
        )
        detail = error_message(output) if outcome == "failed" else test_summary(output) if command else ""
        self.last = ActionFact(number=self.number, what=what, outcome=outcome, detail=clipped(detail, 200))

    def _moved(self, command: str) -> None:
        """Note the files that a `git mv` moved."""
        for before, after in _MOVED.findall(command) if "git mv" in command else ():
            self._changed(Edit(after, "modified"), before=before)

    def _changed(self, edit: Edit, before: str = "") -> None:
        """Note a change of a file, with the agent's reason; files outside the work are ignored."""
        path = self._relative(edit.path)
        if elsewhere(path):
            return
        known = self.files.pop(path, None) or self.files.pop(self._relative(before), None)
        action: FileAction = "created" if known and known.action == "created" != edit.action else edit.action
        if edit.action == "deleted":
            action = "deleted"
        times = known.times if known else 0
        self.files[path] = FileFact(
            number=self.number,
            path=path,
            action=action,
            times=times + 1 if edit.change or not known else times,
            reason=self._reason(),
            change=edit.change or (known.change if known else ""),
            before=before or (known.before if known else ""),
        )
        self.runs.edit(path)

    def _reason(self) -> str:
        """Return the agent's latest sentence if it may explain a change, else an empty text."""
        words = _LEAD.sub("", self.intent)
        return words if words.count(" ") >= 4 and not words.endswith("?") else ""

    def _relative(self, path: str) -> str:
        """Return a path relative to the working directory if it is below it."""
        folder = (self.standing.directory or "").rstrip("/")
        return path.removeprefix(f"{folder}/").removeprefix("./") if folder else path.removeprefix("./")

    def _stands(self, standing: WorkLocation) -> None:
        """Note the branch and the commit; the first known directory stays."""
        known = self.standing
        if standing.branch and standing.branch != known.branch:
            self.versions.on(standing.branch)
        self.standing = WorkLocation(
            directory=known.directory or standing.directory,
            branch=standing.branch or known.branch,
            commit=standing.commit or known.commit,
        )

    def _sentences(self) -> tuple[Sentence, ...]:
        """Return all sentences; those of the agent's latest message are marked as closing."""
        start, end = self.closing
        return (*self.told[:start], *(replace(each, closing=True) for each in self.told[start:end]), *self.told[end:])

    def _state(self) -> StateFact:
        """Return the state at the end: last action, running calls, uncommitted files, open question and message."""
        running = [
            (begun, call)
            for begun, call in self.calls.values()
            if call.tool in ("execute", "delegate")
            and begun > self.asks.last_but_one_at
            and not self._superseded(begun, call)
        ]
        last_said = max(self.message_at, self.last.number if self.last else 0)
        asked = [each for each in sentences(self.message) if each.endswith(("?", "？"))]
        waits = self.message_at > self.asks.last_at and self.message_at >= (self.last.number if self.last else 0)
        return StateFact(
            last=self.last,
            running=tuple(
                ActionFact(number=begun, what=title_of(call), outcome="unknown") for begun, call in running[-6:]
            ),
            half_done=self.versions.half_done,
            refused=self.refused,
            uncommitted=tuple(file.path for file in self.files.values() if file.number > self.versions.committed_at),
            unpushed=self.versions.unpushed,
            question=asked[-1] if asked and waits else "",
            unanswered=self.asks.last_at if self.asks.last_at > last_said else None,
        )

    def _superseded(self, begun: int, call: ToolCalled) -> bool:
        """Return True if a later run of the same kind has ended, so that the earlier one does not matter."""
        kinds = {_kind(headline(command)) for command in commands_of(call)}
        return any(each.number > begun and _kind(each.command) in kinds for each in self.runs.commands.values())

    def _used(self, report: UsageReported) -> None:
        """Add a report of tokens to the usage; sizes and cost replace the earlier ones."""
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


def _says_nothing(sentence: str) -> bool:
    """Return True if a sentence only announces the next step or is polite."""
    return sentence.endswith((":", "：")) or bool(_ANNOUNCES.match(sentence) or _COURTESY.match(sentence))


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a call's input, whatever its shape."""
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


def _kind(line: str) -> str:
    """Return the first two words of a command line, without variables."""
    return " ".join([word for word in line.split() if "=" not in word and word != "env"][:2])


def title_of(call: ToolCalled) -> str:
    """Return a call's title with its command or paths."""
    shown = next(iter(commands_of(call)), "") or ", ".join(call.paths)
    return f"{call.title}: {shown}"[:160] if shown else call.title

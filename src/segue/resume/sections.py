"""The sections of a resume context: from facts to items, in whole sentences."""

import re
from collections.abc import Iterable, Iterator, Sequence

from segue.model.events import TodoEntry
from segue.model.facts import (
    ActionFact,
    Ask,
    ErrorFact,
    FileFact,
    Phrase,
    PullRequestFact,
    SessionFacts,
    StateFact,
    TestFact,
)
from segue.resume.budget import Item
from segue.resume.excerpt import HALF, shortened
from segue.resume.worth import recency, words, worth

STATE, REQUEST, RULES, SAID, AGREED, TODO = "state", "request", "rules", "said", "agreed", "todo"
DECISIONS, ERRORS, STORY, FILES, GIT, TESTS = "decisions", "errors", "story", "files", "git", "tests"
NEXT = "next"
TITLES = {
    STATE: "Where it stands",
    REQUEST: "Original request",
    RULES: "Rules of the user",
    SAID: "What the user said since",
    AGREED: "Agreed, and not in the code yet",
    TODO: "Plan status",
    DECISIONS: "Key decisions",
    ERRORS: "Errors",
    STORY: "What was said and found, in order",
    FILES: "Files changed",
    GIT: "Git state",
    TESTS: "TDD state",
    NEXT: "What to do next",
}
NONE = {
    RULES: "(no rules stated)",
    DECISIONS: "(no significant decisions recorded)",
    ERRORS: "(no errors encountered)",
}
"""Text under a title without items."""
CAPS = {SAID: 0.34, TODO: 0.07, DECISIONS: 0.2, ERRORS: 0.1, FILES: 0.08, GIT: 0.08, NEXT: 0.05, AGREED: 0.2}
"""Share of the budget that a section may take before the others have had their turn."""
MARKS = {"completed": "[x]", "in_progress": "[~]"}
FILE_MARKS = {"created": "A", "modified": "M", "deleted": "D"}
OUTCOMES = {"passed": "succeeded", "failed": "failed", "unknown": "has an unknown outcome"}
UNTOLD, TOLD = 1.0, 0.35
"""Weight of a result by whether anyone spoke of what it shows."""
NEWEST_FILES, FILES_IN_A_LINE = 5, 8
PART = 300
"""Characters of a long message that stand or fall together."""
_FIGURE = re.compile(r"\d{2}|_|[a-z][A-Z]")


def items(facts: SessionFacts, budget: int) -> list[Item]:
    """Return all items of a session, section by section, to choose a context from."""
    request = facts.request
    told = shortened(request, budget * HALF) if request else ""
    return [
        *_state(facts),
        *(_request(request, told) if request else ()),
        *_rules(facts, told),
        *_said(facts, told),
        *_todos(facts.todos),
        *_decisions(facts),
        *_errors(facts),
        *_story(facts),
        *_files(facts),
        *_git(facts),
        *_phase(facts.tests),
        *_next(facts),
    ]


def clip(text: str, limit: int) -> str:
    """Return the text, cut at a space and marked if it is longer than the limit."""
    if len(text) <= limit:
        return text
    cut = text[:limit].rsplit(" ", 1)[0]
    return (cut if len(cut) > 0.7 * limit else text[:limit]).rstrip(" ,;:") + "…"


def _quoted(text: str) -> str:
    """Return text in quotation marks."""
    return f'"{text}"'


def _flat(text: str) -> str:
    """Return text on one line with single spaces."""
    return " ".join(text.split())


# ── where it stands ─────────────────────────────────────────────────────────────────────────────────


def _state(facts: SessionFacts) -> Iterator[Item]:
    """Yield the state of the work, line by line; important lines must stand."""
    lines = [*_stands(facts.state, facts), *_tested(facts.tests)]
    for index, (text, number, value) in enumerate(lines):
        source = (number,) if number else ()
        yield Item(
            section=STATE,
            order=(index,),
            text=f"- {text}",
            sources=source,
            value=value,
            must=value >= 9,
            words=words(text),
        )


def _stands(state: StateFact, facts: SessionFacts) -> Iterator[tuple[str, int, float]]:
    """Yield each statement on the present state with the line of its source (0 if none) and its value."""
    if state.half_done:
        half = state.half_done
        yield f"`{clip(half.what, 90)}` stopped and is not concluded: {clip(half.detail, 420)}", half.number, 9
    ran = facts.tests.number if facts.tests else None
    if state.last and state.last is not state.refused and state.last.number != ran:
        yield _last(state.last), state.last.number, 9
    if state.refused:
        yield (
            f"The user refused the last call, {clip(state.refused.what, 120)}; the agent did nothing after it.",
            state.refused.number,
            9,
        )
    for call in state.running:
        yield f"Begun, and its end was not seen: {clip(_flat(call.what), 140)}. Its outcome is unknown.", call.number, 9
    if state.question:
        yield f'The agent asked, and the user has not answered: "{clip(state.question, 240)}"', 0, 9
    if state.unanswered:
        yield "The user's last message has no answer yet.", state.unanswered, 9
    if state.uncommitted:
        names = ", ".join(state.uncommitted[-6:])
        more = f" and {len(state.uncommitted) - 6} more" if len(state.uncommitted) > 6 else ""
        since = "after the last commit that was seen" if facts.commits else "and no later commit was seen"
        count = len(state.uncommitted)
        yield f"{count} file{'s were' if count != 1 else ' was'} changed {since}: {names}{more}.", 0, 8
    if facts.commits:
        if state.unpushed is None:
            yield "No push was seen in this record.", 0, 6
        elif state.unpushed:
            count = state.unpushed
            yield f"{count} commit{'s were' if count != 1 else ' was'} made after the last push that was seen.", 0, 8


def _last(action: ActionFact) -> str:
    """Return the last action with its outcome, as a sentence."""
    text = f"The last action, {action.what}, {OUTCOMES[action.outcome]}"
    return f"{text}: {action.detail}" if action.detail else f"{text}."


def _tested(tests: TestFact | None) -> Iterator[tuple[str, int, float]]:
    """Yield the last test run as a statement with source and value; nothing if no tests ran."""
    if tests is None:
        return
    outcome = {"passed": "passed", "failed": "FAILED", "unknown": "has an unknown outcome"}[tests.outcome]
    text = f"The last test run, `{clip(tests.command, 110)}`, {outcome}"
    detail = clip(tests.error, 200)
    text += f" ({clip(_flat(tests.summary), 100)})" if tests.summary and tests.summary not in detail else ""
    text += f": {detail}" if detail else ""
    if tests.edits_since:
        text += f", before {tests.edits_since} later edit{'s' if tests.edits_since != 1 else ''}"
    if tests.outcome != "passed" and tests.passed_at:
        text += f"; tests last passed at #{tests.passed_at}"
    yield f"{text}.", tests.number, 9


def _phase(tests: TestFact | None) -> Iterator[Item]:
    """Yield the test phase, and the failing tests; nothing if no tests ran."""
    if tests is None:
        return
    yield Item(section=TESTS, order=(0,), text=f"- Phase: {tests.phase}", value=20, must=True)
    names = [clip(name, 90) for name in tests.failing]
    if names:
        label = "Failed before" if tests.outcome == "passed" else "Failing tests"
        more = f" … and {len(names) - 6} more" if len(names) > 6 else ""
        value = 3.0 if tests.outcome == "passed" else 15.0
        yield Item(section=TESTS, order=(1,), text=f"- {label}: {', '.join(names[:6])}{more}", value=value)
    if tests.expected_failures:
        expected = ", ".join(clip(name, 90) for name in tests.expected_failures[:6])
        yield Item(section=TESTS, order=(2,), text=f"- Expected failures (red phase): {expected}", value=12)


# ── what the user wants ─────────────────────────────────────────────────────────────────────────────


def _request(ask: Ask, told: str) -> Iterator[Item]:
    """Yield the request, shortened as `told`, with pointers to later messages about it; it must stand."""
    needs = tuple(dict.fromkeys(key for phrase in ask.phrases for key in _links(phrase)))
    pointers = _pointers([phrase for phrase in ask.phrases if phrase.later or phrase.withdrawn])
    text = f"{told}\n{pointers}" if pointers else told
    yield Item(
        section=REQUEST, order=(0,), text=text, sources=(ask.number,), value=100, must=True,
        words=words(told), key=f"ask{ask.number}", needs=needs,
    )  # fmt: skip


def _links(phrase: Phrase) -> tuple[str, ...]:
    """Return the keys of the later messages that a phrase must stand with."""
    return tuple(f"ask{number}" for number in phrase.later)


def _pointers(phrases: Sequence[Phrase]) -> str:
    """Return the numbers of the messages where the user withdrew or came back to these phrases; empty if none."""
    taken = sorted({phrase.withdrawn for phrase in phrases if phrase.withdrawn})
    other = sorted({number for phrase in phrases for number in phrase.later} - set(taken))
    parts = [f"taken back in {_numbers(taken)}"] if taken else []
    parts += [f"see also {_numbers(other[:3])}"] if other else []
    return f"(→ {'; '.join(parts)})" if parts else ""


def _numbers(found: Iterable[int]) -> str:
    """Return line numbers as `#1, #2`."""
    return ", ".join(f"#{number}" for number in found)


def _rules(facts: SessionFacts, told: str) -> Iterator[Item]:
    """Yield every rule once; a rule of the request stands there unless the request had to be shortened."""
    seen: set[str] = set()
    shown = _flat(told)
    asks = [*([facts.request] if facts.request else []), *facts.said]
    for ask in asks:
        for part, phrase in enumerate(ask.phrases):
            if not phrase.rule or (ask is facts.request and _flat(phrase.text) in shown):
                continue
            if (plain := _plain(phrase.text)) in seen:
                continue
            seen.add(plain)
            pointer = _pointers([phrase])
            text = f"- {_quoted(_flat(phrase.text))}{f' {pointer}' if pointer else ''}"
            yield Item(
                section=RULES, order=(ask.number, part), text=text, sources=(ask.number,), value=100, must=True,
                words=words(phrase.text), needs=_links(phrase),
            )  # fmt: skip


def _plain(text: str) -> str:
    """Return text in lower case without punctuation, for comparison."""
    return re.sub(r"[^\w]+", " ", text.lower()).strip()


def _said(facts: SessionFacts, told: str) -> Iterator[Item]:
    """Yield the messages after the request; rules and repeated messages are left out, short agreements shown with the
    question."""
    seen: dict[str, int] = {}
    for ask in facts.said:
        seen[_plain(" ".join(phrase.text for phrase in ask.phrases) + ask.answers)] = ask.number
    for ask in facts.said:
        open_rules = [phrase for phrase in ask.phrases if not phrase.rule]
        if ask.phrases and not open_rules and not ask.answers:
            continue
        if ask.phrases and seen[_plain(" ".join(phrase.text for phrase in ask.phrases) + ask.answers)] != ask.number:
            # What was said over and over is told where it was said last.
            continue
        yield from _agreement(ask) if ask.accepts and not ask.done and ask.answers else _message(ask, facts.lines)


def _agreement(ask: Ask) -> Iterator[Item]:
    """Yield the user's agreement with what the agent proposed."""
    own = _flat(" ".join(phrase.text for phrase in ask.phrases)) or _flat(ask.text)
    text = f'- {ask.answers} — the user: "{clip(own, 240)}"'
    yield Item(
        section=AGREED, order=(ask.number,), text=text, sources=(ask.number,), value=12, words=words(text),
        key=f"ask{ask.number}", needs=_needs(ask),
    )  # fmt: skip


def _needs(ask: Ask) -> tuple[str, ...]:
    """Return the keys of the messages that must stand with this one, each once."""
    return tuple(dict.fromkeys(key for phrase in ask.phrases for key in _links(phrase)))


def _message(ask: Ask, length: int) -> Iterator[Item]:
    """Yield a message, whole if it is short, otherwise in parts of whole sentences."""
    first, *others = _parts(ask) or [""]
    told = f"- {_quoted(first)}" if first else "-"
    marks = [*_attached(ask), ask.pasted]
    if not first and not any(marks):
        marks.append(f"[passed on a report of {len(ask.text)} characters; its findings stand below]")
    answered = f'— answering: "{ask.answers}"' if ask.answers else ""
    text = " ".join(each for each in (told, *marks, answered, _pointers(ask.phrases)) if each)
    corrects = any(phrase.correction and not phrase.question for phrase in ask.phrases)
    value = (9.0 + 6 * corrects if first else 2.0) + 8 * recency(ask.number, length)
    yield Item(
        section=SAID,
        order=(ask.number, 0),
        text=text,
        sources=(ask.number,),
        value=value,
        must=corrects and len(first) <= 240,
        words=words(text),
        key=f"ask{ask.number}",
        needs=_needs(ask),
    )
    for index, part in enumerate(others, start=1):
        yield Item(
            section=SAID,
            order=(ask.number, index),
            text=f"- {_quoted(part)}",
            sources=(ask.number,),
            value=value * 0.8,
            words=words(part),
        )


def _parts(ask: Ask) -> list[str]:
    """Return the user's own words in parts of up to 300 characters; a rule among them stands under the rules."""
    parts: list[str] = []
    for phrase in ask.phrases:
        if phrase.rule:
            continue
        if parts and len(parts[-1]) + len(phrase.text) <= PART:
            parts[-1] += f" {_flat(phrase.text)}"
        else:
            parts.append(_flat(phrase.text))
    return parts


def _attached(ask: Ask) -> list[str]:
    """Return the marks of attachments in a message."""
    return re.findall(r"^\[attached [^\]]+\]$", ask.text, re.MULTILINE)


# ── what was decided and what went wrong ────────────────────────────────────────────────────────────


def _todos(todos: Sequence[TodoEntry]) -> Iterator[Item]:
    """Yield the to-do entries: open ones, and of those done the last ones with more value."""
    done = [todo for todo in todos if todo.status == "completed"]
    waiting = [todo for todo in todos if todo.status != "completed"]
    for index, todo in enumerate(waiting):
        text = f"- {MARKS.get(todo.status, '[ ]')} {clip(_flat(todo.content), 200)}"
        yield Item(section=TODO, order=(1, index), text=text, value=10 if index < 12 else 3, words=words(text))
    for index, todo in enumerate(done):
        text = f"- [x] {clip(_flat(todo.content), 110)}"
        # The last ones done say how far it is; a long list of old ones says little.
        value = 4.0 if len(done) - index <= 8 else 1.0
        yield Item(section=TODO, order=(0, index), text=text, value=value, words=words(text))


def _decisions(facts: SessionFacts) -> Iterator[Item]:
    """Yield the agent's decisions with a reason or an alternative; the user's stand as quotations elsewhere."""
    for fact in facts.decisions:
        if fact.by != "agent" or not (fact.reason or fact.alternatives or fact.superseded_by):
            continue
        taken = f" (superseded in #{fact.superseded_by})" if fact.superseded_by else ""
        text = f"- [{fact.type}] {fact.quote}{taken}"
        value = (
            1.6
            + 0.5 * bool(fact.reason)
            + 0.4 * bool(fact.alternatives)
            - 0.8 * bool(taken)
            + recency(fact.number, facts.lines)
        )
        yield Item(
            section=DECISIONS,
            order=(fact.number,),
            text=text,
            sources=(fact.number,),
            value=value,
            words=words(fact.quote),
        )


def _errors(facts: SessionFacts) -> Iterator[Item]:
    """Yield errors with their resolution; the last ones, and the last open ones, come first."""
    last = facts.state.last.number if facts.state.last else 0
    told = [error for error in facts.errors if not error.expected and (error.number != last or error.solution)]
    still_open = [error.number for error in told if error.resolution == "unresolved" and not error.passing][-3:]
    lately = [error.number for error in told][-3:]
    for error in told:
        text, weight = _error(error)
        value = weight + recency(error.number, facts.lines) - 0.8 * error.passing
        value += 4.0 * (error.number in still_open) + 1.5 * (error.number in lately)
        yield Item(
            section=ERRORS,
            order=(error.resolution != "unresolved", error.number),
            text=text,
            sources=(error.number,),
            value=value,
            words=words(text),
        )


def _error(error: ErrorFact) -> tuple[str, float]:
    """Return an error as a line with its resolution, and its value."""
    message = f"`{clip(error.command, 70)}`: {clip(_flat(error.message), 170)}"
    if error.cleared or error.resolution != "unresolved":
        how = {"workaround": "worked around", "deferred": "deferred"}.get(error.resolution, "fixed")
        solved = (
            f" {how}: {error.solution}" if error.solution else f" {how} (the command went well at #{error.solved_at})"
        )
        return f"- ✓ {message} —{solved}", 1.6 if error.solution else 0.5
    solution = f" — the agent on it: {error.solution}" if error.solution else ""
    if error.passing:
        return f"- {message}{solution}", 1.0
    return f"- ⚠ UNRESOLVED: {message}{solution}", 3.0


# ── what was said and done ──────────────────────────────────────────────────────────────────────────


def _story(facts: SessionFacts) -> Iterator[Item]:
    """Yield the sentences of the agent and of results that stand nowhere else, each once."""
    decided = {fact.quote for fact in facts.decisions if fact.by == "agent" and (fact.reason or fact.alternatives)}
    solved = {error.solution for error in facts.errors if error.solution}
    seen: set[str] = set()
    said = {word for each in facts.sentences if each.voice != "result" for word in words(each.text)}
    for sentence in facts.sentences:
        plain = _plain(sentence.text)
        if sentence.text in decided or sentence.text in solved or plain in seen:
            continue
        seen.add(plain)
        found = words(sentence.text)
        value = worth(sentence, facts.lines)
        if sentence.voice == "result":
            # What was printed and never spoken of stands nowhere else.
            value *= UNTOLD if any(_FIGURE.search(word) for word in found - said) else TOLD
        yield Item(
            section=STORY, order=(sentence.number, sentence.part), text=sentence.text,
            sources=(sentence.number,), value=value, words=found,
        )  # fmt: skip


def _files(facts: SessionFacts) -> Iterator[Item]:
    """Yield the files changed last with their reason, the earlier ones by name."""
    older, newest = facts.files[:-NEWEST_FILES], facts.files[-NEWEST_FILES:]
    for start in range(0, len(older), FILES_IN_A_LINE):
        group = older[start : start + FILES_IN_A_LINE]
        named = ", ".join(f"{FILE_MARKS[file.action]} {file.path}{_moved(file)}" for file in group)
        value = 2.2 + 1.2 * recency(group[-1].number, facts.lines)
        yield Item(
            section=FILES, order=(group[-1].number,), text=f"- {named}", sources=(group[-1].number,), value=value
        )
    before = ""
    for file in newest:
        reason = f" — {clip(_flat(file.reason), 110)}" if file.reason not in ("", before) else ""
        before = file.reason
        yield Item(
            section=FILES,
            order=(file.number,),
            text=f"- {FILE_MARKS[file.action]} {file.path}{_moved(file)}{reason}",
            sources=(file.number,),
            value=1.2 + 1.2 * recency(file.number, facts.lines),
        )


def _moved(file: FileFact) -> str:
    """Return the earlier path of a moved file in brackets, or an empty text."""
    return f" (moved from {file.before})" if file.before else ""


def _git(facts: SessionFacts) -> Iterator[Item]:
    """Yield the branch, the pull requests and the commits, the newest with the most value."""
    if facts.branches:
        *before, now = facts.branches
        text = f"- Branch: {now}" + (f" (before: {', '.join(before[-3:])})" if before else "")
        yield Item(section=GIT, order=(0,), text=text, value=30)
    for age, request in enumerate(reversed(facts.pull_requests)):
        yield _pull_request(request, age)
    for age, commit in enumerate(reversed(facts.commits)):
        text = f"- Commit {commit.hash} {clip(commit.subject, 100)}{' (pushed)' if commit.pushed else ''}".replace(
            "  ", " "
        )
        value = 8.0 if age == 0 else 2.6 if age < 4 else 1.4
        yield Item(
            section=GIT,
            order=(2, commit.number),
            text=text,
            sources=(commit.number,),
            value=value,
            words=words(commit.subject) if age > 3 else frozenset(),
        )


def _pull_request(request: PullRequestFact, age: int) -> Item:
    """Return the newest pull request with its address, an earlier one by number."""
    name = f"{request.url}" if age == 0 else f"#{request.url.rsplit('/', 1)[-1]}"
    title = f" {_quoted(clip(request.title, 90))}" if request.title else ""
    state = request.state or "state not seen"
    base = f", into {request.base}" if request.base and age == 0 else ""
    return Item(
        section=GIT,
        order=(1, request.number),
        text=f"- Pull request {name}{title}, {state}{base}",
        sources=(request.number,),
        value=9.0 if age == 0 else 4.0,
    )


def _next(facts: SessionFacts) -> Iterator[Item]:
    """Yield the user's last order, with the question that it answers, and the agent's last intention."""
    asked = facts.said[-1] if facts.said else None
    if asked and asked.phrases:
        own = clip(_flat(" ".join(phrase.text for phrase in asked.phrases)), 240)
        meant = f" (to: {_quoted(clip(asked.answers, 160))})" if asked.answers else ""
        yield Item(
            section=NEXT,
            order=(0,),
            text=f"- The user's last order: {_quoted(own)}{meant}",
            sources=(asked.number,),
            value=5,
        )
    agent = [each for each in facts.sentences if each.voice == "agent"]
    last = facts.state.last.number if facts.state.last else 0
    for index, sentence in enumerate([each for each in agent if each.number == agent[-1].number][-3:]):
        if sentence.number < last and not sentence.announces:
            continue
        when = "" if sentence.number >= last else ", before its last action"
        lead = f"The agent's last words{when}: " if index == 0 else ""
        yield Item(
            section=NEXT,
            order=(1, index),
            text=f"- {lead}{_quoted(sentence.text)}",
            sources=(sentence.number,),
            value=6,
            words=words(sentence.text),
        )

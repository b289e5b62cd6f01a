"""Events such as agents make, and workflows to write them into."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, cycle, islice
from random import Random

from segue.journal import Journal, NewWorkflowRow, Transaction
from segue.model import events as e
from segue.model.events import RunQueued
from segue.model.ids import PromptId, SessionId, TaskId, WorkflowId, new_boot_id
from segue.model.plan import Issue, Plan, Task
from segue.model.status import Permissions, Way

SIZE = 1_000
"""Bytes of one event's body, about."""

_LINES = (
    "def next_token(self, line: str) -> Token | None:",
    "if line.startswith('\"'): return self.quoted(line)",
    "src/parser/tokens.py:31: assert token.kind == 'word', token",
    "tests/test_parser.py::test_an_empty_line_has_no_tokens PASSED [ 31%]",
    "# A quote that is never closed belongs to the line it began on.",
)


class WallClock:
    """The machine's time, without the libraries that the orchestrator's own clock imports."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def away_since(self, moment: datetime) -> timedelta:
        return timedelta()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def passage(random: Random, size: int) -> str:
    """Make text with line ends, quotes and indentation, as tools print it."""
    return "".join(f"    {line}\n" for line in random.choices(_LINES, k=size // 40))[:size]


def outputs(kinds: int = 64) -> Iterator[e.ToolFinished]:
    """Yield results of tool calls of about a kilobyte, endlessly; the same in every run."""
    random = Random(1)
    results = [
        e.ToolFinished(call_id=f"call-{n}", status="completed", output=passage(random, SIZE)) for n in range(kinds)
    ]
    return cycle(results)


def conversation(turns: int) -> Iterator[e.Event]:
    """Yield the events of a long session: fifteen to a turn."""
    random = Random(2)
    numbers = count(1)
    for turn in range(turns):
        prompt = PromptId(f"prompt-{turn}")
        yield e.PromptQueued(prompt_id=prompt, text=passage(random, SIZE), task_id=TaskId("task-0"))
        yield e.PromptSent(prompt_id=prompt)
        yield e.PromptAcknowledged(prompt_id=prompt)
        for name in islice(numbers, 4):
            yield e.ToolCalled(call_id=f"call-{name}", title="pytest -q", tool="execute", input={"command": "pytest"})
            yield e.ToolFinished(call_id=f"call-{name}", status="completed", output=passage(random, SIZE))
        yield e.AgentThought(text=passage(random, SIZE // 2))
        yield e.AgentMessage(text=passage(random, SIZE))
        yield e.UsageReported(context_tokens=1_000 * turn, window=200_000)
        yield e.TurnEnded(prompt_id=prompt, reason="end_turn")


async def new_workflow(journal: Journal, number: int) -> tuple[WorkflowId, SessionId]:
    """Create a workflow with its first session and a queued run: three events."""
    new = NewWorkflowRow(
        id=WorkflowId(f"20260101-000000-{number:06d}"),
        slug=f"workflow-{number}",
        issue=Issue(title="Write it down"),
        plan=Plan(tasks=(Task(id=TaskId("task-0"), title="All of it"),)),
        agent="rehearsal",
        permissions=Permissions.ALL,
        repository="/repository",
        here=False,
        worktree=f"/worktrees/{number}",
        branch=f"segue/{number}",
    )
    session_id = SessionId(f"session-{number}")

    def begin(t: Transaction) -> None:
        t.sessions.create(session_id, new.agent)
        t.runs.queue(session_id, RunQueued(way=Way.FIRST, reason="new"), new_boot_id())

    await journal.create(new, begin)
    return new.id, session_id

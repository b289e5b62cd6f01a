"""Losses are counted from outside: a journal that forgets something, or does something twice, is found out."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from segue.model import events as e
from segue.model.checkpoint import CheckpointType
from segue.model.ids import AttemptId, CheckpointId, PromptId, RequestId, Seq, SessionId, TaskId
from segue.model.plan import Issue, Plan, Task
from segue.model.status import Permissions, Way
from segue.model.views import RecordView
from segue.testing.losses import Count, count, fact_of, line_of
from segue.testing.reckoning import reckon
from segue.testing.rehearsal.diary import DiaryEntry
from segue.testing.stage import Stage
from tests.equipment.armed_server import DROP_APPEND
from tests.faults.plays import ORDINARY, Play

NOW = datetime(2024, 5, 1, tzinfo=UTC)
TASK, ATTEMPT = TaskId("one"), AttemptId("attempt-1")
PROMPT, REQUEST = PromptId("prompt-1"), RequestId("request-1")
EVENTS: tuple[e.Event, ...] = (
    e.WorkflowCreated(
        slug="parser",
        issue=Issue(title="Parser"),
        plan=Plan(tasks=(Task(id=TASK, title="One"),)),
        agent="rehearsal",
        permissions=Permissions.ASK,
        repository="/repository",
        here=False,
    ),
    e.RunQueued(way=Way.FIRST, reason="the workflow is new"),
    e.PromptSent(prompt_id=PROMPT),
    e.PermissionRequested(request_id=REQUEST, call_id="call-1", title="May I?", tool="execute", options=()),
    e.PermissionAnswered(request_id=REQUEST, outcome="allowed", by="user"),
    e.AgentMessage(text="It is there."),
    e.TaskCompleted(task_id=TASK, attempt=ATTEMPT),
    e.CheckpointCreated(
        checkpoint_id=CheckpointId("ckpt-001"),
        type=CheckpointType.PAUSE,
        snapshot=True,
        clean_boundary=True,
        commit=None,
        after=Seq(7),
    ),
)
JOURNAL = [
    RecordView(
        seq=Seq(seq), at=NOW, session_id=SessionId("session-1"), run=1, kind=event.kind, event=event, hash=f"hash-{seq}"
    )
    for seq, event in enumerate(EVENTS, 1)
]


def entry(kind: str, **details: Any) -> DiaryEntry:
    return DiaryEntry(kind=kind, at=NOW, details=details)


AGENT = [
    entry("prompt", prompt_id=PROMPT, text="Do it."),
    entry("answer", call_id="call-1", title="May I?", outcome="selected", option="allow"),
]
CLIENT = [
    entry("created", slug="parser"),
    entry("delivered", events=[(fact_of(line), line_of(line)) for line in JOURNAL]),
    entry("approved", request_id=REQUEST),
    entry("paused", snapshot_id="ckpt-001"),
    entry("resumed", session="session-1", run=1),
]


def test_a_journal_that_holds_everything_has_lost_and_repeated_nothing() -> None:
    assert count(JOURNAL, AGENT, CLIENT) == Count()


@pytest.mark.parametrize("line", JOURNAL, ids=lambda line: line.kind)
def test_each_line_that_is_dropped_is_one_loss_however_many_saw_it(line: RecordView) -> None:
    kept = [other for other in JOURNAL if other is not line]
    # Without its question nobody can tell any more which answer the agent heard.
    also = 1 if line.kind == "permission.requested" else 0
    assert len(count(kept, AGENT, CLIENT).lost) == 1 + also


def test_a_line_that_is_not_what_was_delivered_is_a_loss() -> None:
    changed = [replace(line, hash="another") if line.kind == "agent.message" else line for line in JOURNAL]
    assert len(count(changed, [], CLIENT).lost) == 1


def test_an_answer_that_the_journal_has_otherwise_is_a_loss() -> None:
    heard = [entry("answer", call_id="call-1", title="May I?", outcome="selected", option="reject")]
    assert count(JOURNAL, heard, []).lost == ("answer request-1 denied was acknowledged and is not in the journal",)


def test_what_only_the_agent_knows_of_is_a_loss() -> None:
    unknown = [entry("prompt", prompt_id="prompt-2", text="Do more.")]
    assert len(count(JOURNAL, unknown, []).lost) == 1


@pytest.mark.parametrize("number", [0, 1], ids=["prompt", "answer"])
def test_what_reaches_the_agent_twice_is_duplicated(number: int) -> None:
    assert len(count(JOURNAL, [*AGENT, AGENT[number]], []).duplicated) == 1


@pytest.mark.parametrize("kind", ["task.completed", "permission.answered", "prompt.sent", "checkpoint.created"])
def test_what_is_done_twice_is_duplicated(kind: str) -> None:
    again = [line for line in JOURNAL if line.kind == kind]
    assert len(count([*JOURNAL, *again], [], []).duplicated) == 1


def test_a_server_that_drops_one_append_is_found_out_by_the_diaries_alone(stage: Stage) -> None:
    stage.up(**{DROP_APPEND: "prompt.sent"})
    play = Play(stage, ORDINARY)
    play.see_through()
    reckoning = reckon(stage, play.work)
    assert reckoning.problem is None
    assert len(reckoning.lost) == 1

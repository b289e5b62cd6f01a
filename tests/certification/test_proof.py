"""A verdict needs its evidence: what a play must have left behind, and what spoils it."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from certify.agents_page import page, rows_of
from certify.candidates import CANDIDATES
from certify.handover import HandoverRow
from certify.play import STARTED, SUMMARY, Observed
from certify.proof import Row, judge, unplayed, with_compaction, with_suite, without_what_is_lacking
from certify.suite import Examined
from segue.drivers import Capabilities, Introduction
from segue.model import events as e
from segue.model.ids import RequestId, Seq, SessionId, WorkflowId
from segue.model.status import Way
from segue.model.views import RecordView, Resumed
from segue.testing.model import LoggedRequest, Message, ToolCall

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "agents.md"
AGAIN = Message(role="user", text=f"It was interrupted in the middle: {STARTED}")
FIRST = (
    Message(role="user", text="REMEMBER-ALPHA and say so."),
    Message(role="assistant", text="ANSWER-ALPHA"),
    Message(role="user", text="FILE-BETA"),
    Message(role="assistant", calls=(ToolCall(id="1", name="write", arguments={"content": "CONTENT-BETA"}),)),
    Message(role="tool"),
    Message(role="assistant", text="ANSWER-BETA"),
    Message(role="user", text="COMMAND-GAMMA"),
    Message(role="assistant", calls=(ToolCall(id="2", name="bash", arguments={"command": f"date > {STARTED}"}),)),
    Message(role="tool", text="interrupted"),
)
SECOND = (*FIRST, AGAIN, Message(role="assistant", text="ANSWER-GAMMA"))


def request(number: int, *messages: Message, tools: tuple[str, ...] = ("bash",)) -> LoggedRequest:
    return LoggedRequest(
        number=number,
        dialect="chat",
        path="/v1/chat/completions",
        stream=True,
        messages=messages,
        prompt=messages[-1].text,
        tools=tools,
        body={},
        answer="",
    )


def record(seq: int, event: Any, run: int = 1) -> RecordView:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    session = SessionId("session-1")
    return RecordView(seq=Seq(seq), at=at, session_id=session, run=run, kind=event.kind, event=event, hash=str(seq))


def resumed(run: int, way: Way = Way.NATIVE) -> Resumed:
    return Resumed(
        workflow_id=WorkflowId("workflow-1"),
        session=SessionId("session-1"),
        session_number=1,
        agent="claude",
        run=run,
        way=way,
        reason="",
        paused_at=None,
        tasks_done=2,
        tasks_remaining=3,
    )


def good() -> Observed:
    asked = e.PermissionRequested(request_id=RequestId("r"), call_id="3", title="", tool="execute", options=())
    answered = e.PermissionAnswered(request_id=RequestId("r"), outcome="interrupted", by="segue")
    events = [
        (e.TokenCaptured(token="t"), 1),
        (e.AgentMessage(text="ANSWER-ALPHA"), 1),
        (e.ToolCalled(call_id="1", title="", tool="edit"), 1),
        (e.ToolFinished(call_id="1", status="completed"), 1),
        (e.ToolCalled(call_id="2", title="", tool="execute"), 1),
        (e.AgentMessage(text="ANSWER-GAMMA"), 2),
        (asked, 2),
        (answered, 2),
    ]
    return Observed(
        journal=[record(seq, event, run) for seq, (event, run) in enumerate(events, 1)],
        requests=[
            request(1, AGAIN, tools=()),
            request(2, *FIRST, AGAIN),
            request(3, *SECOND, AGAIN),
        ],
        resumes=[resumed(2), resumed(3)],
        marks=[0, 2],
        trees=[5, 4],
    )


def verdict(seen: Observed, agent: str = "copilot") -> Row:
    return judge(CANDIDATES[agent], seen, [], "2030-01-01")


def test_a_play_without_a_flaw_is_verified() -> None:
    row = verdict(good())
    assert (row.native_resume, row.problems, row.way) == ("verified", [], "native")


def spoiled(**changes: Any) -> Observed:
    return replace(good(), **changes)


@pytest.mark.parametrize(
    ("seen", "problem"),
    [
        (spoiled(requests=[request(1, AGAIN), request(2, AGAIN), request(3, *SECOND, AGAIN)]), "holds nothing"),
        (
            spoiled(requests=[*good().requests[:2], request(3, *FIRST, AGAIN)]),
            "lacks the answer after the first resume",
        ),
        (spoiled(requests=good().requests[:1]), "the model never got the prompt"),
        (spoiled(resumes=[resumed(2), resumed(3, Way.FRESH)]), "resume 2 went the way: fresh"),
        (spoiled(orphans={17}), "left afterwards: 1"),
        (spoiled(faults=["event 3 was changed"]), "event 3 was changed"),
        (spoiled(later_ran=True), "has not run"),
        (spoiled(error="Oops", stopped_at="resume"), "at: resume: Oops"),
        (
            spoiled(journal=[*good().journal, record(9, e.ToolCalled(call_id="1", title="", tool="edit"), 2)]),
            "stand twice in the journal: 1",
        ),
        (
            spoiled(journal=[*good().journal, record(9, e.AgentMessage(text="ANSWER-ALPHA"), 2)]),
            "stand twice in the journal: ANSWER-ALPHA",
        ),
        (
            spoiled(journal=[*good().journal, record(9, e.ToolFinished(call_id="2", status="completed"))]),
            "the first kill came in the middle",
        ),
    ],
)
def test_every_flaw_spoils_the_verdict(seen: Observed, problem: str) -> None:
    row = verdict(seen)
    assert row.native_resume == "failed"
    assert any(problem in sentence for sentence in row.problems)


def test_what_only_the_new_prompt_says_is_not_remembered() -> None:
    without_the_call = tuple(message for message in FIRST if not any(call.id == "2" for call in message.calls))
    seen = spoiled(requests=[good().requests[0], request(2, *without_the_call, AGAIN), good().requests[2]])
    assert any("lacks the command that was torn" in sentence for sentence in verdict(seen).problems)


def compacted(*memories: Message) -> Observed:
    asked = replace(request(1, Message(role="user", text="Summarize.")), answer=f"said <summary>{SUMMARY}</summary>")
    return Observed(requests=[asked, request(2, *memories, AGAIN)], resumes=[resumed(2)], marks=[1])


def test_a_compacted_conversation_must_come_back_with_its_summary() -> None:
    summary, row = Message(role="user", text=f"So far: {SUMMARY}"), verdict(good())
    assert with_compaction(row, compacted(summary, *FIRST)).after_compaction == "verified"
    forgotten = with_compaction(row, compacted(*FIRST))
    assert (forgotten.native_resume, forgotten.after_compaction) == ("verified", "failed")
    assert forgotten.problems == [
        "after compaction: the first request after the resume holds the summary and the command"
    ]


def test_an_agent_whose_driver_does_not_conform_is_not_verified() -> None:
    row = with_suite(verdict(good()), Examined(True, "26 passed"))
    assert row.native_resume == "verified" and row.evidence[-1] == "the driver's conformance suite: 26 passed"
    failed = with_suite(verdict(good()), Examined(False, "1 failed"))
    assert failed.native_resume == "failed" and failed.problems == ["the driver's conformance suite: 1 failed"]


def test_the_page_tells_every_row_with_its_evidence() -> None:
    rows = [verdict(good()).document(), verdict(spoiled(orphans={17}), "codex").document()]
    handed = HandoverRow(before="claude", after="codex", versions="1 → 2", verdict="verified", score=0.97, tokens=900)
    text = page(rows, [handed.document()], [])
    assert "| `claude` | `codex` | **verified** | 97% | 900 |" in text
    assert "| `copilot` |" in text
    assert "| **failed** |" in text
    assert "- **not so:** processes in the tree at each kill: 5, 4; left afterwards: 1" in text


def test_what_was_seen_with_a_stand_in_certifies_nothing() -> None:
    auggie, row = CANDIDATES["auggie"], verdict(good())
    judged = without_what_is_lacking(row, auggie)
    assert judged.native_resume == "not_certified"
    assert judged.reason == "its vendor's server cannot be had here; verified with a stand-in for it"
    assert without_what_is_lacking(verdict(spoiled(orphans={17})), auggie).native_resume == "failed"
    assert without_what_is_lacking(row, CANDIDATES["claude"]) == row


def test_an_agent_that_can_only_be_started_is_not_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certify.proof.installed_programs.versions", lambda agent: f"{agent} 1")
    introduction = Introduction(name="amp", version="1", capabilities=Capabilities(resume=True))
    row = unplayed(CANDIDATES["amp"], introduction, "2030-01-01")
    assert "| native | **not certified** (its vendor's server cannot be had here) |" in page([row.document()], [], [])


def test_a_page_can_be_read_and_is_written_again_as_it_was() -> None:
    text = PAGE.read_text()
    before = rows_of(text)
    assert {row["agent"] for row in before.rows} == set(CANDIDATES)
    assert page(before.rows, before.handovers, before.stories) == text

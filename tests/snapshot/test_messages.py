"""A journal as the messages that went to and fro."""

from segue.model import events as e
from segue.model.ids import PromptId, Seq, SessionId, TaskId, WorkflowId
from segue.snapshot.messages import messages
from tests.snapshot.kept import NOON

PROMPT = PromptId("prompt-1")
WORDS = {PROMPT: e.PromptQueued(prompt_id=PROMPT, text="Do A.", task_id=TaskId("a"))}


def told(*events: e.Event, sessions: str = "") -> list[tuple[int, str, str]]:
    """Sequence number, role and words of each message; `sessions` has a letter for each event."""
    records = [
        e.Record(
            workflow_id=WorkflowId("w"),
            seq=Seq(number),
            at=NOON,
            session_id=SessionId(sessions[number - 1 : number] or "s"),
            run=1,
            event=event,
            hash="",
        )
        for number, event in enumerate(events, start=1)
    ]
    return [(each.seq, each.role, each.text) for each in messages(records, WORDS)]


def test_nothing_was_said_in_an_empty_journal() -> None:
    assert told() == []


def test_a_prompt_counts_when_it_was_sent_and_an_imported_one_when_it_was_spoken() -> None:
    said = told(e.PromptSent(prompt_id=PROMPT), e.UserSpoke(text="Also B."), e.AgentSummarised(text="So far: A."))
    assert said == [(1, "user", "Do A."), (2, "user", "Also B."), (3, "agent", "So far: A.")]


def test_the_pieces_of_a_message_are_one_again() -> None:
    assert told(e.AgentMessage(text="It is "), e.AgentMessage(text="done.")) == [(1, "agent", "It is done.")]


def test_a_tool_call_or_another_session_ends_a_message() -> None:
    call = e.ToolCalled(call_id="1", title="Run", tool="execute")
    assert told(e.AgentMessage(text="First"), call, e.AgentMessage(text="then")) == [
        (1, "agent", "First"),
        (3, "agent", "then"),
    ]
    assert len(told(e.AgentMessage(text="Mine"), e.AgentMessage(text="yours"), sessions="ab")) == 2

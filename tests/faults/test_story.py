"""The whole story of one workflow: planned, approved, reviewed, handed over, killed, resumed and completed."""

from collections.abc import Callable

import pytest

from segue.model import events as e
from segue.model.status import Role, Way
from segue.settings import Settings
from tests.faults.conftest import CheckAll, SetStage

# The reviewer plays the same piece as the writer, in a conversation of its own.
SCRIPT = """
turns:
  - match: "## Make a plan"
    do:
      - think: Lexer, parser, docs.
      - say: |
          ```json
          {"tasks": [
            {"id": "lexer", "title": "Write the lexer", "description": "In lexer.py."},
            {"id": "parser", "title": "Write the parser", "depends_on": ["lexer"]},
            {"id": "docs", "title": "Write the docs", "depends_on": ["parser"]}
          ]}
          ```
  - match: /asked for a review[^$]*Write the lexer/
    once: true
    do:
      - say: '{"approved": false, "severity": "high", "comments": ["TOKENS may not be empty"]}'
  - match: asked for a review
    do:
      - say: '{"approved": true, "severity": "low", "comments": []}'
  - match: TOKENS may not be empty
    do:
      - write: {path: lexer.py, content: "TOKENS = ['+', '-']\\n"}
      - say: I decided to list the operators first, because the parser asks for them in that order.
  - match: "Task 1 of 3"
    do:
      - write: {path: lexer.py, content: "TOKENS = []\\n"}
      - say: The lexer is there.
  - match: "Task 2 of 3"
    do:
      - write: {path: parser.py, content: "import lexer\\n"}
      - usage: {used: 165000, size: 200000}
      - say: The parser is there.
  - match: "Task 3 of 3"
    do:
      - write: {path: docs.md, content: "# Docs\\n"}
      - crash: {when: before, of: {run: cat docs.md}}
        once: true
      - say: The docs are there.
"""


def ended(task: str) -> Callable[[e.Event], bool]:
    return lambda event: isinstance(event, e.TaskCompleted) and event.task_id == task


@pytest.mark.parametrize("attempts", [1, Settings().retry_attempts])
def test_story_of_a_plan_a_review_a_full_window_and_two_crashes(
    attempts: int, set_stage: SetStage, check: CheckAll
) -> None:
    stage = set_stage(SEGUE_RETRY_ATTEMPTS=str(attempts))
    work = stage.work(SCRIPT)
    stage.up()
    work.begin(
        "Build a small language",
        None,
        permissions="all",
        choices={"test_command": "test -s lexer.py", "review": "same", "commit": "task"},
    )

    # The plan waits for a word, and goes on waiting when the server is gone and comes back.
    proposed = work.until_status("blocked")
    assert [task.title for task in proposed.proposed_plan] == ["Write the lexer", "Write the parser", "Write the docs"]
    work.drain()
    stage.kill()
    stage.up()
    work.until(e.ApprovalAwaited)
    assert work.view.status == "blocked"
    work.answer("approve")

    # One round of review for the first task; at the soft cap a second session goes on by itself.
    work.until(ended("lexer"))
    work.until(ended("parser"))
    work.until(lambda event: isinstance(event, e.SessionCreated) and event.role is Role.WRITER)
    carried = work.until(e.ContextCarried).event
    assert isinstance(carried, e.ContextCarried) and carried.exam is not None and carried.way is Way.CONTEXT
    assert "because the parser asks for them" in carried.text and "Build a small language" in carried.text

    # The agent dies in the middle of the third task, and somebody brings it back, or it is tried again by itself.
    work.until(lambda event: isinstance(event, e.WorkflowMoved) and event.after == "paused")
    if attempts == 1:
        resumed = work.resume()
        assert (resumed.session_number, resumed.way) == (2, Way.NATIVE)
    queued = work.until(e.RunQueued).event
    assert isinstance(queued, e.RunQueued) and queued.way is Way.NATIVE
    view = work.until_status("completed")

    assert [task.status for task in view.tasks] == ["completed"] * 3
    assert (view.sessions, view.reason) == (2, "")
    journal = [record.event for record in work.journal()]
    reviews = [event for event in journal if isinstance(event, e.ReviewGiven)]
    assert [(each.task_id, each.feedback.approved) for each in reviews] == [
        ("lexer", False),
        ("lexer", True),
        ("parser", True),
        ("docs", True),
    ]
    assert len([event for event in journal if isinstance(event, e.WorkCommitted)]) == 3
    assert [event.rung for event in journal if isinstance(event, e.CapacityReached)] == ["warn", "fork"]
    assert stage.git("show", f"{view.branch}:lexer.py") == "TOKENS = ['+', '-']\n"
    check(stage, work)

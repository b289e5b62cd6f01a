"""A server that dies when an agent has just copied its conversation for a fork."""

import pytest

from segue.model import events as e
from segue.model.errors import NotRunning
from segue.testing.stage import Stage
from segue.testing.work import Work
from tests.equipment.armed_server import CRASH_AT
from tests.faults.plays import ORDINARY, PLAN


def test_a_server_killed_over_the_copy_of_a_conversation_makes_another_and_claims_one(stage: Stage) -> None:
    stage.up()
    work = stage.work(ORDINARY.script)
    work.begin("Build it", PLAN, permissions="all", choices={"pause_after": 1})
    original = work.until_status("paused").session
    assert original is not None
    copy = fork_of(stage, work, original.id)
    stage.down()

    stage.up(**{CRASH_AT: "fork.copied"})
    with pytest.raises(NotRunning):
        copy.resume()
        copy.until_status("completed")
    stage.up()
    assert (stage.deaths, stage.orphans) == (1, set())
    assert not [line for line in copy.journal() if isinstance(line.event, e.AgentStarted | e.PromptSent)]
    resumed = copy.resume()
    view = copy.until_status("completed")

    assert (resumed.way, view.sessions) == ("fork", 1)
    events = [line.event for line in copy.journal()]
    assert len({token for each in (work, copy) for token in tokens(each)}) == len(tokens(copy)) + 1 == 2
    sent = [each.prompt_id for each in events if isinstance(each, e.PromptSent)]
    assert len(sent) == len(set(sent)) == 1
    assert [each.task_id for each in events if isinstance(each, e.TaskCompleted)] == ["two"]
    assert work.view.status == "paused" and copy.verify().verified


def tokens(work: Work) -> list[str]:
    return [line.event.token for line in work.journal() if isinstance(line.event, e.TokenCaptured)]


def fork_of(stage: Stage, work: Work, session_id: str) -> Work:
    """The same user's next work, with the agent that has the conversation."""
    copy = stage.work(work.script.read_text())
    copy.agent_home = work.agent_home
    copy.id = work.fork(session_id).workflow.id
    return copy

"""The next step of a run, as a table."""

from dataclasses import replace

import pytest

from segue.model.ids import TaskId
from segue.model.plan import Plan, Planning, Task
from segue.model.status import Purpose, Trigger
from segue.protocol.budgets import LimitReached
from segue.protocol.steps import (
    AdoptPlan,
    AskForPlan,
    AwaitApproval,
    AwaitMessage,
    Complete,
    HandOver,
    Pause,
    Situation,
    Step,
    TakeMessage,
    Work,
    next_step,
)

TASK = Task(id=TaskId("lexer"), title="Write the lexer")
PLAN = Plan(tasks=(TASK,))
ASKED = LimitReached(trigger=Trigger.PAUSE, reason="lunch")
FULL = LimitReached(trigger=Trigger.EXHAUSTION, reason="the context is full")
SPENT = LimitReached(trigger=Trigger.TIMEOUT, reason="the time is over")

DONE = Situation(purpose=Purpose.WORK)
READY = replace(DONE, task=TASK)
TO_PLAN = replace(DONE, planning=Planning())
PROPOSED = replace(DONE, planning=Planning(proposed=PLAN))
TALK = replace(READY, purpose=Purpose.TALK)

STEPS: list[tuple[str, Situation, Step]] = [
    ("the next task is sent", READY, Work(TASK)),
    ("a run without anything left is complete", DONE, Complete()),
    ("a message comes before the next task", replace(READY, message_waits=True), TakeMessage()),
    ("a message comes before the end", replace(DONE, message_waits=True), TakeMessage()),
    ("a pause comes before a message", replace(READY, message_waits=True, pause=ASKED), Pause(ASKED)),
    ("a pause comes before the next task", replace(READY, pause=ASKED), Pause(ASKED)),
    ("finished work is complete although a pause was requested", replace(DONE, pause=ASKED), Complete()),
    ("a message keeps finished work from ending under a pause",
     replace(DONE, message_waits=True, pause=ASKED), Pause(ASKED)),
    ("a run that is there to talk waits for messages", TALK, AwaitMessage()),
    ("a run that is there to talk waits although nothing is left", replace(DONE, purpose=Purpose.TALK), AwaitMessage()),
    ("a run that is there to talk pauses on request", replace(TALK, pause=ASKED), Pause(ASKED)),
    ("a limit pauses before the next task", replace(READY, used_up=SPENT), Pause(SPENT)),
    ("a limit comes before a hand-over", replace(READY, used_up=SPENT, full="80 %"), Pause(SPENT)),
    ("a full context hands over before the next task", replace(READY, full="80 %"), HandOver("80 %")),
    ("finished work is complete although the context is full", replace(DONE, full="80 %"), Complete()),
    ("an agent that plans is asked for a plan", TO_PLAN, AskForPlan()),
    ("an agent that makes no plans adopts one", replace(TO_PLAN, agent_plans=False), AdoptPlan()),
    ("a plan is not made beyond a limit", replace(TO_PLAN, used_up=SPENT), Pause(SPENT)),
    ("a proposed plan waits for approval", PROPOSED, AwaitApproval(PLAN)),
    ("a proposed plan waits although a limit is reached", replace(PROPOSED, used_up=SPENT), AwaitApproval(PLAN)),
    ("a proposed plan waits although the context is full", replace(PROPOSED, pause=FULL), AwaitApproval(PLAN)),
    ("a person's pause comes before the approval of a plan", replace(PROPOSED, pause=ASKED), Pause(ASKED)),
]  # fmt: skip


@pytest.mark.parametrize(("situation", "step"), [row[1:] for row in STEPS], ids=[row[0] for row in STEPS])
def test_next_step(situation: Situation, step: Step) -> None:
    assert next_step(situation) == step

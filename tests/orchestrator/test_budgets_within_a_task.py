"""Money and tokens that are used up stop the work in the middle of a task too: Segue begins no further turn of it."""

import sys

import pytest

from segue.model import events as e
from segue.model.agents import Choices, Limits, Review, Verify
from segue.model.errors import WrongState
from segue.model.status import Trigger
from tests.orchestrator.test_finishing import answer, prompts
from tests.orchestrator.test_limits import stopped
from tests.orchestrator.test_reviewing import NO, ONE_TASK, YES, questions, script
from tests.orchestrator.test_send_now import say_now
from tests.orchestrator.test_workflows import HELD, SIMPLE
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

PASSED = "The work has cost $1.50, and the budget is $1.00."
ONE_DOLLAR = Limits(usd=1.0)
FAILS = Verify(command=f"{sys.executable} -c 'import sys; sys.exit(1)'", seconds=30.0)


def costs(usd: float) -> str:
    """What a conversation has cost so far, as its agent tells it."""
    return f"usage: {{used: 1000, size: 100000, cost: {usd}}}"


def spends(action: str, usd: float) -> str:
    return f"{costs(usd)}}}, {{{action}"


async def warned(theatre: Theatre, code: str = "limit_passed") -> list[str]:
    return [event.message for event in await theatre.events("build-it", e.Warned) if event.code == code]


async def test_reviews_of_which_each_costs_end_with_the_budget(on_each: Theatre) -> None:
    on_each.choices = Choices(limits=ONE_DOLLAR, review=Review(passes=4))
    await on_each.begin(script(spends(NO, 0.6)), plan=ONE_TASK)
    view = await on_each.until("build-it", "paused")
    reason = "The work has cost $1.20, and the budget is $1.00."
    assert await stopped(on_each) == (Trigger.EXHAUSTION, reason, False)
    assert len(await on_each.events("build-it", e.ReviewGiven)) == 2 and len(prompts(on_each)) == 4
    (asked,) = await on_each.events("build-it", e.PauseRequested)
    assert (asked.trigger, asked.reason) == (Trigger.EXHAUSTION, reason)
    assert [task.status for task in view.tasks] == ["pending"] and await warned(on_each) == []
    with pytest.raises(WrongState, match=r"the budget is \$1.00"):
        await on_each.resume("build-it")
    await on_each.orchestrator.limit("build-it", Limits(usd=5.0))
    on_each.script.write_text(script(YES))
    await on_each.resume_until("build-it", "completed")
    assert "a.txt is empty" in prompts(on_each)[4]


async def test_of_several_reviewers_no_further_one_is_asked(opened: Theatre) -> None:
    opened.choices = Choices(limits=Limits(tokens=1000), review=Review(personas=("security", "style")))
    used = f"usage: {{input: 900, output: 200}}}}, {{{YES}"
    await opened.begin(script(used), plan=ONE_TASK)
    await opened.until("build-it", "paused")
    assert (await stopped(opened))[1] == "1,100 tokens were used, and the budget is 1,000."
    assert len(questions(opened)) == 1


async def test_an_answer_that_cannot_be_read_is_not_asked_for_again(opened: Theatre) -> None:
    opened.choices = Choices(limits=ONE_DOLLAR, review=Review())
    await opened.begin(script(spends("say: Looks good.", 1.5)), plan=ONE_TASK)
    await opened.until("build-it", "paused")
    assert (await stopped(opened))[0] is Trigger.EXHAUSTION
    assert len(prompts(opened)) == 2


async def test_tests_that_fail_are_not_tried_again(theatre: Theatre) -> None:
    theatre.choices = Choices(limits=ONE_DOLLAR, verify=FAILS)
    async with theatre.open(retry_attempts=3, quick_failures=10):
        await theatre.begin(f"turns: [{{match: '', do: [{{{costs(1.5)}}}]}}]", plan=ONE_TASK)
        await theatre.until("build-it", "paused")
        assert await stopped(theatre) == (
            Trigger.EXHAUSTION,
            PASSED,
            False,
        )
        assert len(await theatre.events("build-it", e.TestsRan)) == len(prompts(theatre)) == 1


async def test_the_fixer_is_not_asked(theatre: Theatre) -> None:
    theatre.choices = Choices(limits=ONE_DOLLAR, verify=FAILS)
    once = [f"{{match: '', once: true, do: [{{{costs(usd)}}}]}}" for usd in (0.4, 0.8, 1.2)]
    async with theatre.open(retry_attempts=3, quick_failures=10):
        await theatre.begin(f"turns: [{', '.join(once)}]", plan=ONE_TASK)
        await theatre.until("build-it", "paused")
        assert (await stopped(theatre))[1] == "The work has cost $1.20, and the budget is $1.00."
        assert len(prompts(theatre)) == 3 and await theatre.events("build-it", e.FixerAdvised) == []
        assert [each.number for each in await theatre.orchestrator.sessions("build-it")] == [1]


async def test_a_plan_that_cannot_be_read_is_not_asked_for_again(opened: Theatre) -> None:
    opened.choices = Choices(limits=ONE_DOLLAR)
    await opened.begin(f"turns: [{{match: '', do: [{{{spends('say: Later.', 1.5)}}}]}}]", plan=None, propose=True)
    await opened.until("build-it", "paused")
    assert (await stopped(opened))[1] == PASSED
    assert len(prompts(opened)) == 1


async def test_after_a_word_in_between_the_task_does_not_go_on(opened: Theatre) -> None:
    opened.choices = Choices(limits=ONE_DOLLAR)
    talks = f"""turns:
  - {{match: Do A, do: [{{write: {{path: a.txt, content: A}}}}, {{wait_for: never}}]}}
  - {{match: Use tabs, do: [{{{costs(1.5)}}}, {{say: Tabs it is.}}]}}"""
    await opened.begin_until(e.ToolFinished, talks)
    assert (await say_now(opened)).status == "sent"
    await opened.until("build-it", "paused")
    assert (await stopped(opened))[::2] == (Trigger.EXHAUSTION, False)
    assert len(prompts(opened)) == 2


async def test_a_turn_that_goes_on_after_the_budget_is_interrupted_after_the_usual_time(theatre: Theatre) -> None:
    theatre.choices = Choices(limits=ONE_DOLLAR)
    async with theatre.open(pause_force_after=30.0):
        await theatre.begin(HELD.replace("{wait_for", f"{{{costs(1.5)}}}, {{wait_for"))
        began = theatre.clock.now()
        assert ((await theatre.first("build-it", e.PauseRequested)).force_at - began).total_seconds() == 30
        await theatre.as_time_goes_by("build-it", "paused")
        trigger, reason, clean = await stopped(theatre)
        assert (trigger, clean) == (Trigger.EXHAUSTION, False)
        assert reason.endswith(f"in the middle of the task: {PASSED}")


@pytest.mark.parametrize("plan", [None, ONE_TASK])
async def test_the_last_task_is_complete_and_the_passed_budget_is_reported(opened: Theatre, plan: str | None) -> None:
    opened.choices = Choices(limits=ONE_DOLLAR, review=Review())
    await opened.begin(script(spends(YES, 1.5)), plan=plan)
    assert (await opened.until("build-it", "completed")).tasks_done == 1
    assert await warned(opened) == [PASSED]


async def test_a_person_who_has_the_last_word_is_asked_and_the_work_rests_after_that(opened: Theatre) -> None:
    opened.choices = Choices(limits=ONE_DOLLAR, review=Review(passes=1))
    await opened.begin(script(spends(NO, 1.5)))
    view = await opened.until("build-it", "review")
    assert "is not approved by reviewer" in view.asks
    assert await warned(opened) == [PASSED]
    resumed = await answer(opened, "build-it", allow=True)
    assert resumed is not None and (resumed.status, resumed.reason) == ("paused", PASSED)
    view = await opened.until("build-it", "paused")
    assert [task.status for task in view.tasks] == ["completed", "pending"]


async def test_a_plan_that_spent_the_budget_waits_for_its_approval_and_then_rests(opened: Theatre) -> None:
    opened.choices = Choices(limits=ONE_DOLLAR)
    plan = """say: '{"tasks": [{"id": "a", "title": "Do A"}]}'"""
    await opened.begin(f"turns: [{{match: '', do: [{{{spends(plan, 1.5)}}}]}}]", plan=None, propose=True)
    view = await opened.until("build-it", "blocked")
    assert [task.title for task in view.proposed_plan] == ["Do A"] and await warned(opened) == [PASSED]
    resumed = await answer(opened, "build-it", allow=True)
    assert resumed is not None and (resumed.status, resumed.reason) == ("paused", PASSED)


async def test_who_is_awake_to_be_talked_to_works_with_the_money_that_was_given_since(opened: Theatre) -> None:
    opened.choices = Choices(limits=Limits(usd=0.5))
    await opened.begin(SIMPLE.replace("do: [", f"do: [{{{costs(0.75)}}}, ", 1) + "  - {match: '', do: []}\n")
    await opened.until("build-it", "paused")
    await opened.prompt("build-it", "Are you there?")
    await opened.orchestrator.limit("build-it", Limits(usd=5.0))
    assert (await opened.resume("build-it")).reason == "the agent is awake already"
    assert (await opened.until("build-it", "completed")).runs == 2

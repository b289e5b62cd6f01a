"""Estimated context of an agent that does not report it."""

import pytest

from segue.model import events as e
from segue.model.agents import AgentConfiguration
from segue.protocol.capacity import Compaction, Gauge, Ladder, Reached, Refresh, climb, ladder_for
from segue.protocol.estimates import LONGEST_OUTPUT, Estimate, add_event, add_prompt, add_report, due_report

LONG = "word " * 4_000


def after(*events: e.AgentEvent, prompt: str = "") -> Estimate:
    estimate = add_prompt(Estimate(), prompt)
    for event in events:
        estimate = add_event(estimate, event)
    return estimate


@pytest.mark.parametrize(
    "event",
    [
        e.TextDelta(role="message", text=LONG),
        e.TextDelta(role="thought", text=LONG),
        e.ToolCalled(call_id="1", title="Write", tool="edit", input={"content": LONG}),
        e.ToolFinished(call_id="1", status="completed", output=LONG),
    ],
)
def test_messages_thoughts_and_tool_calls_are_counted(event: e.AgentEvent) -> None:
    found = due_report(after(event))
    assert found is not None and found.estimated
    assert 5_000 <= (found.context_tokens or 0) <= 5_010


def test_prompts_are_counted() -> None:
    assert due_report(after(prompt=LONG)) == e.UsageReported(context_tokens=5_000, estimated=True)


def test_a_long_output_is_counted_up_to_the_limit_of_agents() -> None:
    assert after(e.ToolFinished(call_id="1", status="completed", output="x" * 10_000_000)).characters == LONGEST_OUTPUT


def test_nothing_is_estimated_for_an_agent_that_reports_its_context() -> None:
    told = after(e.UsageReported(context_tokens=12, window=100), e.TextDelta(role="message", text=LONG))
    assert due_report(told) is None


def test_a_report_of_zero_tokens_does_not_stop_the_estimate() -> None:
    assert due_report(after(e.UsageReported(context_tokens=0), e.TextDelta(role="message", text=LONG))) is not None


def test_a_small_growth_is_kept_until_a_report_is_due() -> None:
    once = after(e.TextDelta(role="message", text="x" * 7_000))
    assert due_report(once) is None
    assert due_report(add_event(once, e.TextDelta(role="message", text="x" * 1_000))) is not None


def test_the_estimate_of_a_resumed_conversation_continues() -> None:
    on = add_report(Estimate(), e.UsageReported(context_tokens=30_000, estimated=True))
    assert due_report(on) is None
    more = due_report(add_event(on, e.TextDelta(role="message", text=LONG)))
    assert more is not None and more.context_tokens == 35_000


def test_the_model_with_the_most_input_is_reported() -> None:
    small = e.UsageReported(input_tokens=10, model="a-flash")
    large = e.UsageReported(input_tokens=1_000, model="a-pro")
    found = due_report(after(small, large, small, e.TextDelta(role="message", text=LONG)))
    assert found is not None and found.model == "a-pro"


def test_a_rung_reached_by_an_estimate_is_marked_as_estimated() -> None:
    gauge, notices = climb(
        Ladder(known_window=100_000), Gauge(highest=0), e.UsageReported(context_tokens=76_000, estimated=True)
    )
    refresh, warn = notices
    assert isinstance(refresh, Refresh) and isinstance(warn, Reached)
    assert warn.sentence == "The context holds about 76,000 of 100,000 tokens (76%)."
    assert gauge.estimated


def test_a_report_after_estimates_is_no_compaction_and_adds_no_new_tokens() -> None:
    ladder = ladder_for(AgentConfiguration(name="a", command=("a",)))
    gauge, _ = climb(ladder, Gauge(highest=0), e.UsageReported(context_tokens=40_000, window=10**6, estimated=True))
    gauge, notices = climb(ladder, gauge, e.UsageReported(context_tokens=9_000, window=10**6))
    assert not any(isinstance(each, Compaction) for each in notices)
    assert (gauge.highest, gauge.new_tokens) == (9_000, 40_000)

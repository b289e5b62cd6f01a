"""What a window is reckoned to hold whose agent does not tell."""

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
def test_all_that_an_agent_says_and_does_counts(event: e.AgentEvent) -> None:
    found = due_report(after(event))
    assert found is not None and found.estimated
    assert 5_000 <= (found.context_tokens or 0) <= 5_010


def test_what_an_agent_is_told_counts() -> None:
    assert due_report(after(prompt=LONG)) == e.UsageReported(context_tokens=5_000, estimated=True)


def test_an_output_that_agents_cut_counts_as_far_as_they_read_it() -> None:
    assert after(e.ToolFinished(call_id="1", status="completed", output="x" * 10_000_000)).characters == LONGEST_OUTPUT


def test_nothing_is_reckoned_for_an_agent_that_tells() -> None:
    told = after(e.UsageReported(context_tokens=12, window=100), e.TextDelta(role="message", text=LONG))
    assert due_report(told) is None


def test_an_agent_that_says_nought_does_not_tell() -> None:
    assert due_report(after(e.UsageReported(context_tokens=0), e.TextDelta(role="message", text=LONG))) is not None


def test_small_talk_is_not_worth_a_report_and_is_not_forgotten() -> None:
    once = after(e.TextDelta(role="message", text="x" * 7_000))
    assert due_report(once) is None
    assert due_report(add_event(once, e.TextDelta(role="message", text="x" * 1_000))) is not None


def test_a_conversation_that_goes_on_is_reckoned_on() -> None:
    on = add_report(Estimate(), e.UsageReported(context_tokens=30_000, estimated=True))
    assert due_report(on) is None
    more = due_report(add_event(on, e.TextDelta(role="message", text=LONG)))
    assert more is not None and more.context_tokens == 35_000


def test_the_model_is_the_one_that_was_asked_the_most() -> None:
    small = e.UsageReported(input_tokens=10, model="a-flash")
    large = e.UsageReported(input_tokens=1_000, model="a-pro")
    found = due_report(after(small, large, small, e.TextDelta(role="message", text=LONG)))
    assert found is not None and found.model == "a-pro"


def test_rungs_are_reached_by_estimates_and_say_so() -> None:
    gauge, notices = climb(
        Ladder(known_window=100_000), Gauge(highest=0), e.UsageReported(context_tokens=76_000, estimated=True)
    )
    refresh, warn = notices
    assert isinstance(refresh, Refresh) and isinstance(warn, Reached)
    assert warn.sentence == "The context holds about 76,000 of 100,000 tokens (76%)."
    assert gauge.estimated


def test_a_report_after_estimates_is_no_compaction_and_says_nothing_of_what_is_new() -> None:
    ladder = ladder_for(AgentConfiguration(name="a", command=("a",)))
    gauge, _ = climb(ladder, Gauge(highest=0), e.UsageReported(context_tokens=40_000, window=10**6, estimated=True))
    gauge, notices = climb(ladder, gauge, e.UsageReported(context_tokens=9_000, window=10**6))
    assert not any(isinstance(each, Compaction) for each in notices)
    assert (gauge.highest, gauge.new_tokens) == (9_000, 40_000)

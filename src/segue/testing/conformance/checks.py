"""The examination: what a driver does at the start, in a turn, at a question, at a crash and after it."""

import os
import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from unittest import SkipTest

import anyio

from segue.drivers import Agent
from segue.model import errors
from segue.model.events import (
    AgentEvent,
    AgentExited,
    OutputRecorded,
    PermissionRequested,
    StopReason,
    TextDelta,
    ToolCalled,
    ToolFinished,
    TurnEnded,
    TurnFailed,
    UsageReported,
)
from segue.model.ids import PromptId, RequestId
from segue.model.status import Failure
from segue.testing.conformance.acts import Fail, Hang, Line, Mistake, Say, SayLate, Use, Write
from segue.testing.conformance.candidate import Candidate, Check, able, ensure, needs
from segue.testing.rehearsal.launch import rest_of_turn, turn
from segue.workspace.processes import identity, marked

WITHIN = 60.0
"""Seconds for anything that an agent does, on a busy machine."""

_PROMPT = PromptId("prompt-1")
_WORDS = "REMEMBER-ALPHA"
_HELLO = Line("say hello", Say("Hello there."))
_HANG = Line("wait for ever", Hang())
_WRITE = Line("write the file", Write("written.txt", "content\n"))


# ── start ───────────────────────────────────────────────────────────────────────────────────────────


@needs(Say)
async def a_started_agent_says_who_it_is(candidate: Candidate) -> None:
    async with candidate.cast(_HELLO) as launch, candidate.driver.start(launch) as agent:
        ensure(bool(agent.token), "An open conversation has no token.")
        ensure(bool(agent.name), "The agent has no name.")
        ensure(identity(agent.pid) is not None, "Nothing runs under the agent's pid.")
        ensure(identity(agent.guardian_pid) is not None, "Nothing runs under the guardian's pid.")
        # What is in a container is found by the label of that.
        found = launch.container is not None or agent.pid in marked(launch.execution)
        ensure(found, "The agent's process does not carry the mark of its execution.")


@needs(Hang)
async def leaving_the_context_ends_every_process(candidate: Candidate) -> None:
    """Check that leaving the context ends every process of the agent."""
    async with candidate.cast(_HANG) as launch:
        async with candidate.driver.start(launch) as agent:
            await _first_sign(agent, _HANG.prompt)
            alive = [identity(agent.pid), identity(agent.guardian_pid)]
            stream = agent.events()
        ensure(None not in alive, "The agent was not alive in the middle of its turn.")
        ensure(not marked(launch.execution), "Processes of the agent are left after its context.")
        with anyio.fail_after(WITHIN):
            ended = [event async for event in stream]
        ensure(_ends(ended), f"Whoever still follows the stream sees this in place of one end: {ended}.")


@needs(Say)
async def two_starts_are_two_conversations(candidate: Candidate) -> None:
    async with candidate.cast(_HELLO) as launch:
        async with candidate.driver.start(launch) as first:
            token = first.token
        async with candidate.driver.start(launch) as second:
            ensure(second.token != token, "Two conversations have the same token.")


@needs(Say)
async def an_introduction_opens_no_conversation(candidate: Candidate) -> None:
    async with candidate.cast(_HELLO) as launch:
        introduction = await candidate.driver.introduce(launch)
        ensure(not marked(launch.execution), "Processes of the agent are left after its introduction.")
        async with candidate.driver.start(launch) as agent:
            ensure(introduction.name == agent.name, "It introduces itself by another name.")
            ensure(introduction.capabilities == agent.capabilities, "It introduces itself with other capabilities.")


@needs(Say)
async def a_program_that_is_not_there_is_missing(candidate: Candidate) -> None:
    async with candidate.cast(_HELLO) as launch:
        nowhere = replace(launch, command=("segue-has-no-such-program",))
        with _raises(errors.AgentMissing):
            async with candidate.driver.start(nowhere):
                pass


@needs(Say)
async def a_mistake_of_the_caller_comes_out_as_it_is(candidate: Candidate) -> None:
    async with candidate.cast(_HELLO) as launch:
        with _raises(errors.BadInput):
            async with candidate.driver.start(launch):
                raise errors.BadInput
        ensure(not marked(launch.execution), "Processes of the agent are left after the caller's mistake.")


# ── prompt ──────────────────────────────────────────────────────────────────────────────────────────


@needs(Say)
async def a_turn_comes_out_in_order_and_ends_with_its_prompt(candidate: Candidate) -> None:
    async with candidate.cast(_HELLO) as launch, candidate.driver.start(launch) as agent:
        await agent.prompt(_PROMPT, _HELLO.prompt)
        events = await rest_of_turn(agent, WITHIN)
    ensure(_said(events) == "Hello there.", f"The agent's words came out as {_said(events)!r}.")
    ensure(_is_end(events[-1], "end_turn"), f"The turn ended with {events[-1]}.")


@needs(Say)
async def several_turns_come_out_of_one_stream(candidate: Candidate) -> None:
    async with candidate.cast(_HELLO) as launch, candidate.driver.start(launch) as agent:
        for _ in range(2):
            events = await turn(agent, _HELLO.prompt, WITHIN)
            ensure(_said(events) == "Hello there.", f"In a later turn the agent's words were {_said(events)!r}.")


@needs(Say, Hang)
async def a_second_prompt_within_a_turn_is_refused(candidate: Candidate) -> None:
    async with candidate.cast(_HANG, _HELLO) as launch, candidate.driver.start(launch) as agent:
        await _first_sign(agent, _HANG.prompt)
        with _raises(errors.WrongState):
            await agent.prompt(PromptId("prompt-2"), _HELLO.prompt)


@needs(Say, Fail)
async def a_failed_turn_is_told_and_the_next_one_works(candidate: Candidate) -> None:
    lines = (Line("this goes wrong", Fail("The model is out of order.")), _HELLO)
    async with candidate.cast(*lines) as launch, candidate.driver.start(launch) as agent:
        await agent.prompt(_PROMPT, "this goes wrong")
        failed = (await rest_of_turn(agent, WITHIN))[-1]
        ensure(isinstance(failed, TurnFailed) and failed.prompt_id == _PROMPT, f"The turn ended with {failed}.")
        told = failed.message if isinstance(failed, TurnFailed) else ""
        ensure("The model is out of order." in told, f"The failure is told as {told!r}.")
        ensure(_said(await turn(agent, _HELLO.prompt, WITHIN)) == "Hello there.", "The next turn did not work.")


@needs(Write)
async def a_tool_call_is_told_from_its_beginning_to_its_end(candidate: Candidate) -> None:
    """Check that a tool call is reported from its beginning to its end."""
    async with candidate.cast(_WRITE) as launch, candidate.driver.start(launch) as agent:
        question, before = await _question(agent)
        await agent.answer(question.request_id, _option(question, "allow"))
        events = [*before, *await rest_of_turn(agent, WITHIN)]
        ensure((launch.directory / "written.txt").read_text() == "content\n", "The file was not written.")
    told = [(type(event), event.call_id) for event in events if isinstance(event, ToolCalled | ToolFinished)]
    wanted = [(ToolCalled, question.call_id), (ToolFinished, question.call_id)]
    ensure([each for each in told if each[1] == question.call_id] == wanted, f"Of the call was told: {told}.")
    statuses = [event.status for event in events if isinstance(event, ToolFinished)]
    ensure(statuses[-1:] == ["completed"], f"The call's end was told as {statuses}.")


# ── usage ───────────────────────────────────────────────────────────────────────────────────────────


@needs(Use)
async def usage_is_told_before_the_turn_ends(candidate: Candidate) -> None:
    async with candidate.cast(Line("use it", Use(1200, 34))) as launch, candidate.driver.start(launch) as agent:
        events = await turn(agent, "use it", WITHIN)
    reports = [event for event in events if isinstance(event, UsageReported)]
    contexts = [each.context_tokens for each in reports if each.context_tokens is not None]
    ensure(contexts[-1:] == [1234], f"The context was reported as {contexts}, and holds 1234 tokens.")
    turns = [(each.input_tokens, each.output_tokens) for each in reports if each.input_tokens is not None]
    ensure(turns in ([], [(1200, 34)]), f"The tokens of the turn were reported as {turns}, and are (1200, 34), once.")
    ensure(isinstance(events[-1], TurnEnded), f"The turn ended with {events[-1]}.")


# ── permission ──────────────────────────────────────────────────────────────────────────────────────


@needs(Write)
async def a_refused_question_has_no_effect(candidate: Candidate) -> None:
    for choose in (True, False):
        async with candidate.cast(_WRITE) as launch, candidate.driver.start(launch) as agent:
            question, _ = await _question(agent)
            await agent.answer(question.request_id, _option(question, "reject") if choose else None)
            ended = (await rest_of_turn(agent, WITHIN))[-1]
            ensure(isinstance(ended, TurnEnded), f"After a refusal the turn ended with {ended}.")
            ensure(not (launch.directory / "written.txt").exists(), "The file was written all the same.")


@needs(Write)
async def only_an_open_question_can_be_answered_and_only_with_its_options(candidate: Candidate) -> None:
    async with candidate.cast(_WRITE) as launch, candidate.driver.start(launch) as agent:
        question, _ = await _question(agent)
        with _raises(errors.BadInput):
            await agent.answer(question.request_id, "no-such-option")
        with _raises(errors.NothingToAnswer):
            await agent.answer(RequestId("no-such-question"), _option(question, "allow"))
        await agent.answer(question.request_id, _option(question, "reject"))
        with _raises(errors.NothingToAnswer):
            await agent.answer(question.request_id, _option(question, "allow"))


# ── cancel ──────────────────────────────────────────────────────────────────────────────────────────


@needs(Say, Hang)
async def a_cancelled_turn_ends_and_the_next_one_works(candidate: Candidate) -> None:
    async with candidate.cast(_HANG, _HELLO) as launch, candidate.driver.start(launch) as agent:
        await _first_sign(agent, _HANG.prompt)
        await agent.cancel()
        ended = (await rest_of_turn(agent, WITHIN))[-1]
        ensure(_is_end(ended, "cancelled"), f"The turn ended with {ended}.")
        ensure(_said(await turn(agent, _HELLO.prompt, WITHIN)) == "Hello there.", "The next turn did not work.")


@needs(Say)
async def cancelling_without_a_turn_leaves_the_next_one_alone(candidate: Candidate) -> None:
    async with candidate.cast(_HELLO) as launch, candidate.driver.start(launch) as agent:
        await agent.cancel()
        ensure(_said(await turn(agent, _HELLO.prompt, WITHIN)) == "Hello there.", "The next turn did not work.")


@needs(Write)
async def cancelling_closes_the_open_question(candidate: Candidate) -> None:
    async with candidate.cast(_WRITE) as launch, candidate.driver.start(launch) as agent:
        question, _ = await _question(agent)
        await agent.cancel()
        ended = (await rest_of_turn(agent, WITHIN))[-1]
        ensure(_is_end(ended, "cancelled"), f"The turn ended with {ended}.")
        with _raises(errors.NothingToAnswer):
            await agent.answer(question.request_id, _option(question, "allow"))
        ensure(not (launch.directory / "written.txt").exists(), "The file was written all the same.")


# ── crash ───────────────────────────────────────────────────────────────────────────────────────────


@needs(Hang)
async def a_killed_agent_ends_the_stream_with_its_exit(candidate: Candidate) -> None:
    """Check that the stream ends with the exit of a killed agent."""
    async with candidate.cast(_HANG) as launch, candidate.driver.start(launch) as agent:
        await _first_sign(agent, _HANG.prompt)
        os.kill(agent.pid, signal.SIGKILL)
        with anyio.fail_after(WITHIN):
            events = [event async for event in agent.events()]
            again = [event async for event in agent.events()]
        ensure(_ends(events) and not again, f"After a kill the stream ended with {[*events, *again]}.")
        with _raises(errors.AgentError):
            await agent.prompt(PromptId("prompt-2"), "anybody there?")
        await agent.cancel()


@needs(Write)
async def a_question_dies_with_its_process(candidate: Candidate) -> None:
    async with candidate.cast(_WRITE) as launch, candidate.driver.start(launch) as agent:
        question, _ = await _question(agent)
        os.kill(agent.pid, signal.SIGKILL)
        ensure(_ends(await rest_of_turn(agent, WITHIN)), "The stream did not end with the process.")
        with _raises(errors.NothingToAnswer):
            await agent.answer(question.request_id, _option(question, "allow"))


# ── resume ──────────────────────────────────────────────────────────────────────────────────────────


@needs(Say, Hang)
async def a_conversation_comes_back_after_a_kill(candidate: Candidate) -> None:
    """Check that a conversation can be resumed after a kill."""
    hello = Line(_WORDS, Say("I will remember."))
    async with candidate.cast(hello, _HANG) as launch:
        async with candidate.driver.start(launch) as agent:
            able(agent.capabilities, "native")
            token = agent.token
            await turn(agent, f"{_WORDS}, please", WITHIN)
            await _first_sign(agent, _HANG.prompt)
            os.kill(agent.pid, signal.SIGKILL)
            await rest_of_turn(agent, WITHIN)
        async with candidate.driver.resume(launch, token) as agent:
            ensure(agent.token == token, f"Asked for conversation {token}, it opened {agent.token}.")
            events = await turn(agent, f"{_WORDS} once more", WITHIN)
            ensure(_said(events) == "I will remember.", f"What was said before came as news: {_said(events)!r}.")
            ensure(await candidate.remembers(agent, _WORDS), "The conversation came back without its memory.")


@needs(Say)
async def a_token_that_nobody_knows_is_rejected(candidate: Candidate) -> None:
    async with candidate.cast(_HELLO) as launch:
        with _raises(errors.TokenRejected):
            async with candidate.driver.resume(launch, "a-conversation-that-never-was"):
                pass
        ensure(not marked(launch.execution), "Processes of the agent are left after a rejected token.")


@needs(Say, Mistake)
async def another_conversation_than_the_one_asked_for_is_not_taken_for_it(candidate: Candidate) -> None:
    """Check that a conversation other than the requested one is refused."""
    async with candidate.cast(Line("", Mistake()), _HELLO) as launch:
        async with candidate.driver.start(launch) as agent:
            token = agent.token
            # Where nothing was ever said there is nothing to go back to.
            await turn(agent, _HELLO.prompt, WITHIN)
        # An agent whose program tells the name only with its answer is found out in its first turn.
        with suppress(errors.ConversationMismatch):
            async with candidate.driver.resume(launch, token) as agent:
                events = await turn(agent, _HELLO.prompt, WITHIN)
            ended = events[-1]
            noticed = isinstance(ended, TurnFailed) and ended.failure is Failure.OTHER_CONVERSATION
            ensure(noticed and not _said(events), f"Another conversation was taken for it: {events}.")


@needs(Say)
async def a_copy_remembers_and_the_original_stays(candidate: Candidate) -> None:
    """Check that a fork keeps the conversation and leaves the original unchanged."""
    hello = Line(_WORDS, Say("I will remember."))
    async with candidate.cast(hello) as launch:
        async with candidate.driver.start(launch) as agent:
            able(agent.capabilities, "fork")
            token = agent.token
            await turn(agent, f"{_WORDS}, please", WITHIN)
        async with candidate.driver.fork(launch, token) as copy:
            ensure(copy.token != token, "A copy has the token of its original.")
            ensure(await candidate.remembers(copy, _WORDS), "A copy does not remember.")
            await turn(copy, "ONLY-IN-THE-COPY", WITHIN)
        async with candidate.driver.resume(launch, token) as agent:
            ensure(
                not await candidate.remembers(agent, "ONLY-IN-THE-COPY"), "What a copy is told reaches the original."
            )


@needs(Say)
async def a_copy_up_to_a_bookmark_knows_nothing_that_was_said_after_it(candidate: Candidate) -> None:
    """Check that a fork at a bookmark lacks everything after it."""
    async with candidate.cast(Line(_WORDS, Say("I will remember."))) as launch:
        async with candidate.driver.start(launch) as agent:
            able(agent.capabilities, "fork")
            token = agent.token
            ended = [each for each in await turn(agent, f"{_WORDS}, please", WITHIN) if isinstance(each, TurnEnded)]
            if not ended or (bookmark := ended[0].bookmark) is None:
                raise SkipTest("its agent gives no bookmarks")
            await turn(agent, "SAID-LATER", WITHIN)
        async with candidate.driver.fork(launch, token, bookmark) as copy:
            ensure(await candidate.remembers(copy, _WORDS), "A copy does not remember what came before its bookmark.")
            ensure(not await candidate.remembers(copy, "SAID-LATER"), "A copy knows what came after its bookmark.")
        async with candidate.driver.resume(launch, token) as agent:
            ensure(await candidate.remembers(agent, "SAID-LATER"), "Since there is a copy, the original knows less.")


@needs(Say)
async def conversations_are_listed_by_their_tokens(candidate: Candidate) -> None:
    async with candidate.cast(_HELLO) as launch:
        async with candidate.driver.start(launch) as agent:
            able(agent.capabilities, "list")
            token = agent.token
            await turn(agent, _HELLO.prompt, WITHIN)
        listed = [each.token for each in await candidate.driver.conversations(launch)]
        ensure(token in listed, f"Conversation {token} is not among those listed: {listed}.")


# ── late events ─────────────────────────────────────────────────────────────────────────────────────


@needs(Say, SayLate)
async def what_is_said_after_a_turn_still_comes_and_before_the_next(candidate: Candidate) -> None:
    lines = (Line("say it later", SayLate("By the way.")), _HELLO)
    async with candidate.cast(*lines) as launch, candidate.driver.start(launch) as agent:
        ended = (await turn(agent, "say it later", WITHIN))[-1]
        ensure(isinstance(ended, TurnEnded), f"The turn ended with {ended}.")
        late = await _next(agent)
        ensure(late == TextDelta(role="message", text="By the way."), f"After the turn came {late}.")
        ensure(_said(await turn(agent, _HELLO.prompt, WITHIN)) == "Hello there.", "It was told again in the next turn.")


# ── helpers ─────────────────────────────────────────────────────────────────────────────────────────


def _said(events: Sequence[AgentEvent]) -> str:
    """Return the text of the agent's messages among events, joined."""
    return "".join(event.text for event in events if isinstance(event, TextDelta) and event.role == "message")


def _ends(events: Sequence[AgentEvent]) -> bool:
    """Return True if the last event, and no other, is the end of the process."""
    return [number for number, event in enumerate(events, 1) if isinstance(event, AgentExited)] == [len(events)]


async def _next(agent: Agent) -> AgentEvent:
    """Return the agent's next event except positions in its updates; raise AssertionError if the stream ends."""
    with anyio.fail_after(WITHIN):
        async for event in agent.events():
            if not isinstance(event, OutputRecorded):
                return event
    raise AssertionError("The stream ended.")


async def _first_sign(agent: Agent, prompt: str) -> None:
    """Send the prompt, and wait for its first event; fail if that ends the turn."""
    await agent.prompt(_PROMPT, prompt)
    event = await _next(agent)
    ensure(not isinstance(event, TurnEnded | TurnFailed | AgentExited), f"The turn began with its end: {event}.")


async def _question(agent: Agent) -> tuple[PermissionRequested, list[AgentEvent]]:
    """Send the prompt to write, and return the permission request with the events before it."""
    before: list[AgentEvent] = []
    await agent.prompt(_PROMPT, _WRITE.prompt)
    with anyio.fail_after(WITHIN):
        async for event in agent.events():
            if isinstance(event, PermissionRequested):
                return event, before
            before.append(event)
            ensure(not isinstance(event, TurnEnded | TurnFailed | AgentExited), f"It did not ask, but: {event}.")
    raise AssertionError("The stream ended before anything was asked.")


def _is_end(event: AgentEvent, reason: StopReason) -> bool:
    """Return True if an event ends the prompt's turn for this reason."""
    return isinstance(event, TurnEnded) and (event.prompt_id, event.reason) == (_PROMPT, reason)


def _option(question: PermissionRequested, kind: str) -> str:
    """Return the id of the option to allow or reject once; fail if there is none."""
    found = next((each.id for each in question.options if each.kind == f"{kind}_once"), None)
    ensure(found is not None, f"The question has no option to {kind} it once.")
    return found or ""


@contextmanager
def _raises(kind: type[errors.SegueError]) -> Generator[None]:
    """Raise AssertionError unless the body raises this error, which is suppressed."""
    with suppress(kind):
        yield
        raise AssertionError(f"{kind.__name__} was not raised.")


CHECKS: tuple[Check, ...] = (
    a_started_agent_says_who_it_is,
    leaving_the_context_ends_every_process,
    two_starts_are_two_conversations,
    an_introduction_opens_no_conversation,
    a_program_that_is_not_there_is_missing,
    a_mistake_of_the_caller_comes_out_as_it_is,
    a_turn_comes_out_in_order_and_ends_with_its_prompt,
    several_turns_come_out_of_one_stream,
    a_second_prompt_within_a_turn_is_refused,
    a_failed_turn_is_told_and_the_next_one_works,
    a_tool_call_is_told_from_its_beginning_to_its_end,
    usage_is_told_before_the_turn_ends,
    a_refused_question_has_no_effect,
    only_an_open_question_can_be_answered_and_only_with_its_options,
    a_cancelled_turn_ends_and_the_next_one_works,
    cancelling_without_a_turn_leaves_the_next_one_alone,
    cancelling_closes_the_open_question,
    a_killed_agent_ends_the_stream_with_its_exit,
    a_question_dies_with_its_process,
    a_conversation_comes_back_after_a_kill,
    a_token_that_nobody_knows_is_rejected,
    another_conversation_than_the_one_asked_for_is_not_taken_for_it,
    a_copy_remembers_and_the_original_stays,
    a_copy_up_to_a_bookmark_knows_nothing_that_was_said_after_it,
    conversations_are_listed_by_their_tokens,
    what_is_said_after_a_turn_still_comes_and_before_the_next,
)

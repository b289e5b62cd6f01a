"""A turn: a prompt goes into the graph, and the graph runs until it has nothing more to do.

A thread whose graph was stopped in the middle resumes from its last checkpoint, and no checkpointed step is repeated.
Its state decides how the prompt gets in:

- No node is left to run: the prompt is the graph's next input.
- Calls that a model made have no result: each gets one that marks it as unknown, the prompt comes after them, and the
  graph continues behind the node that was to do them. No tool is used twice because of a crash.
- The graph waits for an answer: the question is asked again.
- A node was in the middle of something else: LangGraph begins it again, and this is reported.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from langgraph.errors import GraphRecursionError  # pyright: ignore[reportMissingTypeStubs]
from langgraph.types import Command, StateUpdate  # pyright: ignore[reportMissingTypeStubs]

from segue.drivers.langgraph.graph_messages import INTERRUPTED, fields_of, open_calls, unknown
from segue.drivers.langgraph.graphs import MESSAGES, Graph
from segue.drivers.langgraph.interrupts import InterruptQuestion, questions, resumption
from segue.drivers.langgraph.reporter import GraphReporter, call_title
from segue.drivers.langgraph.threads import config_of
from segue.drivers.skeleton import payloads
from segue.drivers.skeleton.agent_program import Channel, PermissionDecision, text_of
from segue.drivers.skeleton.jsonrpc import INTERNAL_ERROR, Message, RequestError
from segue.drivers.skeleton.payloads import Payload, StopReason

_IN_WORDS: dict[str, Any] = {"segue": {"words": True}}
"""Mark of a question that accepts free text."""

P = ParamSpec("P")
T = TypeVar("T")


class Workers(ThreadPoolExecutor):
    """Threads for a graph's ordinary functions. They cannot be stopped, but awaited."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="node")
        self._busy: set[Future[Any]] = set()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function in a thread, and count it as busy until it ends."""
        future = super().submit(fn, *args, **kwargs)
        self._busy.add(future)
        future.add_done_callback(self._busy.discard)
        return future

    async def idle(self) -> None:
        """Wait until no thread is busy."""
        if busy := [asyncio.wrap_future(future) for future in tuple(self._busy)]:
            await asyncio.wait(busy)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphThread:
    """Open thread, with its client and its graph."""

    channel: Channel
    graph: Graph
    workers: Workers

    @property
    def token(self) -> str:
        return self.channel.token


class GraphTurn:
    """One turn of a thread."""

    def __init__(self, setting: GraphThread) -> None:
        self._setting = setting
        self._graph = setting.graph
        self._pregel = setting.graph.pregel
        self._config = config_of(setting.token)
        self._work: asyncio.Task[StopReason] | None = None
        self._cancelled = False
        self._stands_at: str | None = None
        """The checkpoint at which the graph came to its end; where it was stopped is no place to begin a copy at."""
        self._reporter = GraphReporter(setting.channel.update, None, nodes=False)

    async def cancel(self) -> None:
        """Cancel the work of the turn, if it has begun."""
        self._cancelled = True
        if self._work is not None:
            # Once, and not again and again as a cancel scope does it: the library awaits the ends of its own tasks.
            self._work.cancel()

    async def play(self, content: Sequence[Message]) -> Payload:
        """Take a prompt through the graph until it stops, and return the end of the turn."""
        self._work = asyncio.create_task(self._go_on("\n".join(text_of(block) for block in content)))
        try:
            reason = await self._work
        except asyncio.CancelledError:
            if not self._cancelled:
                raise
            reason = "cancelled"
        except GraphRecursionError:
            reason = "max_turn_requests"
        except Exception as error:  # whatever a user's node raises is how its turn ends
            await self._break_off("failed")
            raise RequestError(INTERNAL_ERROR, f"{type(error).__name__}: {error}") from error
        if reason == "cancelled":
            await self._break_off("was cancelled")
        meta = {"segue": {"at": self._stands_at}, **self._reporter.by_model()}
        return payloads.turn_ended(reason, self._reporter.usage(), meta)

    async def _break_off(self, how: str) -> None:
        """Wait for nodes that still run, and report open calls as failed."""
        # A node in a thread goes on without its turn, and the next turn must not find it at work.
        await self._setting.workers.idle()
        await self._reporter.fail_open_calls(how)

    async def _go_on(self, text: str) -> StopReason:
        """Run the graph with its questions until its end or a refused stop, and return the stop reason."""
        state = await self._state()
        self._reporter = GraphReporter(self._setting.channel.update, state.values, nodes=not self._graph.converses)
        given = await self._opening(state, text)
        while True:
            await self._run(given)
            state = await self._state()
            if not state.next:
                return self._at_its_end(state)
            if state.interrupts:
                given = Command(resume=await self._answers(state))
            elif await self._may_pass(state):
                given = None
            else:
                return self._at_its_end(state)

    def _at_its_end(self, state: Any) -> StopReason:
        """Note the checkpoint for a copy, and return the stop reason."""
        self._stands_at = state.config["configurable"]["checkpoint_id"]
        return "end_turn"

    async def _run(self, given: Any) -> None:
        """Run the graph from its last checkpoint with this input, and report its stream; each step is stored first."""
        modes = ["messages", "updates", "tasks"]
        # Every step is on disk before the next one begins.
        stream = self._pregel.astream(
            given, self._config, stream_mode=modes, subgraphs=True, version="v2", durability="sync"
        )
        # A stream that is left behind would leave the graph's nodes at work.
        async with aclosing(stream):
            async for part in stream:
                await self._reporter.take(part)

    async def _state(self) -> Any:
        """Return the thread's last state, from its checkpoint."""
        return await self._pregel.aget_state(self._config)

    # ── how a prompt gets in ────────────────────────────────────────────────────────────────────────

    async def _opening(self, state: Any, text: str) -> Any:
        """Return the graph's input for a prompt; an unfinished turn is closed, answered or begun again first."""
        unfinished = [task for task in state.tasks if task.result is None]
        if not state.next or not unfinished:
            return self._graph.input(text)
        calls = open_calls(state.values) if self._graph.converses else []
        if calls and len({task.name for task in unfinished}) == 1:
            return await self._settle(state, unfinished, text)
        words = {MESSAGES: self._graph.word(text)} if self._graph.converses and not calls else None
        if state.interrupts:
            return Command(resume=await self._answers(state), update=words)
        names = ", ".join(dict.fromkeys(task.name for task in unfinished))
        await self._reporter.report_thought(
            f"The graph goes on from its last checkpoint. {names} was not finished then, so what it did is unknown; "
            "it is begun again."
        )
        return Command(update=words) if words else None

    async def _settle(self, state: Any, unfinished: list[Any], text: str) -> None:
        """Store a failed result for every open call, and the prompt, in the graph's state."""
        calls = open_calls(state.values)
        for call in calls:
            await self._reporter.report_thought(f"I was interrupted in {call_title(call)}. {INTERRUPTED}")
        done = [StateUpdate(task.result, task.name, task.id) for task in state.tasks if task.result is not None]
        news = {MESSAGES: [*map(unknown, calls), *self._graph.word(text)]}
        update = StateUpdate(news, unfinished[0].name, unfinished[0].id)
        await self._pregel.abulk_update_state(self._config, [[*done, update]])

    # ── what the graph asks ─────────────────────────────────────────────────────────────────────────

    async def _answers(self, state: Any) -> dict[str, object]:
        """Ask for an answer to every interrupt; return them by id."""
        calls = open_calls(state.values)
        answers: dict[str, object] = {}
        for interrupt in state.interrupts:
            asked = [await self._ask(each) for each in questions(interrupt.id, interrupt.value, calls)]
            answers[interrupt.id] = resumption(interrupt.value, asked)
        return answers

    async def _may_pass(self, state: Any) -> bool:
        """Ask the user if the graph may continue after a stop before some of its nodes; return True if it may."""
        title = f"The graph has stopped before {', '.join(state.next)}. May it go on?"
        question = InterruptQuestion(
            title=title, call_id=f"stop-{state.metadata.get('step')}", about={"before": state.next}
        )
        return (await self._ask(question)).allowed

    async def _ask(self, question: InterruptQuestion) -> PermissionDecision:
        """Ask the client one question, report its end, and return the decision."""
        about = fields_of(question.about) or {"asks": question.about}
        meta = _IN_WORDS if question.words else None
        asked = payloads.call(question.call_id, question.title, "other", given=about, meta=meta)
        decision = await self._setting.channel.ask(asked)
        await self._reporter.answered(question.call_id, allowed=decision.allowed, words=decision.words)
        return decision

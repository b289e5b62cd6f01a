"""Helper sessions: a reviewer or fixer answers a question, read-only, while the writer waits.

A helper lives inside the run of the writer: its events pass that run's fence, and the end of the run ends it too. Its
failure does no harm: there is no answer then, and a warning has the reason.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from segue import drivers
from segue.drivers import Agent, Launch
from segue.drivers.environment import variables_for
from segue.journal import Transaction
from segue.model import events as e
from segue.model.agents import AgentConfiguration, Choices
from segue.model.codec import decode
from segue.model.errors import AgentError, QuotaExceeded, SegueError, WorkspaceError
from segue.model.ids import AttemptId, SessionId, TaskId, new_prompt_id, new_session_id
from segue.model.status import Permissions, Phase, Role, SessionStatus
from segue.orchestrator.run.agent_start import process_of, started_of
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.run.questions import Speaker
from segue.orchestrator.run.read_only_guard import changes_since, files_of
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.run.turns import Turns
from segue.orchestrator.runtime import projections
from segue.orchestrator.runtime.concurrency import alongside, within
from segue.orchestrator.runtime.containers import engine_of
from segue.orchestrator.runtime.run_handle import RunPhase
from segue.snapshot.extraction import Unreadable, repair
from segue.workspace.processes import PART

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Help:
    """Question to a helper: its role, its agent, its task and its time limit."""

    role: Role
    agent: AgentConfiguration
    task_id: TaskId
    seconds: float


class _NoAnswer(AgentError):
    """The helper gave no answer that can be used."""


async def ask_helper(
    lease: Lease, environment: Mapping[str, str], wanted: Help, question: str, read: Callable[[str], T | Unreadable]
) -> T | None:
    """Return the helper's answer as `read` parses it, after one repair at most; None, with a warning, if it fails or
    gives none. A used-up quota or budget is raised, since asking another helper would not help."""
    lease.pay_for_a_turn()
    helper = _Helper(lease, wanted)
    await helper.create()
    before = await files_of(lease)
    answer: T | None = None
    try:
        answer = await helper.answer(environment, question, read)
        await helper.end(SessionStatus.COMPLETED)
    except QuotaExceeded as error:
        await helper.end(SessionStatus.FAILED, error.message)
        await projections.refresh(lease.services, helper.session_id)
        raise helper.out_of_quota(error) from error
    except (AgentError, WorkspaceError) as error:
        await helper.fail(error)
    await helper.warn_about_changes(before)
    await projections.refresh(lease.services, helper.session_id)
    return answer


class _Helper:
    """One side session, from its creation to its end."""

    def __init__(self, lease: Lease, wanted: Help) -> None:
        """Prepare a new session id and a recorder for the helper; nothing is written yet."""
        self._lease = lease
        self._help = wanted
        self.session_id: SessionId = new_session_id(lease.services.clock.now())
        # A part of the run, which can end without it and not outlive it.
        self._execution = AttemptId(f"{lease.attempt}{PART}{self.session_id}")
        self._recorder = Recorder(
            journal=lease.services.journal,
            workflow_id=lease.workflow_id,
            session_id=self.session_id,
            run=None,
            attempt=lease.attempt,
        )

    async def create(self) -> None:
        """Write the helper's session, as starting, below the writer's."""

        def create(t: Transaction) -> None:
            t.sessions.create_helper(self.session_id, self._help.agent.name, self._lease.session_id, self._help.role)
            t.sessions.move(self.session_id, SessionStatus.STARTING)

        await self._lease.write("helper.created", create)

    async def answer(self, environment: Mapping[str, str], question: str, read: Callable[[str], T | Unreadable]) -> T:
        """Start the helper's agent, ask, and return the parsed answer; ask once more if it is unreadable. Raise
        _NoAnswer if the second one is too, or the time is over."""
        async with within(self._lease.services.clock, self._help.seconds), self._opened(environment) as turns:
            answer = await self._ask(turns, question, read)
            if isinstance(answer, Unreadable):
                self._lease.pay_for_a_turn()
                answer = await self._ask(turns, repair(answer), read)
            if not isinstance(answer, Unreadable):
                return answer
            raise _NoAnswer(f"Its answer could not be read, even after one repair: {answer.reason}")
        raise _NoAnswer(f"It gave no answer within {self._help.seconds:g} seconds.")

    @asynccontextmanager
    async def _opened(self, environment: Mapping[str, str]) -> AsyncGenerator[Turns]:
        """Start the helper's agent, record it as ready, and yield its read-only turns; the text is flushed at the
        end."""
        speaker = Speaker(session_id=self.session_id, run=None, permissions=Permissions.READ_ONLY)
        async with drivers.load(self._help.agent.driver).start(self._launch(environment)) as agent:
            await self._ready(agent)
            turns = Turns(self._lease, agent, self._recorder, speaker, RunPhase(Phase.IDLE))
            async with alongside(turns.flush_regularly):
                try:
                    yield turns
                finally:
                    await self._recorder.flush()

    def _launch(self, environment: Mapping[str, str]) -> Launch:
        """Build the launch without the writer's MCP tools, because their changes would need no permission."""
        agent = self._help.agent
        same = agent.name == self._lease.agent
        return Launch(
            command=agent.command,
            directory=Path(self._lease.workflow.worktree),
            environment=variables_for(agent, environment),
            execution=self._execution,
            handshake_timeout=self._lease.services.rules.handshake_timeout,
            mode=agent.modes.get(Permissions.READ_ONLY),
            model=decode(Choices, self._lease.workflow.choices).model if same else None,
            serves=agent.serves,
            container=agent.container,
            engine=engine_of(self._lease.services) if agent.container else "",
            now=self._lease.services.clock.now,
        )

    async def _ready(self, agent: Agent) -> None:
        """Write that the helper's agent has started: its process and token, and the session as running."""
        started = started_of(agent, self._execution, resumed=False)

        def ready(t: Transaction) -> None:
            t.append(started, session_id=self.session_id)
            t.runtimes.occupy(self.session_id, process_of(agent, self._execution))
            t.runtimes.capture_token(self.session_id, None, self._execution, agent.token)
            t.sessions.move(self.session_id, SessionStatus.RUNNING)

        await self._lease.write("helper.ready", ready)

    async def _ask(self, turns: Turns, question: str, read: Callable[[str], T | Unreadable]) -> T | Unreadable:
        """Store and send one question, and return the answer as `read` parses it; raise _NoAnswer if the turn was
        broken off."""
        prompt = e.PromptQueued(prompt_id=new_prompt_id(), text=question, task_id=self._help.task_id)
        await self._lease.write("helper.asked", lambda t: t.prompts.queue(prompt, self.session_id, None))
        turn = await turns.take(prompt, question)
        if turn.reason != "end_turn":
            raise _NoAnswer(f"It stopped before it had answered ({turn.reason}).")
        return read(turn.text)

    async def end(self, after: SessionStatus, reason: str = "") -> None:
        """Write the end of the helper's session with this status and reason."""
        await self._lease.write("helper.over", lambda t: t.end_helper(self.session_id, after, reason))

    async def fail(self, error: SegueError) -> None:
        """End the helper's session as failed, and journal a warning with the error."""
        await self.end(SessionStatus.FAILED, error.message)
        await self._warn("helper_failed", f"The {self._help.role} gave no answer that can be used. {error.message}")

    def out_of_quota(self, error: QuotaExceeded) -> QuotaExceeded:
        """Return the same error with the helper's role in its message."""
        return QuotaExceeded(f"The {self._help.role}: {error.message}", reset_at=error.reset_at)

    async def warn_about_changes(self, before: str | None) -> None:
        """Record a warning if the worktree's files differ from the tree `before`."""
        if changes := await changes_since(self._lease, before):
            message = f"The {self._help.role} only had to read, and the worktree changed meanwhile: {changes}"
            await self._warn("helper_changed_files", message)

    async def _warn(self, code: str, message: str) -> None:
        """Record a warning in the helper's session."""
        await self._recorder.record(e.Warned(code=code, message=message))

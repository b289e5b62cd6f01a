"""The real orchestrator in the test's own process, with the real rehearsal agent and a clock turned by hand."""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import anyio

from segue.journal import Transaction
from segue.model.agents import AgentConfiguration, Choices
from segue.model.events import Event, Record
from segue.model.ids import NOTHING_SEEN, Seq, SessionId, WorkflowId
from segue.model.plan import Issue
from segue.model.requests import (
    CancelRequest,
    OpenRequest,
    PauseRequest,
    PlanText,
    PromptRequest,
    ResumeRequest,
    RunRequest,
)
from segue.model.status import Permissions, Purpose, Trigger, Way, WorkflowStatus
from segue.model.views import Action, Prompted, Resumed, WorkflowView
from segue.orchestrator import Orchestrator, open_orchestrator
from segue.orchestrator.runtime.concurrency import alongside
from segue.orchestrator.runtime.queued_runs import queue
from segue.orchestrator.runtime.run_handle import Stop
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.settling.recovery import settle, settling_for
from segue.orchestrator.settling.sweep import sweep
from segue.resume.planner import ResumePlan
from segue.server.rules import rules_of
from segue.settings import Settings
from segue.testing.rehearsal.diary import DiaryEntry, bell_of, read_diary
from tests.equipment.fake_clock import FakeClock
from tests.equipment.waiting import until

TWO_TASKS = "[{id: a, title: Do A}, {id: b, title: Do B, depends_on: [a]}]"
IDENTITY = {f"GIT_{who}_{what}": "test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
WITHIN = 60.0
T = TypeVar("T", bound=Event)


def git(directory: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=directory, env={**os.environ, **IDENTITY}, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


class Theatre:
    """What a test needs to play a workflow."""

    def __init__(self, root: Path, repository: Path) -> None:
        self.root = root
        self.repository = repository
        self.database_url = f"sqlite:///{root}/segue.db"
        self.clock = FakeClock()
        self.script = root / "script.yaml"
        self.agent_home = root / "agent"
        self.commands: dict[str, tuple[str, ...]] = {
            "rehearsal": (sys.executable, "-m", "segue.testing.rehearsal"),
            "understudy": (sys.executable, "-m", "segue.testing.rehearsal"),
            "missing": ("no-such-program-anywhere",),
            "hasty": ("/bin/sh", "-c", "echo out of order >&2; exit 3"),
        }
        self.agents: dict[str, AgentConfiguration] = {}
        """Those that are not configured like the others."""
        self.variables: dict[str, str] = {}
        self.choices = Choices()
        self.native_fork = False
        self.orchestrator: Orchestrator
        # What happens without retries, and what they do, is played each by its own tests.
        # Processes come up by the machine's clock and not by ours: whoever turns the hands must not make them late.
        self.settings: dict[str, Any] = {
            "handshake_timeout": 60.0,
            "retry_attempts": 1,
            **dict.fromkeys(("stall_notice", "setup_watchdog", "start_watchdog", "fixer_time", "review_time"), 1e6),
        }

    @asynccontextmanager
    async def open(self, *, environment: dict[str, str] | None = None, **settings: Any) -> AsyncGenerator["Theatre"]:
        agents = {
            name: AgentConfiguration(
                name=name, command=command, environment=("SEGUE_REHEARSAL_*",), native_fork=self.native_fork
            )
            for name, command in self.commands.items()
        } | self.agents
        async with open_orchestrator(
            database_url=self.database_url,
            home=self.root,
            agents=agents,
            clock=self.clock,
            environment=environment,
            chance=lambda: 0.0,
            rules=rules_of(Settings(**{**self.settings, **settings})),
        ) as self.orchestrator:
            yield self

    @property
    def services(self) -> RuntimeServices:
        return self.orchestrator._services  # pyright: ignore[reportPrivateUsage]

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "SEGUE_REHEARSAL_SCRIPT": str(self.script),
            "SEGUE_REHEARSAL_HOME": str(self.agent_home),
            **self.variables,
        }

    async def begin(
        self,
        script: str,
        *,
        plan: str | None = TWO_TASKS,
        agent: str = "rehearsal",
        permissions: str = "all",
        **more: Any,
    ) -> WorkflowView:
        self.script.write_text(script)
        return await self.orchestrator.create(
            RunRequest(
                issue=Issue(title=more.pop("title", "Build it")),
                plan=PlanText(format="yaml", text=plan) if plan else None,
                permissions=Permissions(permissions),
                repository=self.repository,
                environment=self.environment,
                **more,
            ),
            agent,
            self.choices,
        )

    async def begin_until(self, kind: type[Event], script: str, **more: Any) -> WorkflowView:
        """Begin a workflow and wait for its first event of a kind."""
        view = await self.begin(script, **more)
        await self.event(view.id, kind)
        return view

    async def until(self, name: str, *statuses: str) -> WorkflowView:
        """Until the workflow is in one of these states, and its run is over."""
        wanted = {WorkflowStatus(status) for status in statuses}
        view = None
        with anyio.move_on_after(WITHIN):
            seen = NOTHING_SEEN
            while True:
                view = await self.orchestrator.workflow(name)
                live = self.services.live.get(view.id)
                if view.status in wanted and live is None:
                    return view
                if view.status in wanted and live is not None:
                    await live.done.wait()
                    continue
                seen = (await self.services.journal.wait(view.id, max(seen, view.head)))[-1].seq
        raise AssertionError(f"not {statuses}: {view}")

    async def as_time_goes_by(self, name: str, *statuses: str) -> WorkflowView:
        """Like `until`, while the clock is turned on and on, for those who go to sleep only after a turn of it."""
        await self.clock.advance(11)
        async with self.time_going_by():
            return await self.until(name, *statuses)

    def time_going_by(self, seconds: float = 11) -> AbstractAsyncContextManager[object]:
        """The clock is turned on and on beside the body."""

        async def turn() -> None:
            while True:
                await anyio.sleep(0.2)
                await self.clock.advance(seconds)

        return alongside(turn)

    async def event(self, name: str, kind: type[Event], *, after: int = 0) -> Record:
        """The first event of a kind."""
        workflow_id = (await self.orchestrator.workflow(name)).id
        with anyio.fail_after(WITHIN):
            async for record in self.services.journal.follow(workflow_id, Seq(after)):
                if isinstance(record.event, kind):
                    return record
        raise AssertionError("a journal is followed for ever")

    async def first(self, name: str, kind: type[T], *, after: int = 0) -> T:
        """Wait for the first event of a kind, and return it without its record."""
        event = (await self.event(name, kind, after=after)).event
        assert isinstance(event, kind)
        return event

    async def events(self, name: str, kind: type[Event]) -> list[Any]:
        workflow_id = (await self.orchestrator.workflow(name)).id
        records = await self.services.journal.records(workflow_id, limit=10_000)
        return [record.event for record in records if isinstance(record.event, kind)]

    async def until_prompted(self, times: int) -> None:
        """Until agents got that many prompts."""
        await self.until_noted(lambda: len(self.diary("prompt")) >= times)

    async def until_noted(self, holds: Callable[[], bool]) -> None:
        """Wait until this holds of the agents' diary; each new entry wakes the reader of the FIFO beside it."""
        bell = bell_of(self.agent_home / "diary.jsonl")
        self.agent_home.mkdir(exist_ok=True)
        if not bell.exists():
            os.mkfifo(bell)
        reader = os.open(bell, os.O_RDWR | os.O_NONBLOCK)
        try:
            with anyio.fail_after(WITHIN):
                while not holds():
                    await anyio.wait_readable(reader)
                    os.read(reader, 1024)
        finally:
            os.close(reader)

    async def until_there(self, file: Path) -> None:
        """Until somebody has made this file."""
        await until(file.exists)

    async def resume(self, name: str, **fields: Any) -> Resumed:
        request = replace(ResumeRequest(environment=self.environment), **fields)
        return await self.orchestrator.resume(name, request)

    async def pause(self, name: str, reason: str = "", *, wait: bool = False) -> Action:
        return await self.orchestrator.pause(name, PauseRequest(reason=reason), wait)

    async def prompt(self, name: str, text: str, **fields: Any) -> Prompted:
        request = replace(PromptRequest(text=text, environment=self.environment), **fields)
        return await self.orchestrator.prompt(name, request)

    async def open_session(self, session_id: str) -> Resumed:
        return await self.orchestrator.open_session(session_id, OpenRequest(environment=self.environment))

    async def cancel(self, name: str, reason: str = "") -> Action:
        return await self.orchestrator.cancel(name, CancelRequest(reason=reason))

    async def resume_until(self, name: str, *statuses: str) -> WorkflowView:
        await self.resume(name)
        return await self.until(name, *statuses)

    async def go_until(self, name: str, *statuses: str) -> WorkflowView:
        """Create the file `go`, which the agent waits for, and wait until the workflow is in one of these states."""
        (self.root / "worktrees" / name / "go").touch()
        return await self.until(name, *statuses)

    async def until_studied(self) -> None:
        """Until every snapshot has had its second look, which is one more event."""
        with anyio.fail_after(WITHIN):
            await self.services.unstudied.join()

    async def sweep(self) -> None:
        await sweep(self.services)

    async def settle(self, session_id: SessionId, run: int, reason: str) -> bool:
        """Settle a run as crashed, whether or not it is still going on."""
        return bool(await settle(self.services, session_id, run, settling_for(_crash(reason))))

    async def tear_away(self, name: str, reason: str) -> None:
        """End the live run of a workflow at once, as the sweep does with one that hangs."""
        self.tear_away_at_once((await self.orchestrator.workflow(name)).id, reason)

    def tear_away_at_once(self, workflow_id: WorkflowId, reason: str) -> None:
        self.services.live[workflow_id].tear_away(_crash(reason))

    def queue_fork(self, t: Transaction, reason: str) -> None:
        """Queue a run of the current session that begins with a copy of the original's conversation."""
        plan = ResumePlan(way=Way.FORK, reason=reason)
        queue(self.services, t, t.sessions.current().id, plan, Purpose.WORK, self.environment)

    def diary(self, kind: str) -> list[DiaryEntry]:
        return [entry for entry in read_diary(self.agent_home / "diary.jsonl") if entry.kind == kind]


def _crash(reason: str) -> Stop:
    return Stop(trigger=Trigger.CRASH, reason=reason)

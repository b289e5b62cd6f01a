"""Interface of the service that the server calls."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from segue.memory import Memory
from segue.model.accounts import WorkflowAccount
from segue.model.agents import AgentConfiguration, Limits
from segue.model.ids import BootId
from segue.model.pictures import Shown
from segue.model.snapshots import History, MessagePage, Part, Snapshot
from segue.model.status import Way
from segue.model.views import (
    Action,
    AgentCheck,
    AgentView,
    Answer,
    Answered,
    CompiledContext,
    EventPage,
    Forked,
    Imported,
    NewFork,
    NewImport,
    NewWorkflow,
    PlanView,
    Prompted,
    Resumed,
    SessionDetail,
    SessionFiles,
    SessionStanding,
    Successor,
    Verification,
    WorkflowView,
    WorkspaceRestored,
)
from segue.orchestrator.runtime.services import Rules
from segue.snapshot.compare import SnapshotDiff


class WorkflowService(Protocol):
    """Everything that a user can request; `name` is a workflow's id or slug."""

    @property
    def boot(self) -> BootId: ...
    @property
    def memory(self) -> Memory: ...
    @property
    def busy(self) -> bool:
        """True while an agent is working or about to start."""
        ...

    async def create(self, request: NewWorkflow) -> WorkflowView: ...
    async def import_session(self, request: NewImport) -> Imported: ...
    async def workflow(self, name: str) -> WorkflowView: ...
    async def workflows(self, directory: Path | None, statuses: Sequence[str]) -> list[WorkflowView]: ...
    async def recent(self, most: int) -> list[WorkflowView]: ...
    async def pause(self, name: str, reason: str, wait: bool) -> Action: ...
    async def resume(
        self,
        name: str,
        environment: Mapping[str, str],
        way: Way | None = None,
        successor: Successor | None = None,
        snapshot: str | None = None,
        context: str | None = None,
        wait_for_quota: bool = False,
    ) -> Resumed: ...
    async def fork(self, request: NewFork) -> Forked: ...
    async def open_session(self, session_id: str, environment: Mapping[str, str]) -> Resumed: ...
    async def prompt(
        self,
        name: str,
        text: str,
        environment: Mapping[str, str],
        wait: bool = True,
        now: bool = False,
        shown: Sequence[Shown] = (),
    ) -> Prompted: ...
    async def prompt_session(
        self,
        session_id: str,
        text: str,
        environment: Mapping[str, str],
        wait: bool = True,
        now: bool = False,
        shown: Sequence[Shown] = (),
    ) -> Prompted: ...
    async def restore_workspace(self, name: str) -> WorkspaceRestored: ...
    async def answer(self, name: str, answer: Answer) -> Answered: ...
    async def plan(self, name: str) -> PlanView: ...
    async def cancel(self, name: str, reason: str) -> Action: ...
    async def events(self, name: str, after: int, wait: float, limit: int) -> EventPage: ...
    async def snapshots(self, name: str) -> list[Snapshot]:
        """List snapshots, newest first, with the findings of those that were studied."""
        ...

    async def snapshot(self, name: str, snapshot_id: str) -> Snapshot: ...
    async def snapshot_diff(self, name: str, before: str, after: str) -> SnapshotDiff: ...
    async def detailed_history(
        self, name: str, snapshot_id: str, category: Part, page: MessagePage | None = None
    ) -> History: ...
    async def limit(self, name: str, limits: Limits, wait_for_quota: bool | None = None) -> WorkflowView: ...
    async def context(self, name: str, budget: int | None) -> CompiledContext: ...
    async def verify(self, name: str) -> Verification: ...
    async def sessions(self, name: str) -> list[SessionDetail]: ...
    async def usage(self, name: str) -> WorkflowAccount: ...
    async def session(self, session_id: str) -> SessionDetail: ...
    async def session_files(self, session_id: str) -> SessionFiles: ...
    async def session_standing(self, session_id: str) -> SessionStanding: ...
    async def agents(self, environment: Mapping[str, str]) -> list[AgentView]: ...
    async def check_agent(self, name: str, environment: Mapping[str, str]) -> AgentCheck: ...


class OpenService(Protocol):
    """Function that opens the service; interrupted work is settled before the context is entered."""

    def __call__(
        self,
        *,
        database_url: str,
        home: Path,
        agents: Mapping[str, AgentConfiguration],
        rules: Rules,
    ) -> AbstractAsyncContextManager[WorkflowService]: ...

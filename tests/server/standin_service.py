"""A service that does what the test wrote."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from segue.memory import Memory
from segue.model import views as v
from segue.model.accounts import Account, WorkflowAccount
from segue.model.agents import Choices, Limits
from segue.model.checkpoint import Checkpoint, CheckpointType, TaskMark, Usage
from segue.model.errors import NothingToAnswer, SessionNotFound, UnknownAgent, WorkflowNotFound
from segue.model.events import Event, Price
from segue.model.findings import Decision, ErrorRecord, ExamResult, Findings, ReviewerFeedback
from segue.model.ids import BootId, CheckpointId, PromptId, Seq, SessionId, TaskId, WorkflowId
from segue.model.plan import TaskStatus
from segue.model.requests import (
    Answer,
    CancelRequest,
    ForkRequest,
    ImportRequest,
    OpenRequest,
    PauseRequest,
    PromptRequest,
    ResumeRequest,
    RunRequest,
)
from segue.model.snapshots import History, Message, MessagePage, Part, Snapshot
from segue.model.status import (
    Carrying,
    Permissions,
    RuntimeStatus,
    SessionStatus,
    Trigger,
    WaitingFor,
    Way,
    WorkflowStatus,
)
from segue.orchestrator.requests.snapshots import meant
from segue.snapshot.compare import SnapshotDiff, compare
from segue.snapshot.forms import git_changes

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
ID = WorkflowId("workflow-2026-01-02-abcdef")

VIEW = v.WorkflowView(
    id=ID,
    slug="add-parser",
    title="Add a parser",
    status=WorkflowStatus.IN_PROGRESS,
    agent="rehearsal",
    permissions=Permissions.ASK,
    repository="/repo",
    worktree="/data/worktrees/add-parser",
    branch="segue/add-parser",
    here=False,
    created_at=NOON,
    updated_at=NOON,
    tasks=(
        v.TaskView(id=TaskId("t1"), title="Write the parser", status=TaskStatus.COMPLETED),
        v.TaskView(id=TaskId("t2"), title="Test the parser", status=TaskStatus.PENDING, depends_on=(TaskId("t1"),)),
    ),
    tasks_done=1,
    tasks_total=2,
    session=v.SessionView(id=SessionId("session-2026-01-02-abcdef"), number=1, status=SessionStatus.RUNNING, runs=1),
    sessions=1,
    runs=1,
    head=Seq(0),
)

FORK = replace(
    VIEW,
    id=WorkflowId("workflow-2026-01-02-forked"),
    slug="add-parser-fork",
    status=WorkflowStatus.PAUSED,
    worktree="/data/worktrees/add-parser-fork",
    branch="segue/add-parser-fork",
)

SNAPSHOT = Checkpoint(
    id=CheckpointId("ckpt-2026-01-02-001"),
    workflow_id=ID,
    session_id=SessionId("session-2026-01-02-abcdef"),
    session_number=1,
    created_at=NOON,
    type=CheckpointType.PAUSE,
    trigger=Trigger.PAUSE,
    reason="lunch",
    snapshot=True,
    clean_boundary=True,
    after=Seq(1),
    tasks=(
        TaskMark(id=TaskId("t1"), title="Write the parser", status=TaskStatus.COMPLETED),
        TaskMark(id=TaskId("t2"), title="Test the parser", status=TaskStatus.PENDING),
    ),
    current_task=None,
    next_task=TaskId("t2"),
    git=None,
    commit=None,
)


CONTEXT = "## Session Resume Context\n\nYou go on with the parser.\n"
EXAM = ExamResult(
    score=0.9, by_category={"tasks": 1.0, "files": 0.8}, missing=("a changed file: a.py",), tokens=20, budget=4000
)

FINDINGS = Findings(checkpoint_id=SNAPSHOT.id, exam=EXAM)

DECISION = Decision(
    id="decision-7",
    timestamp=NOON,
    task_id=TaskId("t1"),
    decision_type="library",
    description="Use re rather than a generator because it is there.",
    rationale="it is there",
    alternatives_considered=("a generator",),
    seq=Seq(7),
)
ERROR = ErrorRecord(
    id="error-9",
    timestamp=NOON,
    task_id=TaskId("t1"),
    error_type="OSError",
    error_message="OSError: the disk is full",
    context="make all",
    seq=Seq(9),
)
REVIEW = ReviewerFeedback(
    review_id="r1",
    reviewer_persona="Security",
    timestamp=NOON,
    approved=False,
    severity="high",
    comments=("Check the length.", "And the type."),
)

PRICES = (
    Price(way=Way.NATIVE, possible=True, tokens=40_000, note="the whole conversation, as the agent last counted it"),
    Price(way=Way.CONTEXT, possible=True, tokens=4_000, note="at most: its budget, and the next request"),
    Price(way=Way.HISTORY, possible=False, tokens=0, note="nothing was said yet"),
    Price(way=Way.FRESH, possible=True, tokens=None, note="estimated from its length"),
)

SPENT = Account(input_tokens=1_200, cached_tokens=38_000, output_tokens=300, cost_usd=0.018, cost_source="estimated")

SESSION = v.SessionDetail(
    id=SessionId("session-2026-01-02-abcdef"),
    workflow_id=ID,
    number=1,
    agent="rehearsal",
    status=SessionStatus.WAITING_FOR_INPUT,
    waiting_for=WaitingFor.PROMPT,
    reason="",
    parent=None,
    children=(),
    runs=2,
    started_at=NOON,
    token="token-1",
    refused_tokens=(),
    capabilities=("load", "resume"),
    carrying=Carrying.NOTHING,
    compactions=0,
    usage=Usage(
        context_tokens=40_000,
        window=200_000,
        input_tokens=1_200,
        cached_tokens=38_000,
        output_tokens=300,
        turns=1,
        tool_calls=2,
    ),
    spent=SPENT,
    failure=None,
    runtime=v.RuntimeView(
        status=RuntimeStatus.LIVE,
        alive=True,
        pid=4711,
        execution="attempt-1",
        generation=2,
        last_seen_at=NOON,
        dropped_events=0,
    ),
    way_back=v.WayBack(way=Way.NATIVE, reason="the agent's own conversation goes on", prices=PRICES),
)

IMPORTED = v.Imported(
    status="imported",
    workflow=replace(VIEW, status=WorkflowStatus.PAUSED, agent="claude"),
    agent="claude",
    file="/home/dev/x.jsonl",
    lines=44,
    unread_lines=0,
    clean_boundary=True,
)

AGENT = v.AgentView(
    name="claude",
    driver="acp",
    command=("claude-agent-acp",),
    program="/usr/bin/claude-agent-acp",
    resume="natively, if it says that it can; else a new conversation begins with a compiled context",
    install="npm install -g @agentclientprotocol/claude-agent-acp",
    login="claude-agent-acp --cli auth login",
)
MISSING = replace(
    AGENT, name="codex", command=("codex-acp",), program=None, install="npm install -g codex-acp", login=""
)

CHECKS = {
    "claude": v.AgentCheck(
        agent=AGENT,
        ok=True,
        version="0.99.1",
        reported="Claude Agent",
        capabilities=("load", "resume"),
        logins=("Claude subscription",),
        resume="natively, by session/resume",
        hint="If it asks you to log in: claude-agent-acp --cli auth login",
    ),
    "codex": v.AgentCheck(
        agent=MISSING,
        ok=False,
        problem="The program codex-acp was not found.",
        hint="Install it: npm install -g codex-acp",
    ),
}


class Standin:
    """Keeps views and events in memory; `plot` is what happens as soon as a workflow begins or goes on."""

    boot = BootId("boot-standin")
    memory: Memory
    """Past work; a test that asks for it sets it."""

    def __init__(self, *views: v.WorkflowView) -> None:
        self.views = {view.id: view for view in views}
        self.records: dict[str, list[v.RecordView]] = {view.id: [] for view in views}
        self.plot: list[tuple[Event, dict[str, Any]]] = []
        self.asked: list[tuple[Any, ...]] = []
        self.failure: Exception | None = None
        self.refusals: dict[str, Exception] = {}
        self.details = [SESSION]
        self.account: WorkflowAccount | None = None
        self.kept = [Snapshot(checkpoint=SNAPSHOT, findings=FINDINGS)]
        self.messages: tuple[Message, ...] = ()
        self.limited: dict[str, Any] = {}
        self.paused: dict[str, Any] = {}
        self.resumed: dict[str, Any] = {}
        self.chosen = Choices()
        self.prompted: dict[str, Any] = {}
        self.imported: dict[str, Any] = {}
        self.waiting = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()

    def happen(self, event: Event, name: str = ID, **changes: Any) -> None:
        """Let an event happen, and the view change with it; from any thread."""
        records, seq = self.records[name], Seq(len(self.records[name]) + 1)
        records.append(
            v.RecordView(seq=seq, at=NOON, session_id=None, run=None, kind=event.kind, event=event, hash=f"hash-{seq}")
        )
        self.views[WorkflowId(name)] = replace(self.views[WorkflowId(name)], head=seq, **changes)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._changed.set)

    def request(self, verb: str) -> Any:
        """Return the first request of a verb."""
        first = next(asked for asked in self.asked if asked[0] == verb)
        return first[1] if verb == "create" else first[2]

    def _enter(self, *asked: Any) -> None:
        self.asked.append(asked)
        if self.failure is not None:
            raise self.failure
        if asked[0] in self.refusals:
            raise self.refusals[asked[0]]

    def _named(self, name: str) -> v.WorkflowView:
        for view in self.views.values():
            if name in (view.id, view.slug):
                return view
        raise WorkflowNotFound(f"No workflow is called {name!r}.", hint="See them all with: segue status")

    def _play(self) -> None:
        for event, changes in self.plot:
            self.happen(event, **changes)

    async def create(self, request: RunRequest, agent: str, choices: Choices) -> v.WorkflowView:
        self._enter("create", request)
        self.chosen = choices
        view = replace(VIEW, title=request.issue.title, status=WorkflowStatus.PENDING, agent=agent)
        view = replace(view, from_repository=choices.from_repository)
        self.views[view.id], self.records[view.id] = view, []
        self._play()
        return view

    async def import_session(self, request: ImportRequest) -> v.Imported:
        self._enter("import_session", request)
        return replace(IMPORTED, **self.imported)

    async def workflow(self, name: str) -> v.WorkflowView:
        self._enter("workflow", name)
        return self._named(name)

    @property
    def busy(self) -> bool:
        return bool(self.views)

    async def recent(self, most: int) -> list[v.WorkflowView]:
        return (await self.workflows(None, []))[:most]

    async def workflows(self, directory: Path | None, statuses: Sequence[str]) -> list[v.WorkflowView]:
        self._enter("workflows", directory, statuses)
        return [view for view in self.views.values() if not statuses or view.status in statuses]

    async def pause(self, name: str, request: PauseRequest, wait: bool) -> v.Action:
        self._enter("pause", name, request.reason, wait)
        view = self._named(name)
        if not wait:
            self._play()
            return v.Action(status="pause_requested", workflow_id=view.id)
        called_off = view.retry is not None
        action = v.Action(status="paused", workflow_id=view.id, snapshot_id=SNAPSHOT.id, retry_called_off=called_off)
        return replace(action, **self.paused)

    async def resume(self, name: str, request: ResumeRequest) -> v.Resumed:
        self._enter("resume", name, request)
        view = self._named(name)
        self.views[view.id] = replace(view, status=WorkflowStatus.IN_PROGRESS)
        self._play()
        return self._resumed(view)

    async def fork(self, session_id: str, request: ForkRequest) -> v.Forked:
        self._enter("fork", session_id, request)
        view = replace(FORK, title=request.title or FORK.title)
        self.views[view.id], self.records[view.id] = view, []
        return v.Forked(workflow=view, parent=SESSION.id, checkpoint_id=SNAPSHOT.id, left_out=(".env",))

    def _resumed(self, view: v.WorkflowView) -> v.Resumed:
        resumed = v.Resumed(
            workflow_id=view.id,
            session=SESSION.id,
            session_number=1,
            agent="rehearsal",
            run=2,
            way=Way.NATIVE,
            reason="the agent knows the conversation",
            prices=PRICES,
            paused_at=NOON,
            tasks_done=view.tasks_done,
            tasks_remaining=view.tasks_total - view.tasks_done,
            divergence=("HEAD moved from aaaa to bbbb.",),
        )
        return replace(resumed, **self.resumed)

    async def open_session(self, session_id: str, request: OpenRequest) -> v.Resumed:
        self._enter("open_session", session_id, request)
        return self._resumed(self._named(self._detail(session_id).workflow_id))

    async def prompt(self, name: str, request: PromptRequest) -> v.Prompted:
        """Answer with the plot."""
        self._enter("prompt", name, request)
        view = self._named(name)
        self._play()
        prompted = v.Prompted(status="sent", workflow_id=view.id, session=SESSION.id, prompt_id=PromptId("prompt-1"))
        return replace(prompted, **self.prompted)

    async def prompt_session(self, session_id: str, request: PromptRequest) -> v.Prompted:
        return await self.prompt(self._detail(session_id).workflow_id, request)

    async def restore_workspace(self, name: str) -> v.WorkspaceRestored:
        self._enter("restore_workspace", name)
        view = self._named(name)
        return v.WorkspaceRestored(workflow_id=view.id, worktree=view.worktree or "", branch=view.branch or "")

    async def answer(self, name: str, answer: Answer) -> v.Answered:
        self._enter("answer", name, answer)
        view = self._named(name)
        status = "approved" if answer.allow else "rejected"
        if view.proposed_plan:
            self.views[view.id] = replace(view, status=WorkflowStatus.IN_PROGRESS, proposed_plan=(), asks="")
            self._play()
            return v.Answered(
                status=status, about="plan", workflow_id=view.id, title="a plan of 2 tasks", resumed=self._resumed(view)
            )
        if view.question is None:
            raise NothingToAnswer("add-parser asks nothing.")
        return v.Answered(
            status=status, workflow_id=view.id, request_id=view.question.request_id, title=view.question.title
        )

    async def plan(self, name: str) -> v.PlanView:
        self._enter("plan", name)
        view = self._named(name)
        tasks = view.proposed_plan
        status = "proposed" if tasks else "none"
        return v.PlanView(workflow_id=view.id, status=status, tasks=tasks, text="tasks:\n- t1\n" if tasks else "")

    async def cancel(self, name: str, request: CancelRequest) -> v.Action:
        self._enter("cancel", name, request.reason)
        return v.Action(status="cancelled", workflow_id=self._named(name).id)

    async def events(self, name: str, after: int, wait: float, limit: int) -> v.EventPage:
        self._enter("events", name, after, wait, limit)
        self._loop = asyncio.get_running_loop()
        view = self._named(name)
        self._changed.clear()
        if wait and not self.records[view.id][after:]:
            self.waiting.set()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), wait)
        found = self.records[view.id][after : after + limit]
        return v.EventPage(events=tuple(found), head=self._named(name).head)

    async def snapshots(self, name: str) -> list[Snapshot]:
        self._enter("snapshots", name)
        return self.kept

    async def snapshot(self, name: str, snapshot_id: str) -> Snapshot:
        self._enter("snapshot", name, snapshot_id)
        named = meant([each.checkpoint.id for each in self.kept], snapshot_id)
        return next(each for each in self.kept if each.checkpoint.id == named)

    async def snapshot_diff(self, name: str, before: str, after: str) -> SnapshotDiff:
        return compare(await self.snapshot(name, before), await self.snapshot(name, after))

    async def detailed_history(
        self, name: str, snapshot_id: str, category: Part, page: MessagePage | None = None
    ) -> History:
        found = await self.snapshot(name, snapshot_id)
        self._enter("detailed_history", name, snapshot_id, category, page)
        if category is Part.GIT_CHANGES:
            return git_changes(found.checkpoint)
        if category is Part.MESSAGES:
            return self.messages
        findings = found.findings
        assert findings is not None
        match category:
            case Part.DECISIONS:
                return findings.decisions
            case Part.ERRORS:
                return findings.errors
            case Part.REVIEWER_FEEDBACK:
                return findings.feedback
            case Part.TESTS:
                return findings.tests

    async def limit(self, name: str, limits: Limits, wait_for_quota: bool | None = None) -> v.WorkflowView:
        self._enter("limit", name, limits, wait_for_quota)
        return replace(self._named(name), **self.limited)

    async def context(self, name: str, budget: int | None) -> v.CompiledContext:
        self._enter("context", name, budget)
        return v.CompiledContext(workflow_id=self._named(name).id, context=CONTEXT, exam=EXAM)

    async def verify(self, name: str) -> v.Verification:
        self._enter("verify", name)
        return v.Verification(verified=True, events=len(self.records[self._named(name).id]))

    def _detail(self, session_id: str) -> v.SessionDetail:
        for detail in self.details:
            if detail.id == session_id:
                return detail
        raise SessionNotFound

    async def sessions(self, name: str) -> list[v.SessionDetail]:
        self._enter("sessions", name)
        return [detail for detail in self.details if detail.workflow_id == self._named(name).id]

    async def usage(self, name: str) -> WorkflowAccount:
        self._enter("usage", name)
        view = self._named(name)
        if self.account is None:
            return WorkflowAccount(workflow_id=view.id, slug=view.slug, account=Account())
        return replace(self.account, workflow_id=view.id, slug=view.slug)

    async def session(self, session_id: str) -> v.SessionDetail:
        self._enter("session", session_id)
        return self._detail(session_id)

    async def session_standing(self, session_id: str) -> v.SessionStanding:
        self._enter("session_standing", session_id)
        detail = self._detail(session_id)
        return v.SessionStanding(
            session_id=detail.id,
            state=detail.status,
            is_agent_running=False,
            needs_resume=True,
            is_resumable=True,
            resume_reason="agent_not_running",
            worktree_path="/data/worktrees/add-parser",
            worktree_branch="segue/add-parser",
            error="",
        )

    async def session_files(self, session_id: str) -> v.SessionFiles:
        self._enter("session_files", session_id)
        detail = self._detail(session_id)
        return v.SessionFiles(session_id=detail.id, history="h.jsonl", session="s.json", entries=3, were_right=True)

    async def agents(self, environment: Mapping[str, str]) -> list[v.AgentView]:
        self._enter("agents", environment)
        return [AGENT, MISSING]

    async def check_agent(self, name: str, environment: Mapping[str, str]) -> v.AgentCheck:
        self._enter("check_agent", name, environment)
        if name not in CHECKS:
            raise UnknownAgent(f"No agent is called {name!r}.", hint="Known agents: claude, codex.")
        return CHECKS[name]

"""Import of an agent's session file as a paused workflow, with the whole conversation in its journal.

The agent's file is read once, up to its size when it was opened, and never written. Everything is committed in one
transaction, and the same content is imported once: a second request gets the existing workflow. A file that has grown
since adds its new events, as long as the workflow has not gone on.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import anyio
from anyio.to_thread import run_sync

from segue.drivers.native import read
from segue.drivers.native.folders import newest
from segue.drivers.native.lines import Tally
from segue.journal import NewWorkflowRow, Transaction
from segue.journal.rows import WorkflowRow
from segue.model import events as e
from segue.model.checkpoint import CheckpointType, GitState
from segue.model.errors import BadInput, NotARepository, NotASession, SegueError, WorktreeInUse, WrongState
from segue.model.ids import Seq, SessionId, TaskId, WorkflowId, new_session_id, new_workflow_id
from segue.model.plan import Issue, Plan, Task
from segue.model.requests import ImportRequest
from segue.model.status import Permissions, SessionStatus, Trigger, WorkflowStatus
from segue.model.transcript import Said, Summarised, UserSaid
from segue.model.views import Imported
from segue.orchestrator.runtime.agents import agent_named
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.runtime.views import view_of
from segue.orchestrator.settling.recovery import checkpoint_ref, write_checkpoint
from segue.snapshot.facts.collector import title_of
from segue.snapshot.gather import Occasion, gather
from segue.state.fold import SessionState, WorkflowState, fold
from segue.workspace.git import read_state, repository_root

FreeSlug = Callable[[str, Path], Awaitable[str]]
Status = Literal["imported", "extended", "already_imported"]

AGENTS = {"claude-code": "claude", "codex": "codex"}
"""Agent that continues each format of session file."""
LARGEST = 300 * 1024 * 1024
"""Highest size of a session file, in bytes; a larger one would block all other writers for too long."""
AT_ONCE = 500
"""Events that one append writes."""
LONGEST_TITLE = 80
LONGEST_REQUEST = 6_000
TOKEN = re.compile(r"[\w.:-]{1,200}")
SPOKEN = (e.UserSpoke, e.AgentMessage, e.AgentThought, e.ToolCalled, e.ToolProgressed, e.ToolFinished)
"""Events by which a conversation's last turn counts as complete or not."""
GO_ON = "Go on where the conversation stopped. What the user said last counts more than what was asked first."


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Content of a session file, as far as it reached when it was opened."""

    file: Path
    agent: str
    tally: Tally
    events: Sequence[e.Event]
    began: str
    ended: str
    session: SessionState
    """State of the session after these events."""

    @property
    def directory(self) -> str:
        """Return the first directory that the session worked in; empty if it names none."""
        standing = (event.directory for event in self.events if isinstance(event, e.WorkLocation))
        return next((directory for directory in standing if directory), "")

    @property
    def request(self) -> str:
        """Return the first message of a person; empty if there is none."""
        asked = (event.text.strip() for event in self.events if isinstance(event, e.UserSpoke))
        return next(filter(None, asked), "")

    @property
    def token(self) -> str | None:
        """Return the conversation's id if it has the form of a resume token, else None."""
        return self.tally.conversation if TOKEN.fullmatch(self.tally.conversation) else None

    @property
    def clean(self) -> bool:
        """Return True if the conversation ends with a message of the agent, no call is open, and the file's last line
        is complete."""
        last = next((event for event in reversed(self.events) if isinstance(event, SPOKEN)), None)
        return isinstance(last, e.AgentMessage) and not self.session.calls and not self.tally.torn

    @property
    def reason(self) -> str:
        return f"imported from {self.file.name}"

    def note(self) -> e.SessionImported:
        """Build the event that this session file was imported."""
        return e.SessionImported(
            agent=self.agent,
            file=str(self.file),
            sha256=self.tally.sha256,
            size=self.tally.size,
            lines=len(self.events),
            unread_lines=self.tally.unread,
            conversation=self.token or "",
            began=self.began,
            ended=self.ended,
        )


def hear(file: Path) -> Heard:
    """Read a session file to its end and return its content; raise NotASession if it is unreadable or has no
    conversation."""
    _refuse_unreadable(file)
    recording = read(file)
    events: list[e.Event] = []
    began = ended = ""
    for line in recording.lines:
        events.append(_event(line.said))
        began, ended = began or line.at, line.at or ended
    if not any(isinstance(event, SPOKEN) for event in events):
        raise NotASession(f"{file.name} holds no conversation yet.")
    agent = AGENTS[recording.format]
    return Heard(
        file=file,
        agent=agent,
        tally=recording.tally,
        events=events,
        began=began,
        ended=ended,
        session=_session_after(agent, events),
    )


def _refuse_unreadable(file: Path) -> None:
    """Raise NotASession if the file is missing, no file, unreadable or too large to import; else do nothing."""
    try:
        if not file.is_file():
            raise NotASession(f"{file} is not a file." if file.exists() else f"{file} does not exist.")
        size = file.stat().st_size
    except OSError as error:
        raise NotASession(f"{file} cannot be read: {error.strerror or error}.") from error
    if size > LARGEST:
        raise NotASession(
            f"{file.name} is too large to import: {size // 2**20} MB, where {LARGEST // 2**20} MB are the most.",
            hint=f"`segue context {file}` prints what a successor should read of it.",
        )


def _event(said: Said) -> e.Event:
    """Convert a line of the session file to an event."""
    match said:
        case UserSaid(text=text):
            return e.UserSpoke(text=text)
        case Summarised(text=text):
            return e.AgentSummarised(text=text)
        case _:
            return said


def _session_after(agent: str, events: Sequence[e.Event]) -> SessionState:
    """Fold the events into the state of a session; calls that are still open get their titles."""
    session_id, at = SessionId("session"), datetime.min.replace(tzinfo=UTC)
    records = (
        e.Record(
            workflow_id=WorkflowId(""), seq=Seq(number), at=at, session_id=session_id, run=None, event=event, hash=""
        )
        for number, event in enumerate((e.SessionCreated(number=1, agent=agent), *events), start=1)
    )
    session = fold(records).sessions[session_id]
    titles = {event.call_id: title_of(event) for event in events if isinstance(event, e.ToolCalled)}
    return replace(session, calls={name: replace(call, title=titles[name]) for name, call in session.calls.items()})


# ── importing ───────────────────────────────────────────────────────────────────────────────────────


async def import_session(services: RuntimeServices, request: ImportRequest, free_slug: FreeSlug) -> Imported:
    """Import the session file as a paused workflow, or extend the one it was imported as; the same content again
    changes nothing."""
    heard = await run_sync(hear, await _file(request))
    agent_named(services, heard.agent)
    if (known := await _known(services, heard)) is not None:
        return await _answer(services, known, heard, "already_imported")
    try:
        if (held := await _holding(services, heard)) is not None:
            await _extend(services, held, heard)
            return await _answer(services, held.id, heard, "extended")
        created = await _create(services, heard, request.repository, free_slug)
        return await _answer(services, created, heard, "imported")
    except SegueError:
        # Another request may have imported the same content just now.
        if (known := await _known(services, heard)) is None:
            raise
        return await _answer(services, known, heard, "already_imported")


async def _file(request: ImportRequest) -> Path:
    """Return the session file that is named, or the agent's newest one for the repository; raise BadInput without
    either."""
    if request.file is not None:
        return request.file
    if request.agent is None or request.repository is None:
        raise BadInput("Give a session file, or an agent and the repository that it worked in.")
    here, agent = request.repository, request.agent
    places = dict.fromkeys((await repository_root(here), here))
    return await run_sync(lambda: newest(agent, request.environment, list(places)))


async def _known(services: RuntimeServices, heard: Heard) -> WorkflowId | None:
    """Return the id of the workflow that was made from the same content; None if there is none."""
    return await services.journal.workflows.imported_as(heard.tally.sha256)


async def _holding(services: RuntimeServices, heard: Heard) -> WorkflowRow | None:
    """Return the open workflow of the same conversation; None if there is none or the conversation has no id."""
    token = heard.token
    return await services.journal.workflows.with_token(token) if token else None


async def _answer(services: RuntimeServices, workflow_id: WorkflowId, heard: Heard, status: Status) -> Imported:
    """Build the answer to an import, with the workflow's present view."""
    return Imported(
        status=status,
        workflow=view_of(*await services.journal.present(workflow_id)),
        agent=heard.agent,
        file=str(heard.file),
        lines=len(heard.events),
        unread_lines=heard.tally.unread,
        clean_boundary=heard.clean,
        open_calls=tuple(call.title for call in heard.session.calls.values()),
    )


# ── a new workflow ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Checkout in which an imported workflow goes on."""

    worktree: Path
    git: GitState
    own: bool
    """Flag that the agent worked in exactly this directory; it looks up its conversations by directory."""


async def _place(heard: Heard, repository: Path | None) -> Place:
    """Return the checkout that the session worked in, or else the given repository's; raise NotARepository if there
    is neither."""
    directory = Path(heard.directory)
    try:
        if not directory.is_absolute():
            raise NotARepository
        root, own = await repository_root(directory), await anyio.Path(directory).resolve()
    except NotARepository:
        if repository is None:
            raise NotARepository(
                f"The session worked in {heard.directory or 'an unknown directory'}, which is no git checkout here.",
                hint="Name the repository it belongs to: segue import FILE --repository DIR",
            ) from None
        root, own = await repository_root(repository), None
    return Place(worktree=root, git=await read_state(root, None), own=own is not None and Path(own) == root)


async def _create(services: RuntimeServices, heard: Heard, repository: Path | None, free_slug: FreeSlug) -> WorkflowId:
    """Create the paused workflow of an import, with the session's events and a snapshot of the checkout; return its
    id."""
    place = await _place(heard, repository)
    await _refuse_if_taken(services, place.worktree)
    issue, now = _issue(heard), services.clock.now()
    new = NewWorkflowRow(
        id=new_workflow_id(now),
        slug=await free_slug(issue.title, place.worktree),
        issue=issue,
        plan=Plan(tasks=(Task(id=TaskId("go-on"), title=f"Go on with: {issue.title}", description=GO_ON),)),
        agent=heard.agent,
        permissions=Permissions.ASK,
        repository=str(place.worktree),
        here=True,
        worktree=str(place.worktree),
        branch=place.git.branch,
        imported=True,
    )
    session_id = new_session_id(now)
    state = _state(heard, session_id, new.plan)
    workspace = await gather(new.worktree, checkpoint_ref(new.id, state), place.git.head)

    def write(t: Transaction) -> None:
        t.sessions.create(session_id, heard.agent)
        t.import_session(heard.note(), session_id, heard.token if place.own else None)
        _tell(t, session_id, heard.events)
        t.worktree_ready(new.worktree, new.branch, place.git.head)
        t.sessions.move(session_id, SessionStatus.SUSPENDED, reason=heard.reason)
        write_checkpoint(t, session_id, 0, _occasion(heard), state, workspace)
        t.move_workflow(WorkflowStatus.PAUSED, reason=heard.reason, trigger=Trigger.PAUSE)

    await services.journal.create(new, write)
    services.unstudied.put_nowait(new.id)
    return new.id


async def _refuse_if_taken(services: RuntimeServices, worktree: Path) -> None:
    """Raise WorktreeInUse if an open workflow has this worktree; else do nothing."""
    row = await services.journal.workflows.in_worktree(str(worktree))
    if row is not None:
        raise WorktreeInUse(
            f"Workflow {row.slug} ({row.status}) has {worktree} for itself, and two cannot share a checkout.",
            hint=f"Finish it, or end it for good: segue cancel {row.slug}",
        )


def _state(heard: Heard, session_id: SessionId, plan: Plan | None) -> WorkflowState:
    """Build the state that the import's snapshot is made from, before the transaction begins."""
    sessions = {session_id: heard.session}
    return WorkflowState(seq=Seq(len(heard.events)), plan=plan, sessions=sessions, current_session=session_id)


def _tell(t: Transaction, session_id: SessionId, events: Sequence[e.Event]) -> None:
    """Append the events to the session's journal, at most AT_ONCE in one append."""
    for start in range(0, len(events), AT_ONCE):
        t.append(*events[start : start + AT_ONCE], session_id=session_id)


def _occasion(heard: Heard) -> Occasion:
    """Build the occasion of an import's snapshot."""
    return Occasion(
        type=CheckpointType.PAUSE,
        trigger=Trigger.PAUSE,
        reason=heard.reason,
        snapshot=True,
        clean_boundary=heard.clean,
    )


def _issue(heard: Heard) -> Issue:
    """Build the issue from a session's first message, shortened; its title without a message is the agent's."""
    request = heard.request
    title = _title(request) or f"A session of {heard.agent}"
    if (more := len(request) - LONGEST_REQUEST) > 0:
        request = f"{request[:LONGEST_REQUEST]} [… {more} characters left out …]"
    return Issue(title=title, description="" if request == title else request)


def _title(request: str) -> str:
    """Return the first line with a letter or digit, without heading marks, shortened between two tokens; empty if there
    is none."""
    lines = ("".join(c if c.isprintable() else " " for c in line) for line in request.splitlines())
    first = next((line for line in lines if re.search(r"\w", line)), "")
    words = " ".join(first.lstrip("#").split())
    if len(words) <= LONGEST_TITLE:
        return words
    kept, _, _ = words[:LONGEST_TITLE].rpartition(" ")
    return f"{kept or words[: LONGEST_TITLE - 1]}…"


# ── a file that has grown ───────────────────────────────────────────────────────────────────────────


async def _extend(services: RuntimeServices, row: WorkflowRow, heard: Heard) -> None:
    """Append the file's events since the last import, with a new snapshot; raise WrongState if the file does not begin
    with the imported content or the workflow has gone on."""
    before = await _imported_before(services, row)
    if not await run_sync(_begins_with, heard.file, before.size, before.sha256):
        raise WrongState(
            f"This conversation is workflow {row.slug} already, and {heard.file.name} does not begin with what was "
            "imported of it.",
            hint=f"End that workflow for good (segue cancel {row.slug}), then import the file again.",
        )
    plan = (await services.journal.state(row.id)).plan
    session = await services.journal.sessions.current(row.id)
    state = _state(heard, session.id, plan)
    workspace = await gather(row.worktree, checkpoint_ref(row.id, state), row.base)

    def write(t: Transaction) -> None:
        current = t.sessions.current()
        if t.workflow.status is not WorkflowStatus.PAUSED or current.run_count or current.number > 1:
            raise WrongState(
                f"This conversation is workflow {row.slug}, which has gone on since it was imported.",
                hint=f"Go on with it: segue resume {row.slug}",
            )
        t.import_session(heard.note(), session.id, None)
        _tell(t, session.id, heard.events[before.lines :])
        write_checkpoint(t, session.id, 0, _occasion(heard), state, workspace)

    await services.journal.transact(row.id, write)
    services.unstudied.put_nowait(row.id)


async def _imported_before(services: RuntimeServices, row: WorkflowRow) -> e.SessionImported:
    """Return the last import of this workflow; raise WrongState if Segue runs the conversation itself."""
    records = await services.journal.last_records(row.id, ["session.imported"], limit=1)
    event = records[0].event if records else None
    if not isinstance(event, e.SessionImported):
        raise WrongState(
            f"This conversation is workflow {row.slug}, which Segue runs itself.", hint="`segue status` shows it."
        )
    return event


def _begins_with(file: Path, size: int, sha256: str) -> bool:
    """Return True if the file's first `size` bytes have this hash; False also if it is shorter."""
    digest, left = hashlib.sha256(), size
    try:
        with file.open("rb") as stream:
            while left and (some := stream.read(min(left, 1 << 20))):
                digest.update(some)
                left -= len(some)
    except OSError as error:
        raise NotASession(f"{file} cannot be read: {error.strerror or error}.") from error
    return not left and digest.hexdigest() == sha256

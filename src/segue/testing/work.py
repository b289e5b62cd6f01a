"""A user of one workflow, who keeps a diary."""

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any, Literal, TypeVar

from segue import client
from segue.model import events as e
from segue.model.codec import adapter
from segue.model.errors import SegueError
from segue.model.ids import WorkflowId
from segue.model.views import (
    Action,
    Answered,
    EventPage,
    Forked,
    Prompted,
    RecordView,
    Resumed,
    SessionStanding,
    SessionView,
    Verification,
    WorkflowView,
)
from segue.testing.losses import fact_of, line_of
from segue.testing.process_search import carrying
from segue.testing.rehearsal.diary import Diary, DiaryEntry, read_diary

T = TypeVar("T")

WITHIN = 60.0
"""Seconds that a user waits for an expected event."""
LONG_POLL = 20.0
AT_REST = frozenset({"paused", "blocked", "review", "completed", "failed", "cancelled"})

Wanted = type[Any] | Callable[[e.Event], bool]
"""Type of an event, or a condition."""


class NeverCame(SegueError):
    """The expected event or status did not occur in time."""


class Work:
    """User of one workflow; each acknowledgement is written to the diary before the next call."""

    def __init__(self, root: Path, repository: Path, script: str) -> None:
        """Create the user's directory with the agent's script and the client's diary."""
        self.root = root
        self.repository = repository
        self.agent_home = root / "agent"
        self.id = WorkflowId("")
        self.listener: Callable[[RecordView], None] = lambda _: None
        """Callback for every delivered event."""
        root.mkdir(parents=True)
        self.script = root / "script.yaml"
        self.script.write_text(script)
        self._diary = Diary(root / "client.jsonl")
        self._seen = 0
        self._unread: deque[RecordView] = deque()

    @property
    def environment(self) -> dict[str, str]:
        """Environment of the user's shell."""
        return {
            **os.environ,
            "SEGUE_REHEARSAL_SCRIPT": str(self.script),
            "SEGUE_REHEARSAL_HOME": str(self.agent_home),
        }

    # ── steering ────────────────────────────────────────────────────────────────────────────────────

    def begin(
        self,
        title: str,
        plan: str | None,
        *,
        agent: str = "rehearsal",
        permissions: str = "ask",
        choices: Mapping[str, object] | None = None,
    ) -> WorkflowView:
        """Create the workflow, and note that; without a plan, the agent proposes one."""
        request = {
            "issue": {"title": title},
            "plan": {"format": "yaml", "text": plan} if plan else None,
            "propose": plan is None,
            "agent": agent,
            "permissions": permissions,
            "repository": str(self.repository),
            "environment": self.environment,
            "choices": choices or {},
        }
        view = _read(WorkflowView, client.call("POST", "/api/workflows", request, timeout=WITHIN))
        self._diary.write("created", workflow=view.id, slug=view.slug)
        self.id = view.id
        return view

    def pause(self, reason: str = "", *, wait: bool = False) -> Action:
        """Request a pause, note the answer, and return it; with `wait` it comes after the pause."""
        action = self._act("pause", {"reason": reason}, {"wait": str(wait).lower()})
        self._diary.write(action.status, **asdict(action))
        return action

    def resume(self, *, agent: str | None = None, snapshot: str | None = None, way: str | None = None) -> Resumed:
        """Resume the workflow, note that, and return how."""
        body = {"environment": self.environment, "agent": agent, "snapshot": snapshot, "way": way}
        resumed = _read(Resumed, self._post("resume", body))
        self._diary.write("resumed", session=resumed.session, run=resumed.run, way=resumed.way)
        return resumed

    def answer(self, verb: Literal["approve", "reject"], **words: str) -> Answered:
        """Approve or reject the open question, note the answer, and return it."""
        answered = _read(Answered, self._post(verb, {**words, "environment": self.environment}))
        self._diary.write(answered.status, **asdict(answered))
        return answered

    def prompt(self, text: str, *, wait: bool = True) -> Prompted:
        """Send a message to the agent, note the result, and return it."""
        body = {"text": text, "wait": wait, "environment": self.environment}
        prompted = _read(Prompted, self._post("prompt", body))
        self._diary.write("said", **asdict(prompted))
        return prompted

    def fork(self, session_id: str) -> Forked:
        """Fork a session, note that, and return the new workflow."""
        body = {"environment": self.environment}
        forked = _read(Forked, client.call("POST", f"/api/sessions/{session_id}/fork", body, timeout=WITHIN))
        self._diary.write("forked", workflow=forked.workflow.id, checkpoint=forked.checkpoint_id)
        return forked

    def cancel(self, reason: str = "") -> Action:
        """Cancel the workflow, note the answer, and return it."""
        action = self._act("cancel", {"reason": reason})
        self._diary.write(action.status, **asdict(action))
        return action

    def _act(self, verb: str, body: Mapping[str, object], params: Mapping[str, object] | None = None) -> Action:
        """Send a request that is answered with an action."""
        return _read(Action, self._post(verb, body, params))

    def _post(self, verb: str, body: Mapping[str, object], params: Mapping[str, object] | None = None) -> Any:
        """Send a request on this workflow, and return the answer."""
        return client.call("POST", f"{self._path}/{verb}", body, params=params, timeout=WITHIN)

    # ── watching ────────────────────────────────────────────────────────────────────────────────────

    @property
    def _path(self) -> str:
        return f"/api/workflows/{self.id}"

    @property
    def view(self) -> WorkflowView:
        return _read(WorkflowView, client.call("GET", self._path))

    def session(self, session_id: str) -> SessionView:
        """Return the server's view of a session."""
        return _read(SessionView, client.call("GET", f"/api/sessions/{session_id}"))

    def standing(self, session_id: str) -> SessionStanding:
        """Return the state of a session's agent, and if it can be resumed, as the server reports it."""
        return _read(SessionStanding, client.call("GET", f"/api/sessions/{session_id}/status"))

    def until(self, wanted: Wanted, *, within: float = WITHIN) -> RecordView:
        """Follow the workflow to the next event that matches; raise NeverCame if it comes to rest or time is over."""
        deadline = monotonic() + within
        while not _fits((record := self._next(deadline)).event, wanted):
            if isinstance(record.event, e.WorkflowMoved) and record.event.after in AT_REST:
                raise NeverCame(f"The workflow is {record.event.after} instead: {record.event.reason}")
        return record

    def until_status(self, *statuses: str, within: float = WITHIN) -> WorkflowView:
        """Follow the workflow until it is in one of these statuses; raise NeverCame if time is over."""
        deadline = monotonic() + within
        while (view := self.view).status not in statuses:
            self._next(deadline)
        return view

    def next_event(self, within: float = WITHIN) -> RecordView:
        """Return the next event; raise NeverCame if time is over."""
        return self._next(monotonic() + within)

    def drain(self) -> None:
        """Read all events up to the present end of the journal, and drop them."""
        while self._receive(wait=0.0):
            pass
        self._unread.clear()

    def _next(self, deadline: float) -> RecordView:
        """Return the next event; raise NeverCame after the deadline."""
        while not self._unread:
            left = deadline - monotonic()
            if left <= 0:
                raise NeverCame(f"The expected event did not occur; the last event was number {self._seen}.")
            self._receive(wait=min(left, LONG_POLL))
        return self._unread.popleft()

    def _receive(self, wait: float) -> int:
        """Request new events, note them as delivered, and return their number."""
        records = self._page(self._seen, wait)
        if records:
            self._diary.write("delivered", events=[(fact_of(record), line_of(record)) for record in records])
            self._seen = records[-1].seq
            self._unread.extend(records)
            for record in records:
                self.listener(record)
        return len(records)

    def _page(self, after: int, wait: float) -> Sequence[RecordView]:
        """Return a page of events after number `after`; without any the server waits up to `wait` seconds."""
        params = {"after": after, "wait": wait}
        page = client.call("GET", f"{self._path}/events", params=params, timeout=wait + WITHIN)
        return _read(EventPage, page).events

    # ── afterwards ──────────────────────────────────────────────────────────────────────────────────

    def journal(self) -> list[RecordView]:
        """Return all events of the journal."""
        records: list[RecordView] = []
        while page := self._page(len(records), wait=0.0):
            records.extend(page)
        return records

    def verify(self) -> Verification:
        """Return the server's check of the journal's hash chain."""
        return _read(Verification, client.call("GET", f"{self._path}/verify", timeout=WITHIN))

    def agent_diary(self) -> list[DiaryEntry]:
        """Return the entries of the agent's diary."""
        return read_diary(self.agent_home / "diary.jsonl")

    def client_diary(self) -> list[DiaryEntry]:
        """Return the entries of the client's diary."""
        return read_diary(self.root / "client.jsonl")

    def processes(self) -> set[int]:
        """Return all processes of this workflow's agents, with guardians and children."""
        return carrying("SEGUE_REHEARSAL_HOME", str(self.agent_home))


def _read(kind: type[T], document: object) -> T:
    """Return a server's document as a value of this type."""
    return adapter(kind).validate_python(document)


def _fits(event: e.Event, wanted: Wanted) -> bool:
    """Return True if an event is of this type, or meets this condition."""
    return isinstance(event, wanted) if isinstance(wanted, type) else wanted(event)

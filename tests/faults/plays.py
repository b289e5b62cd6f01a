"""Small pieces for one agent, and a stubborn user who brings them to their end whatever happens to the server."""

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from segue import client
from segue.model import events as e
from segue.model.errors import NotRunning, ServerError
from segue.model.ids import WorkflowId
from segue.model.views import WorkflowView
from segue.testing.stage import Stage
from segue.testing.work import AT_REST

BOUND = 240.0
PLAN = """
- {id: one, title: Write the first file}
- {id: two, title: Write the second file, depends_on: [one]}
"""


FORK = "-fork"
"""How the names of forks end."""

Arms = deque[Mapping[str, str]]
"""How the servers are armed that are started one after the other; those after them are not."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What the agent plays, and how the workflow ends."""

    title: str
    script: str
    ending: str = "completed"
    says: str = ""
    """What the user says to the agent while the workflow stands still."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """What is set for the server."""
    looks_back: bool = False
    """Whether the user makes a fork while the workflow stands still, and then takes the work back to its snapshot."""
    choices: Mapping[str, object] = field(default_factory=dict[str, object])
    """How the work is tested, reviewed and committed."""
    plan: str | None = PLAN
    """None where the agent proposes one; the user rejects it once."""


ORDINARY = Piece(
    "Ask, pause and go on",
    """
turns:
  - match: Task 1 of 2
    do:
      - think: I had better ask.
      - write: {path: one.txt, content: "one\\n"}
      - run: echo asked > asked.txt
        ask: true
      - say: The first file is there.
  - match: Task 2 of 2
    do:
      - write: {path: two.txt, content: "two\\n"}
      - say: The second file is there.
""",
)
CANCELLED = Piece("Ask and be cancelled", ORDINARY.script, ending="cancelled")
UNLUCKY = Piece(
    "Fail, and be forgotten by the agent",
    """
on_load: {reject: true}
turns:
  - match: Task 1 of 2
    do:
      - write: {path: one.txt, content: "one\\n"}
      - fail: I cannot go on.
        once: true
""",
)
TALKATIVE = Piece("Talk in the break", ORDINARY.script, says="What is left to do?")
REPORTING = Piece("Report before the break", ORDINARY.script, variables={"SEGUE_EXTRACTION": "agent"})
HELD = """
turns:
  - match: Task 1 of 2
    do:
      - write: {{path: one.txt, content: "one\\n"}}
      - run: until [ -e {signal} ]; do sleep 0.1; done
  - match: Task 2 of 2
    do:
      - write: {{path: two.txt, content: "two\\n"}}
"""
RESTLESS = Piece("Fork and go back in the break", ORDINARY.script, looks_back=True)
REVIEWED = Piece(
    "Be tested, reviewed and committed",
    """
turns:
  - match: asked for a review
    once: true
    do:
      - say: '{"approved": false, "severity": "low", "comments": ["say more"]}'
  - match: asked for a review
    do:
      - say: '{"approved": true, "severity": "low", "comments": []}'
  - match: Task 1 of 2
    do:
      - write: {path: one.txt, content: "one\\n"}
      - usage: {used: 60000, size: 200000}
  - match: Task 2 of 2
    do:
      - write: {path: two.txt, content: "two\\n"}
  - match: not done yet
    do:
      - write: {path: more.txt, content: "more\\n"}
""",
    choices={"test_command": "test -e more.txt", "review": "same", "review_passes": 3, "commit": "task"},
    # The first try at its tests fails.
    variables={"SEGUE_RETRY_ATTEMPTS": "3"},
)
PLANNED = Piece(
    "Propose a plan",
    """
turns:
  - match: fenced JSON document
    once: true
    do: [{say: I had better begin at once.}]
  - match: fenced JSON document
    do:
      - say: |
          ```json
          {"tasks": [{"id": "one", "title": "Write the first file"},
                     {"id": "two", "title": "Write the second file", "depends_on": ["one"]}]}
          ```
""",
    plan=None,
)
FULL = Piece(
    "Hand over at the soft cap",
    """
turns:
  - match: Task 1 of 2
    do:
      - write: {path: one.txt, content: "one\\n"}
      - usage: {used: 165000, size: 200000}
      - say: The first file is there.
  - match: Task 2 of 2
    do:
      - write: {path: two.txt, content: "two\\n"}
      - say: The second file is there.
""",
)
PIECES = {
    piece.title: piece
    for piece in (ORDINARY, CANCELLED, UNLUCKY, TALKATIVE, REPORTING, RESTLESS, REVIEWED, PLANNED, FULL)
}


class Play:
    """One workflow, run by a user who starts the server again as often as it is gone."""

    def __init__(self, stage: Stage, piece: Piece = ORDINARY, arms: Arms | None = None) -> None:
        self.stage = stage
        self.piece = piece
        self._arms: Arms = deque() if arms is None else arms
        self.work = stage.work(piece.script)
        self._wants_a_break = piece.ending == "completed"
        self._boot = ""

    def see_through(self) -> None:
        """Go on until the workflow has come to its end."""
        deadline = monotonic() + BOUND
        while monotonic() < deadline:
            with suppress(NotRunning):
                self._serve()
                if self._go_on():
                    return
        raise TimeoutError(f"the workflow is stuck: {self.work.view}")

    def _serve(self) -> None:
        """See to it that a server is up; one that dies while it starts is started again."""
        while not self.stage.is_up:
            try:
                self.stage.up(**self.piece.variables, **self._arms.popleft() if self._arms else {})
            except NotRunning:
                raise
            except ServerError:
                continue

    def _go_on(self) -> bool:
        """Do the next thing that a user would do; true when there is nothing left."""
        view = self._view()
        if view.status == self.piece.ending:
            self.work.drain()
            return True
        if view.status == "blocked":
            self._judge()
        elif view.status == "paused" and self.piece.says and not self._said():
            self.work.prompt(self.piece.says)
        elif view.status == "paused" and self.piece.looks_back and self._looked_back(view):
            self._boot = self.stage.server.boot
        elif view.status in AT_REST and self._is_talking():
            self.work.next_event(BOUND)
        elif view.status in AT_REST or (view.status == "pending" and self._boot != self.stage.server.boot):
            self.work.resume()
            self._boot = self.stage.server.boot
        elif view.question is not None:
            self._answer()
        else:
            self.work.next_event(BOUND)
        return False

    def _judge(self) -> None:
        """The first plan is never good enough."""
        if any(isinstance(line.event, e.PlanRejected) for line in self.work.journal()):
            self.work.answer("approve")
        else:
            self.work.answer("reject", reason="Think again.")
        self._boot = self.stage.server.boot

    def _said(self) -> bool:
        """Whether it was taken down, which a server that died need not have told."""
        queued = (line.event for line in self.work.journal() if isinstance(line.event, e.PromptQueued))
        return any(event.text == self.piece.says for event in queued)

    def _looked_back(self, view: WorkflowView) -> bool:
        """Fork, or go back; false when both were done."""
        assert view.session is not None
        if f"{view.slug}{FORK}" not in {known["slug"] for known in _all_workflows()}:
            self.work.fork(view.session.id)
        elif not any(isinstance(line.event, e.WorkflowRewound) for line in self.work.journal()):
            self.work.resume(snapshot=view.last_snapshot)
        else:
            return False
        return True

    def _is_talking(self) -> bool:
        """Whether an agent is kept for another word."""
        session = self.work.view.session
        return session is not None and self.work.standing(session.id).is_agent_running

    def _view(self) -> WorkflowView:
        """The workflow, begun if need be; or taken up, if its server died before it could say that it was begun."""
        if not self.work.id:
            known = {work.id for work in self.stage.works}
            others = [view for view in _all_workflows() if not view["slug"].endswith(FORK)]
            unknown = [WorkflowId(view["id"]) for view in others if view["id"] not in known]
            self.work.id = unknown[0] if unknown else self._begin()
        return self.work.view

    def _begin(self) -> WorkflowId:
        view = self.work.begin(self.piece.title, self.piece.plan, choices=self.piece.choices)
        self._boot = self.stage.server.boot
        return view.id

    def _answer(self) -> None:
        if self.piece.ending == "cancelled":
            self.work.cancel()
        elif self._wants_a_break:
            self.work.pause("a break")
            self._wants_a_break = False
        else:
            self.work.answer("approve")

    def completed_tasks(self) -> list[str]:
        return [line.event.task_id for line in self.work.journal() if isinstance(line.event, e.TaskCompleted)]


def _all_workflows() -> list[dict[str, Any]]:
    return client.call("GET", "/api/workflows")["workflows"]


def using(tool: str) -> Callable[[e.Event], bool]:
    return lambda event: isinstance(event, e.ToolCalled) and event.tool == tool


class Held:
    """A workflow whose agent stands still in the middle of its first task, until it is let go."""

    def __init__(self, stage: Stage) -> None:
        signal = stage.root / f"go-{len(stage.works)}"
        self.let_go = signal.touch
        self.work = stage.work(HELD.format(signal=signal))
        self.work.begin("Stand still", PLAN)
        started = self.work.until(e.AgentStarted).event
        assert isinstance(started, e.AgentStarted)
        self.started = started
        self.work.until(using("execute"))

    def finish(self) -> None:
        """Go on from wherever it stands, to the end."""
        self.let_go()
        if self.work.view.status == "paused":
            self.work.resume()
        self.work.until_status("completed")
        self.work.drain()

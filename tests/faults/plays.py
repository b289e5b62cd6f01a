"""A small piece for one agent, and a stubborn user who brings it to its end whatever happens to the server."""

from collections.abc import Callable
from time import monotonic

from segue import client
from segue.model import events as e
from segue.model.errors import NotRunning, ServerError
from segue.testing.reckoning import Reckoning, reckon
from segue.testing.stage import Stage
from segue.testing.work import Work

BOUND = 120.0
TITLE = "Two small files"
PLAN = """
- {id: one, title: Write the first file}
- {id: two, title: Write the second file, depends_on: [one]}
"""
SCRIPT = """
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
"""
RESUMABLE = ("pending", "paused", "failed", "review")


class Play:
    """Runs, asks, pauses, resumes and completes one workflow; starts the server again as often as it is gone."""

    def __init__(self, stage: Stage, *, ending: str = "completed") -> None:
        self.stage = stage
        self.work = stage.work(SCRIPT)
        self.ending = ending
        self._asked_to_pause = False
        self._boot = ""

    def see_through(self, each_event: Callable[[], None] = lambda: None) -> None:
        """Go on until the workflow has come to its end."""
        deadline = monotonic() + BOUND
        while monotonic() < deadline:
            try:
                pid = self._server()
                if self._go_on(each_event):
                    return
            except NotRunning:
                self.stage.mourn(pid)
        raise TimeoutError(f"the workflow is stuck: {self.work.view}")

    def _server(self) -> int:
        """The server that is up, or a new one; a start that dies is tried again."""
        while not self.stage.is_up:
            try:
                self.stage.up()
            except ServerError:
                self.stage.deaths += 1
        return self.stage.server.pid

    def _go_on(self, each_event: Callable[[], None]) -> bool:
        """Do the next thing that a user would do; true when there is nothing left."""
        work = self.work
        if not work.id and not self._find():
            work.begin(TITLE, PLAN)
            self._boot = self.stage.server.boot
        view = work.view
        if view.status == self.ending:
            work.drain()
            return True
        if view.status in RESUMABLE and not (view.status == "pending" and self._boot == self.stage.server.boot):
            work.resume()
            self._boot = self.stage.server.boot
        elif view.question is not None:
            self._answer()
        else:
            work.next_event(BOUND)
            each_event()
        return False

    def _find(self) -> bool:
        """A workflow that was begun, and whose server died before it could say so."""
        known = {work.id for work in self.stage.works}
        found = client.call("GET", "/api/workflows")["workflows"]
        mine = [view["id"] for view in found if view["id"] not in known]
        self.work.id = mine[0] if mine else self.work.id
        return bool(mine)

    def _answer(self) -> None:
        if self.ending == "cancelled":
            self.work.cancel()
        elif not self._asked_to_pause:
            self.work.pause("a test wants a break")
            self._asked_to_pause = True
        else:
            self.work.answer("approve")


def reckoned(stage: Stage) -> list[Reckoning]:
    return [reckon(stage, work) for work in stage.works]


def completed_tasks(work: Work) -> list[str]:
    return [line.event.task_id for line in work.journal() if isinstance(line.event, e.TaskCompleted)]

"""Segue's own share of a resume: from the request to an agent that can be prompted, without the agent's own start."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import monotonic, sleep
from typing import Any

from benchmarks import traced
from benchmarks.bare import BareAgent
from benchmarks.doors import timed
from benchmarks.figures import percentile
from benchmarks.traced import GIT, GIT_END, GUARDED, GUARDIAN, Mark, marks_in
from segue import client
from segue.client import Server
from segue.drivers.environment import allowed
from segue.testing.rehearsal.launch import COMMAND
from segue.testing.stage import Stage
from segue.testing.work import Work

TIMES = 20
WARM = 2
"""Resumes before the first that counts."""
AIM = 100.0
"""Milliseconds of Segue's own, in the middle of all resumes."""
WITHIN = 60.0

READY = "session.ready.after"
PHASES: Mapping[str, str] = {
    "resume.before": "request",
    "resume.after": "transaction",
    "run.claimed": "queue_and_claim",
    GUARDIAN: "worktree_and_look_back",
    GUARDED: "guardian",
    "session.ready.before": "agent",
    READY: "ready_written",
}
"""By the mark they end with, what a resume consists of; it begins when the request is sent."""
AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Resumption:
    """One resume, in seconds, and what the same agent took without Segue just after it."""

    phases: Mapping[str, float]
    git: Mapping[str, list[float]]
    """The calls of git in each phase."""
    bare: float
    ground: Mapping[str, float]
    """Times of the smallest git call and the smallest Python in the same minute."""

    @property
    def whole(self) -> float:
        return sum(self.phases.values())

    @property
    def share(self) -> float:
        return self.whole - self.bare

    @property
    def around(self) -> float:
        """Segue's own seconds: all but the time from the agent's start to its last answer."""
        return self.whole - self.phases[AGENT]


async def measure(directory: Path, times: int = TIMES, warm: int = WARM) -> dict[str, Any]:
    """Pause and resume a workflow of the rehearsal agent in each of its tasks."""
    trace = directory / "trace"
    with Stage(directory / "stage", start=_starting(trace)) as stage:
        stage.up()
        pausing = PausingUser(stage, tasks=times + warm + 2)
        pausing.begin()
        resumptions = [_resume(pausing, trace) for _ in range(warm + times)][warm:]
        stage.down()
    return figures_of(resumptions)


def _starting(trace: Path) -> Callable[[Mapping[str, str]], Server]:
    command = (*client.server_command()[:2], traced.__file__, str(trace))
    return lambda _: client.start_server(command=command)


class PausingUser:
    """A workflow that stands still in each of its tasks until it is asked to pause after it."""

    def __init__(self, stage: Stage, tasks: int) -> None:
        self._under_way, self._may_end = stage.root / "under-way", stage.root / "may-end"
        script = f"turns: [{{do: [{{touch: {self._under_way}}}, {{wait_for: {self._may_end}}}]}}]"
        self._plan = "[" + ", ".join(f"{{id: task-{n}, title: Task {n}}}" for n in range(tasks)) + "]"
        self.work: Work = stage.work(script)
        self.token = ""
        self.worktree = Path()

    def begin(self) -> None:
        self.work.begin("Pause and go on", self._plan, permissions="all")
        self._pause()
        view = self.work.view
        self.worktree = Path(view.worktree or "")
        [session] = client.call("GET", f"/api/workflows/{view.id}/sessions")["sessions"]
        self.token = session["token"]

    def resume(self) -> float:
        """Go on, and stand still again; when that was asked for."""
        asked = monotonic()
        resumed = self.work.resume()
        if resumed.way != "native":
            raise AssertionError(f"resumed another way: {resumed.way}, because {resumed.reason}")
        self._pause()
        return asked

    def _pause(self) -> None:
        """Wait for a file: a call of the server would delay the resume."""
        deadline = monotonic() + WITHIN
        while not self._under_way.exists():
            if monotonic() > deadline:
                raise TimeoutError("the agent did not begin its task")
            sleep(0.005)
        self.work.pause()
        self._may_end.touch()
        self.work.pause(wait=True)
        self._under_way.unlink()
        self._may_end.unlink()


def _resume(pausing: PausingUser, trace: Path) -> Resumption:
    asked = pausing.resume()
    phases, git = taken_apart(asked, marks_in(trace, after=asked))
    return Resumption(phases, git, bare_start(pausing), ground(pausing.worktree))


def bare_start(pausing: PausingUser) -> float:
    """Time the same command in the same place until it has answered `session/resume`."""
    place = {"cwd": str(pausing.worktree), "mcpServers": []}
    environment = allowed(pausing.work.environment, ("SEGUE_REHEARSAL_*",))
    start = monotonic()
    with BareAgent(COMMAND, pausing.worktree, environment) as agent:
        agent.introduce()
        agent.ask("session/resume", {"sessionId": pausing.token, **place})
        return monotonic() - start


def ground(worktree: Path) -> dict[str, float]:
    """Time a minimal call of git, and a Python started as a guardian is."""
    return {
        "git": timed(["git", "-C", str(worktree), "rev-parse", "HEAD"]),
        "python": timed([sys.executable, "-I", "-S", "-c", "pass"]),
    }


@dataclass(slots=True)
class _Phase:
    began: float
    git: list[float] = field(default_factory=list[float])


def taken_apart(asked: float, marks: Sequence[Mark]) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Return the phases of one resume, and the calls of git in each of them, in seconds."""
    phases: dict[str, float] = {}
    git: dict[str, list[float]] = {}
    phase = _Phase(asked)
    for before, mark in pairwise([Mark(asked, ""), *marks]):
        if mark.name == GIT_END and before.name == GIT:
            phase.git.append(mark.at - before.at)
        if mark.name in PHASES and PHASES[mark.name] not in phases:
            name = PHASES[mark.name]
            phases[name], git[name] = mark.at - phase.began, phase.git
            phase = _Phase(mark.at)
        if mark.name == READY:
            break
    if list(phases) != list(PHASES.values()):
        raise AssertionError(f"the resume went another way than known: {[mark.name for mark in marks]}")
    return phases, git


def figures_of(resumptions: Sequence[Resumption]) -> dict[str, Any]:
    """Return the figures of all resumes."""
    share = milliseconds([each.share for each in resumptions])
    return {
        "count": len(resumptions),
        "aim_ms": AIM,
        "reached": share["p50_ms"] < AIM,
        "share": share,
        "around_the_agent": milliseconds([each.around for each in resumptions]),
        "whole": milliseconds([each.whole for each in resumptions]),
        "bare_agent": milliseconds([each.bare for each in resumptions]),
        "ground": {name: milliseconds([each.ground[name] for each in resumptions]) for name in resumptions[0].ground},
        "phases": {name: _phase(resumptions, name) for name in PHASES.values()},
    }


def _phase(resumptions: Sequence[Resumption], name: str) -> dict[str, float]:
    return {
        "min_ms": min(each.phases[name] for each in resumptions) * 1e3,
        "median_ms": median(each.phases[name] for each in resumptions) * 1e3,
        "git_calls": median(len(each.git[name]) for each in resumptions),
        "git_ms": median(sum(each.git[name]) for each in resumptions) * 1e3,
    }


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    percentiles = {f"p{share}_ms": percentile(seconds, share / 100) * 1e3 for share in (50, 95)}
    return {"min_ms": min(seconds) * 1e3, **percentiles}

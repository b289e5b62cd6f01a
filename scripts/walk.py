"""Count what a pause and a resume of the in-process service call, and print the counts as JSON.

Run it with the Python of the checkout that is to be measured. A workflow on the rehearsal agent is paused in the middle
of a turn and resumed, several times; each figure is the median.

- A pause begins when no function of Segue has been called for a while, and ends when its call returns. A resume begins
  there, and ends when the agent has the next prompt and Segue is quiet again. The study of the snapshot, which a pause
  leaves to the background, is thus part of the resume.
- A call goes between packages when the nearest calling function of Segue lies in another package of src/segue. All of
  the orchestrator is one package. A coroutine that is resumed by its caller counts again, as the profiler reports it.
- Functions entered are distinct functions; lambdas and comprehensions are not counted.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from types import CodeType, FrameType
from typing import Any

import segue

ROUNDS = 5
QUIET = 0.4
"""Seconds without a call after which Segue is quiet."""
WITHIN = 60.0
BASE = Path(segue.__file__).parent

SCRIPT = """
turns:
  - match: Task
    do:
      - write: {path: work.txt, content: "work\\n"}
      - run: until [ -e SIGNALS/go ]; do sleep 0.05; done; rm SIGNALS/go
"""
PLAN = "[" + ", ".join(f"{{id: task-{n}, title: Task {n}}}" for n in range(ROUNDS + 2)) + "]"
IDENTITY = {f"GIT_{role}_{field}": "measure" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}


class Profile:
    """Record of the calls of Segue's functions in all threads, while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.last = monotonic()
        self._entered: set[CodeType] = set()
        self._between = 0
        self._packages: dict[CodeType, str] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or not (package := self._package(frame.f_code)):
            return
        self.last = monotonic()
        if not self.on:
            return
        self._entered.add(frame.f_code)
        caller = frame.f_back
        while caller is not None and not self._package(caller.f_code):
            caller = caller.f_back
        self._between += caller is not None and self._package(caller.f_code) != package

    def _package(self, code: CodeType) -> str:
        """Return the first folder or module below segue; nothing for other code."""
        if code not in self._packages:
            path = Path(code.co_filename)
            inside = path.is_relative_to(BASE)
            self._packages[code] = path.relative_to(BASE).parts[0].removesuffix(".py") if inside else ""
        return self._packages[code]

    def take(self) -> dict[str, int]:
        """Return the counts, and start again from nothing."""
        functions = sum(not code.co_name.startswith("<") for code in self._entered)
        counts = {"calls between packages": self._between, "functions entered": functions}
        self._entered, self._between = set(), 0
        return counts


async def measure(directory: Path, profile: Profile) -> dict[str, list[dict[str, int]]]:
    # Imported after the profiler is set, so that the threads of imported libraries have it.
    """Pause and resume a workflow several times; return the counts of each walk."""
    from segue.model.agents import AgentConfiguration
    from segue.orchestrator import open_orchestrator
    from segue.server.rules import rules_of
    from segue.settings import Settings
    from segue.testing.rehearsal.diary import read_diary

    (directory / "script.yaml").write_text(SCRIPT.replace("SIGNALS", str(directory)))
    environment = {
        **os.environ,
        "SEGUE_REHEARSAL_SCRIPT": str(directory / "script.yaml"),
        "SEGUE_REHEARSAL_HOME": str(directory / "agent"),
    }
    agent = AgentConfiguration(
        name="rehearsal",
        command=(sys.executable, "-m", "segue.testing.rehearsal"),
        environment=("SEGUE_REHEARSAL_*",),
    )

    def prompted(times: int) -> Callable[[], bool]:
        return lambda: sum(entry.kind == "prompt" for entry in diary()) >= times

    def diary() -> list[object]:
        file = directory / "agent" / "diary.jsonl"
        return list(read_diary(file)) if file.exists() else []

    async def until(holds: Callable[[], bool]) -> None:
        """Look with the profiler off: reading the diary is not Segue's work."""
        deadline = monotonic() + WITHIN
        while True:
            on, profile.on = profile.on, False
            last = profile.last
            held = holds()
            profile.on, profile.last = on, last
            if held:
                return
            if monotonic() > deadline:
                raise TimeoutError("the workflow is stuck")
            await asyncio.sleep(0.02)

    async def quiet() -> None:
        await until(lambda: monotonic() - profile.last > QUIET)

    walks: dict[str, list[dict[str, int]]] = {"pause": [], "resume": []}
    async with open_orchestrator(
        database_url=f"sqlite:///{directory}/segue.db",
        home=directory,
        agents={agent.name: agent},
        rules=rules_of(Settings(handshake_timeout=WITHIN)),
    ) as orchestrator:
        verbs = Verbs(orchestrator, environment)
        name = await verbs.create(repository_in(directory))
        await until(prompted(1))
        await quiet()
        for number in range(1, ROUNDS + 1):
            profile.on = True
            pause = asyncio.create_task(verbs.pause(name))
            await quiet()
            (directory / "go").touch()
            await pause
            profile.on = False
            walks["pause"].append(profile.take())
            profile.on = True
            await verbs.resume(name)
            await until(prompted(number + 1))
            await quiet()
            profile.on = False
            walks["resume"].append(profile.take())
    return walks


def repository_in(directory: Path) -> Path:
    """Make a repository with one commit."""
    repository = directory / "repository"
    repository.mkdir()
    for words in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "Begin"]):
        subprocess.run(["git", *words], cwd=repository, env={**os.environ, **IDENTITY}, check=True)
    return repository


class Verbs:
    """Requests in the form that the checkout takes: one value for each verb, or loose arguments as in older ones."""

    def __init__(self, orchestrator: Any, environment: dict[str, str]) -> None:
        try:
            self.values = import_module("segue.model.requests")
        except ModuleNotFoundError:
            self.values = None
        self.orchestrator = orchestrator
        self.environment = environment

    async def create(self, repository: Path) -> str:
        from segue.model.agents import Choices
        from segue.model.plan import Issue
        from segue.model.status import Permissions

        values = self.values or import_module("segue.model.views")
        fields = {
            "issue": Issue(title="Measure the walk"),
            "plan": values.PlanText(format="yaml", text=PLAN),
            "agent": "rehearsal",
            "permissions": Permissions.ALL,
            "repository": repository,
            "environment": self.environment,
        }
        if self.values is None:
            return (await self.orchestrator.create(values.NewWorkflow(**fields))).id
        return (await self.orchestrator.create(values.RunRequest(**fields), "rehearsal", Choices())).id

    async def pause(self, name: str) -> None:
        await self.orchestrator.pause(name, self.values.PauseRequest() if self.values else "", wait=True)

    async def resume(self, name: str) -> None:
        values, environment = self.values, self.environment
        await self.orchestrator.resume(name, values.ResumeRequest(environment=environment) if values else environment)


def main() -> int:
    """Print the medians of all walks."""
    profile = Profile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    with TemporaryDirectory(prefix="segue-") as directory:
        walks = asyncio.run(measure(Path(directory), profile))
    sys.setprofile(None)
    threading.setprofile(None)
    figures = {
        f"walk of {verb}: {name}": round(median(counts[name] for counts in rounds))
        for verb, rounds in walks.items()
        for name in rounds[0]
    }
    print(json.dumps(figures | {"walks, each round": walks}, indent=1))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The demo: a workflow is paused, resumed, its server killed in the middle of a task, and finished."""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from time import monotonic
from typing import TextIO

import yaml

from segue.model import events as e
from segue.model.errors import SegueError
from segue.model.views import WorkflowView
from segue.testing.reckoning import Reckoning, reckon
from segue.testing.stage import Stage
from segue.testing.work import Work

PLAN = """\
- {id: core, title: Write the conversions}
- {id: tests, title: Test them, depends_on: [core]}
- {id: command, title: Give it a command line, depends_on: [core]}
- {id: kelvin, title: Teach it Kelvin, depends_on: [tests]}
- {id: guide, title: Write the guide, depends_on: [kelvin, command]}
"""
TASKS = len(PLAN.splitlines())

CORE = '''"""Temperatures."""


def to_fahrenheit(celsius: float) -> float:
    return celsius * 9 / 5 + 32
'''
TESTS = """import unittest

from convert import to_fahrenheit


class Conversions(unittest.TestCase):
    def test_water_boils(self):
        self.assertEqual(to_fahrenheit(100), 212)
"""
COMMAND = """import sys

from convert import to_fahrenheit

print(to_fahrenheit(float(sys.argv[1])))
"""
KELVIN = """

def to_kelvin(celsius: float) -> float:
    return celsius + 273.15
"""
RUN_TESTS = f"{sys.executable} -m unittest -q"


def script(signals: Path) -> str:
    """Return the script of the rehearsal agent, which waits for files that the demo creates in `signals`."""

    def turn(match: str, *steps: object) -> dict[str, object]:
        return {"match": match, "do": list(steps)}

    def write(path: str, content: str) -> dict[str, object]:
        return {"write": {"path": path, "content": content}}

    held = {"wait_for": str(signals / "pause-asked")}
    slow_tests = f"until [ -e {quote(str(signals / 'plug-pulled'))} ]; do sleep 0.1; done; {RUN_TESTS}"
    question = {"title": "May I make convert-cli.py executable?", "then": [{"run": "chmod +x convert-cli.py"}]}
    turns = [
        turn("Write the conversions", {"think": "A function is enough."}, write("convert.py", CORE)),
        turn("Test them", write("test_convert.py", TESTS), {"run": RUN_TESTS}, held),
        turn("Give it a command line", write("convert-cli.py", COMMAND), {"ask": question}),
        turn(
            "Teach it Kelvin", write("convert.py", CORE + KELVIN), write("check.sh", slow_tests), {"run": "sh check.sh"}
        ),
        turn("Write the guide", write("GUIDE.md", "# Conversions\n"), {"usage": {"used": 24000, "size": 200000}}),
    ]
    return yaml.safe_dump({"turns": turns}, sort_keys=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """The demo's last line under --json."""

    ok: bool = False
    workflow: str = ""
    tasks_done: int = 0
    sessions: int = 0
    runs: int = 0
    kills: int = 0
    events: int = 0
    lost: int = 0
    duplicated: int = 0
    orphans: int = 0
    journal_verified: bool = False


def completed(task: str) -> Callable[[e.Event], bool]:
    """Return a condition for the event that completes this task."""
    return lambda event: isinstance(event, e.TaskCompleted) and event.task_id == task


def using(tool: str) -> Callable[[e.Event], bool]:
    """Return a condition for the event of a call of this tool."""
    return lambda event: isinstance(event, e.ToolCalled) and event.tool == tool


class Demo:
    """The story of the demo, printed while it is played."""

    def __init__(self, root: Path, stage: Stage, out: TextIO) -> None:
        """Create the folder for signals, and the user with the agent's script."""
        self.stage = stage
        self.signals = root / "signals"
        self.signals.mkdir()
        self.work: Work = stage.work(script(self.signals))
        self._out = out
        self._started = monotonic()
        self._kills = 0

    def play(self) -> DemoResult:
        """Play all scenes, and return the result."""
        self.say("Segue runs a coding agent, pulls the plug on it, and carries on.")
        self.begin()
        self.pause_and_resume()
        self.answer()
        self.kill_in_the_middle()
        self.come_back()
        return self.add_up()

    def begin(self) -> None:
        """Start the server and the workflow."""
        self.step("A git repository, a plan of five tasks, and an agent (scripted: no model is called)")
        server = self.stage.up()
        self.tell(f"the server is up (pid {server.pid})")
        self.command('segue run "A temperature converter" --plan plan.yaml --agent rehearsal')
        self.work.begin("A temperature converter", PLAN)
        started = self.work.until(e.AgentStarted).event
        assert isinstance(started, e.AgentStarted)
        self.tell(f"the agent works in a worktree of its own (pid {started.pid})")
        self.work.until(completed("core"))
        self.tick("Write the conversions")

    def pause_and_resume(self) -> None:
        """Pause at the end of a task, and resume."""
        self.step("A pause: it waits for the end of the task")
        self.work.until(using("execute"))
        self.work.until(e.ToolFinished)
        self.command("segue pause")
        self.work.pause("the demo wants to show it")
        self.tell("asked for in the middle of “Test them”; the agent may finish it")
        (self.signals / "pause-asked").touch()
        view = self.work.until_status("paused")
        self.work.drain()
        self.tick("Test them")
        self.tell(f"paused: {self.progress(view)}, snapshot {view.last_snapshot}, {self.processes()}")
        self.command("segue resume")
        resumed = self.work.resume()
        self.tell(f"session {resumed.session_number}, run {resumed.run}: {resumed.reason}")

    def answer(self) -> None:
        """Wait for the agent's question, and approve it."""
        self.step("A question: the agent waits until you answer")
        asked = self.work.until(e.PermissionRequested).event
        assert isinstance(asked, e.PermissionRequested)
        self.tell(f"the agent asks: {asked.title}")
        self.command("segue approve")
        self.work.answer("approve")
        self.work.until(completed("command"))
        self.tick("Give it a command line")

    def kill_in_the_middle(self) -> None:
        """Kill the server with SIGKILL while the agent works on a task."""
        self.step("The plug is pulled: kill -9 on the server, in the middle of “Teach it Kelvin”")
        self.work.until(using("execute"))
        self.tell(f"convert.py is changed, its tests are running; {self.processes()}")
        server = self.stage.server
        self.command(f"kill -9 {server.pid}")
        self.stage.kill()
        self._kills += 1
        (self.signals / "plug-pulled").touch()
        self.tell(f"the server is gone; {self.processes()}")

    def come_back(self) -> None:
        """Start a new server, and resume the interrupted work."""
        self.step("A new server settles what it finds, and starts no agent by itself")
        server = self.stage.up()
        self.work.drain()
        view = self.work.view
        self.tell(f"the server is up again (pid {server.pid})")
        self.tell(f"{view.status}: {self.progress(view)}; {self.processes()}")
        self.tell(f"because {view.reason}")
        self.step("One command carries on")
        self.command("segue resume")
        resumed = self.work.resume()
        prompt = self.work.until(e.PromptQueued).event
        assert isinstance(prompt, e.PromptQueued)
        self.tell(f"session {resumed.session_number}, run {resumed.run}: {resumed.reason}")
        self.tell("the agent is told, among other things:")
        for line in [line for line in prompt.text.splitlines() if line.strip()][:6]:
            self.quote(line)
        self.work.until_status("completed")
        self.tick("Teach it Kelvin")
        self.tick("Write the guide")

    def add_up(self) -> DemoResult:
        """Run the tests, count tasks, losses and processes, stop the server, and return the result."""
        self.step("What is there now")
        view = self.work.view
        assert view.worktree is not None
        worktree = Path(view.worktree)
        tests = subprocess.run(RUN_TESTS.split(), cwd=worktree, capture_output=True, check=False).returncode == 0
        files = sorted(path.name for path in worktree.iterdir() if path.is_file() and path.suffix)
        self.tell(f"in the worktree: {', '.join(files)}; the tests {'pass' if tests else 'FAIL'}")
        reckoning = reckon(self.stage, self.work)
        self.stage.down()
        result = self.result(view, reckoning, tests)
        self.table(result, reckoning)
        return result

    def result(self, view: WorkflowView, found: Reckoning, tests: bool) -> DemoResult:
        """Return the result, which is ok if all tasks are done, tests pass and the audit found no fault."""
        done = view.tasks_done == view.tasks_total == TASKS
        return DemoResult(
            ok=done and tests and not found.faults and self._kills == 1,
            workflow=view.id,
            tasks_done=view.tasks_done,
            sessions=view.sessions,
            runs=view.runs,
            kills=self._kills,
            events=found.events,
            lost=len(found.lost),
            duplicated=len(found.duplicated),
            orphans=len(found.orphans),
            journal_verified=found.problem is None,
        )

    def table(self, result: DemoResult, found: Reckoning) -> None:
        """Print the result."""
        self.say("")
        self.say(f"  tasks done    {result.tasks_done} of {TASKS}, in {result.runs} runs of one conversation")
        self.say(f"  killed        {result.kills} server with SIGKILL")
        self.say(f"  lost          {result.lost}   (two diaries that were kept outside, against the journal)")
        self.say(f"  done twice    {result.duplicated}")
        self.say(f"  left running  {result.orphans}")
        verdict = "its hash chain holds" if result.journal_verified else "BROKEN"
        self.say(f"  journal       {result.events} events, {verdict}")
        for fault in found.faults:
            self.say(f"  ✗ {fault}")
        self.say("")
        self.say(f"{'All is well' if result.ok else 'Something is wrong'}, after {self.seconds():.0f} seconds.")

    # ── words ───────────────────────────────────────────────────────────────────────────────────────

    def processes(self) -> str:
        """Return the number of the agent's processes as a phrase."""
        count = len(self.work.processes())
        return f"{count or 'no'} process{'' if count == 1 else 'es'} of the agent"

    def progress(self, view: WorkflowView) -> str:
        """Return the number of done tasks as a phrase."""
        return f"{view.tasks_done} of {view.tasks_total} tasks done"

    def seconds(self) -> float:
        """Return the seconds since the demo began."""
        return monotonic() - self._started

    def step(self, text: str) -> None:
        """Print the title of a scene."""
        self.say(f"\n{text}.")

    def tell(self, text: str) -> None:
        """Print a line of the story, indented."""
        self.say(f"    {text}")

    def tick(self, text: str) -> None:
        """Print a line with a tick."""
        self.say(f"  ✓ {text}")

    def command(self, text: str) -> None:
        """Print a command as if typed."""
        self.say(f"  $ {text}")

    def quote(self, text: str) -> None:
        """Print a quoted line."""
        self.say(f"      │ {text}")

    def say(self, text: str) -> None:
        """Print a line of the story at once."""
        self._out.write(f"{text}\n")
        self._out.flush()


def main() -> int:
    """Play the demo, and return the exit code: 0 if all is well, 130 if interrupted. Its directory stays only after a
    fault."""
    parser = argparse.ArgumentParser("segue demo", description="Play the whole story on the rehearsal agent.")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON; the story goes to stderr")
    options = parser.parse_args()
    out = sys.stderr if options.json else sys.stdout
    # SIGTERM must stop the demo's server too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    root = Path(tempfile.mkdtemp(prefix="segue-demo-"))
    try:
        result = tell(root, out)
    except KeyboardInterrupt:
        out.write("\nStopped; its server and its agent are gone.\n")
        shutil.rmtree(root, ignore_errors=True)
        return 130
    if result.ok:
        shutil.rmtree(root, ignore_errors=True)
    else:
        out.write(f"Everything is still in {root}.\n")
    if options.json:
        sys.stdout.write(json.dumps(asdict(result)) + "\n")
    return 0 if result.ok else 1


def tell(root: Path, out: TextIO) -> DemoResult:
    """Play the story, and return its result; an error is printed, and the result is then empty and not ok."""
    try:
        with Stage(root / "stage") as stage:
            return Demo(root, stage, out).play()
    except SegueError as error:
        out.write(f"\n✗ {error.message}\n" + (f"  {error.hint}\n" if error.hint else ""))
    except (OSError, subprocess.SubprocessError) as error:
        out.write(f"\n✗ {error}\n")
    return DemoResult()


if __name__ == "__main__":
    sys.exit(main())

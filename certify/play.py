"""Two plays for a real agent.

In the long one it answers with text, writes a file, is killed with its server in the middle of a shell command, is
resumed, killed again while it waits for a permission, resumed, and answers once more. In the short one the model
reports a full window, the agent compacts its conversation by itself, and is killed in the middle of a command after
that.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from time import monotonic, sleep

import yaml

from certify import installed_programs
from certify.candidates import CertifiedAgent, Housing, environment
from segue.model import events as e
from segue.model.ids import slugify
from segue.model.views import RecordView, Resumed
from segue.testing.losses import count
from segue.testing.model import Call, LoggedRequest, Shell, read_log
from segue.testing.process_search import carrying
from segue.testing.stage import Stage
from segue.testing.work import AT_REST, Work
from segue.workspace.processes import descendants, identity, is_alive

WITHIN = 120.0
"""Seconds for a real agent to do one step, on a busy machine."""

TITLE = "Certify the agent"
SUMMARY = "SUMMARY-OMEGA"
NOTE = "note-beta.txt"
NOW = "This is what to do now:"
"""Heading of the task in a prompt that carries a compiled context."""
STARTED = "command-started.txt"
LATER = "command-later.txt"

PLAN = f"""
- id: text
  title: Answer with text
  description: REMEMBER-ALPHA and say so.
- id: file
  title: Write a file
  description: Write {NOTE}. (FILE-BETA)
  depends_on: text
- id: command
  title: Run a long command
  description: Run the command that takes long. (COMMAND-GAMMA)
  depends_on: file
- id: permission
  title: Run another command
  description: Run the command that needs a permission. (COMMAND-DELTA)
  depends_on: command
- id: last
  title: Answer once more
  description: Say the last word. (LAST-EPSILON)
  depends_on: permission
"""


SHORT_PLAN = """
- id: text
  title: Answer with text
  description: REMEMBER-ALPHA and say so.
- id: command
  title: Run a long command
  description: Run the command that takes long. (COMMAND-GAMMA)
  depends_on: text
"""


@dataclass(slots=True)
class Observed:
    """Observations from outside during a play."""

    journal: list[RecordView] = field(default_factory=list[RecordView])
    requests: list[LoggedRequest] = field(default_factory=list[LoggedRequest])
    resumes: list[Resumed] = field(default_factory=list[Resumed])
    marks: list[int] = field(default_factory=list[int])
    """Requests that the model had received at each resume."""
    seconds: list[float] = field(default_factory=list[float])
    """Seconds from each resume to the first event of the next turn."""
    later_ran: bool = False
    """The command without permission was executed."""
    trees: list[int] = field(default_factory=list[int])
    """Processes below the server at each kill."""
    files: dict[str, str] = field(default_factory=dict[str, str])
    """Hashes of the agent's own conversation files at the first kill."""
    changed: list[str] = field(default_factory=list[str])
    """Conversation files that changed until the end."""
    orphans: set[int] = field(default_factory=set[int])
    faults: list[str] = field(default_factory=list[str])
    stopped_at: str = ""
    error: str = ""


class Actor(Work):
    """User of a workflow with a real agent, whose permission requests are approved."""

    def __init__(self, root: Path, repository: Path, variables: Mapping[str, str]) -> None:
        super().__init__(root, repository, "")
        self._variables = dict(variables)

    @property
    def environment(self) -> dict[str, str]:
        return self._variables

    def processes(self) -> set[int]:
        return carrying("HOME", self._variables["HOME"])

    def allow_until(self, wanted: Callable[[e.Event], bool]) -> RecordView:
        """Follow the workflow to the next event that matches, and approve permission requests."""
        deadline = monotonic() + WITHIN
        while not wanted((record := self.next_event(deadline - monotonic())).event):
            match record.event:
                case e.PermissionRequested() if self.view.question is not None:
                    self.answer("approve")
                case e.WorkflowMoved(after=after, reason=reason) if after in AT_REST:
                    raise RuntimeError(f"The workflow is {after} instead: {reason}")
                case _:
                    pass
        return record


@dataclass(slots=True)
class Witness:
    """Observations after a play of several acts."""

    journal: list[RecordView] = field(default_factory=list[RecordView])
    requests: list[LoggedRequest] = field(default_factory=list[LoggedRequest])
    resumed: Resumed | None = None
    orphans: set[int] = field(default_factory=set[int])
    lost: int = 0
    doubled: int = 0
    fault: str = ""
    error: str = ""

    @contextmanager
    def watching(self, stage: Stage, actor: Actor, log: Path) -> Generator[None]:
        """Collect the observations after the body of the context, even if it fails."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - a verdict is wanted, not a traceback
            self.error = f"{type(error).__name__}: {error}"
        if not stage.is_up:
            stage.up()
        self.journal, self.requests = actor.journal(), read_log(log)
        counted = count(self.journal, [], actor.client_diary())
        self.lost, self.doubled = len(counted.lost), len(counted.duplicated)
        self.fault = actor.verify().problem or ""
        stage.down()
        self.orphans = stage.orphans | actor.processes()

    def checks(self) -> Iterator[tuple[bool, str]]:
        yield not (self.lost or self.doubled), f"events lost: {self.lost}; things done twice: {self.doubled}"
        yield not self.orphans, f"processes left: {len(self.orphans)}"
        yield not self.fault, f"the journal's chain holds{f': {self.fault}' if self.fault else ''}"


@contextmanager
def playing(candidate: CertifiedAgent, root: Path, *, compacting: bool = False) -> Generator[tuple[Stage, Actor, Path]]:
    """Provide a stage with the agent and the model; the file is the model's log."""
    script = _compacting if compacting else _script
    with staged([candidate], root, lambda worktree: script(candidate, worktree)) as play:
        yield play


@contextmanager
def staged(
    candidates: Sequence[CertifiedAgent], root: Path, rules: Callable[[Path], list[object]], *, settings: str = ""
) -> Generator[tuple[Stage, Actor, Path]]:
    """Provide a stage with agents that share a model with these rules; `settings` are added for the last agent."""
    root.mkdir(parents=True)
    log = root / "requests.jsonl"
    stage = Stage(root, settings="".join(map(_settings, candidates)) + settings)
    worktree = stage.home / "worktrees" / slugify(TITLE)
    script = root / "model.yaml"
    script.write_text(yaml.safe_dump({"rules": rules(worktree)}))
    with _model(script, log) as address, stage:
        housing = Housing(root / "agent-home", address, worktree)
        variables = {name: value for each in candidates for name, value in environment(each, housing).items()}
        actor = Actor(root / "work", stage.repository, variables)
        stage.works.append(actor)
        yield stage, actor, log


def _settings(candidate: CertifiedAgent) -> str:
    command = json.dumps(installed_programs.install(candidate.name))
    patterns = json.dumps(list(candidate.patterns))
    return f"[agents.{candidate.name}]\ncommand = {command}\nenvironment = {patterns}\n"


def _script(candidate: CertifiedAgent, worktree: Path) -> list[object]:
    """Return the rules of the model; those for an interrupted task come first: its prompt contains the task again."""
    asking = candidate.asking(f"date > {worktree / LATER}")
    note = {"path": str(worktree / NOTE), "content": "CONTENT-BETA"}
    # A prompt with a compiled context also contains the earlier requests.
    told = rf"{NOW}[\s\S]*"
    return [
        rule(f"/{told}COMMAND-GAMMA/", {"say": "ANSWER-GAMMA"}),
        rule(f"/{told}COMMAND-DELTA/", {"say": "ANSWER-DELTA"}),
        rule("/interrupted in the middle[^$]*COMMAND-GAMMA/", {"say": "ANSWER-GAMMA"}),
        rule("/interrupted in the middle[^$]*COMMAND-DELTA/", {"say": "ANSWER-DELTA"}),
        rule("LAST-EPSILON", {"say": "ANSWER-EPSILON"}),
        rule("COMMAND-DELTA", _step(asking), {"say": "NOT-REACHED"}),
        rule("COMMAND-GAMMA", long_command(worktree), {"say": "NOT-REACHED"}),
        rule("FILE-BETA", {"write": note}, {"say": "ANSWER-BETA"}),
        rule("REMEMBER-ALPHA", {"say": "ANSWER-ALPHA"}),
    ]


def _compacting(candidate: CertifiedAgent, worktree: Path) -> list[object]:
    """Return the model's rules of the short play; each agent requests its summary differently."""
    full = {"input": candidate.full or 0}
    return [
        rule("/interrupted in the middle/", {"say": "ANSWER-GAMMA"}),
        rule("COMMAND-GAMMA", long_command(worktree), {"say": "NOT-REACHED"}),
        rule("/(?i)summar(y|i[sz]e)|checkpoint compaction/", {"say": f"<summary>{SUMMARY}</summary>"}),
        rule("REMEMBER-ALPHA", {"say": "ANSWER-ALPHA", "usage": full}),
    ]


def long_command(worktree: Path) -> dict[str, object]:
    return {"shell": f"date > {worktree / STARTED} && tail -f /dev/null"}


def rule(match: str, *steps: Mapping[str, object]) -> dict[str, object]:
    return {"match": match, "do": list(steps)}


def _step(answer: Call | Shell) -> dict[str, object]:
    if isinstance(answer, Shell):
        return {"shell": answer.command}
    return {"call": {"name": answer.name, "arguments": answer.arguments}}


@contextmanager
def _model(script: Path, log: Path) -> Generator[str]:
    words = [sys.executable, "-m", "segue.testing.model", "--script", str(script), "--log", str(log)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def perform(stage: Stage, actor: Actor, candidate: CertifiedAgent, log: Path, *, compacting: bool = False) -> Observed:
    """Play all acts, and return the observations even after a failure."""
    seen = Observed()
    try:
        for act in _acts(candidate, compacting):
            seen.stopped_at = act.__name__.strip("_").replace("_", " ")
            act(stage, actor, candidate, log, seen)
        seen.stopped_at = ""
    except Exception as error:  # noqa: BLE001 - a verdict is wanted, not a traceback
        seen.error = f"{type(error).__name__}: {error}"
    if not stage.is_up:
        stage.up()
    seen.journal, seen.requests = actor.journal(), read_log(log)
    seen.later_ran = (Path(actor.view.worktree or "") / LATER).exists()
    if problem := actor.verify().problem:
        seen.faults.append(problem)
    stage.down()
    seen.orphans |= stage.orphans | actor.processes()
    return seen


# ── the acts ────────────────────────────────────────────────────────────────────────────────────────


def _text_and_file(stage: Stage, actor: Actor, candidate: CertifiedAgent, log: Path, seen: Observed) -> None:
    stage.up()
    actor.begin(TITLE, PLAN, agent=candidate.name)
    actor.allow_until(completed("text"))
    actor.allow_until(completed("file"))
    written = Path(actor.view.worktree or "") / NOTE
    if not written.exists() or "CONTENT-BETA" not in written.read_text():
        raise RuntimeError(f"{NOTE} was not written")


def _long_command(stage: Stage, actor: Actor, candidate: CertifiedAgent, log: Path, seen: Observed) -> None:
    """Wait until the command is announced and runs."""
    actor.allow_until(lambda event: isinstance(event, e.ToolCalled))
    until_it_runs(actor)


def until_it_runs(actor: Actor) -> None:
    """Wait until the long command was allowed and has begun."""
    started = Path(actor.view.worktree or "") / STARTED
    deadline = monotonic() + WITHIN
    while not started.exists():
        if monotonic() > deadline:
            raise RuntimeError("the command did not start")
        if actor.view.question is not None:
            actor.answer("approve")
        sleep(0.1)


def _kill(stage: Stage, actor: Actor, candidate: CertifiedAgent, log: Path, seen: Observed) -> None:
    below = [identity(pid) for pid in {*descendants(stage.server.pid), *actor.processes()}]
    tree = [each for each in below if each is not None]
    seen.trees.append(len(tree))
    stage.kill()
    seen.orphans |= {each.pid for each in tree if is_alive(each)}


def _resume(stage: Stage, actor: Actor, candidate: CertifiedAgent, log: Path, seen: Observed) -> None:
    stage.up()
    actor.drain()
    seen.marks.append(len(read_log(log)))
    begin = monotonic()
    seen.resumes.append(actor.resume())
    actor.allow_until(lambda event: isinstance(event, e.PromptAcknowledged))
    seen.seconds.append(round(monotonic() - begin, 2))


def _note_files(stage: Stage, actor: Actor, candidate: CertifiedAgent, log: Path, seen: Observed) -> None:
    seen.files = _contents(actor, candidate)


def _compare_files(stage: Stage, actor: Actor, candidate: CertifiedAgent, log: Path, seen: Observed) -> None:
    """Compare the files: an agent that loses conversations when it loads them must not have loaded one."""
    now = _contents(actor, candidate)
    seen.changed = [file for file, content in seen.files.items() if now.get(file) != content]


def _contents(actor: Actor, candidate: CertifiedAgent) -> dict[str, str]:
    """Hash the files that contain the conversation; an agent creates and removes others at each start."""
    files = Path(actor.environment["HOME"]).glob(candidate.files)
    found = {file.name: file.read_bytes() for file in files}
    return {name: sha256(content).hexdigest() for name, content in found.items() if b"REMEMBER-ALPHA" in content}


def _first_continuation(stage: Stage, actor: Actor, candidate: CertifiedAgent, log: Path, seen: Observed) -> None:
    actor.allow_until(completed("command"))


def _open_permission(stage: Stage, actor: Actor, candidate: CertifiedAgent, log: Path, seen: Observed) -> None:
    actor.until(e.PermissionRequested, within=WITHIN)


def _second_continuation(stage: Stage, actor: Actor, candidate: CertifiedAgent, log: Path, seen: Observed) -> None:
    actor.allow_until(completed("permission"))
    actor.allow_until(completed("last"))
    actor.until_status("completed", within=WITHIN)


def _text_alone(stage: Stage, actor: Actor, candidate: CertifiedAgent, log: Path, seen: Observed) -> None:
    stage.up()
    actor.begin(TITLE, SHORT_PLAN, agent=candidate.name)
    actor.allow_until(completed("text"))


def _last_continuation(stage: Stage, actor: Actor, candidate: CertifiedAgent, log: Path, seen: Observed) -> None:
    actor.allow_until(completed("command"))
    actor.until_status("completed", within=WITHIN)


Act = Callable[[Stage, Actor, CertifiedAgent, Path, Observed], None]

ACTS: tuple[Act, ...] = (
    _text_and_file,
    _long_command,
    _kill,
    _resume,
    _first_continuation,
    _open_permission,
    _kill,
    _resume,
    _second_continuation,
)


COMPACTION: tuple[Act, ...] = (_text_alone, _long_command, _kill, _resume, _last_continuation)


def _acts(candidate: CertifiedAgent, compacting: bool) -> tuple[Act, ...]:
    if compacting:
        return COMPACTION
    return ACTS if candidate.native else (*ACTS[:3], _note_files, *ACTS[3:], _compare_files)


def completed(task: str) -> Callable[[e.Event], bool]:
    return lambda event: isinstance(event, e.TaskCompleted) and event.task_id == task

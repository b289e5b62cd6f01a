"""Sessions that Segue never ran become workflows."""

import json
import os
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from segue.contextfile import facts_of_file
from segue.drivers.native import read
from segue.model import crash
from segue.model import events as e
from segue.model.errors import BadInput, NotARepository, NotASession, SessionNotFound, WorktreeInUse, WrongState
from segue.model.facts import SessionFacts
from segue.model.requests import ImportRequest
from segue.model.status import SessionStatus, Trigger, Way, WorkflowStatus
from segue.model.views import Imported
from segue.snapshot.facts import facts_of
from segue.snapshot.facts.journal import lines_of
from tests.orchestrator.theatre import Theatre, git
from tests.recordings import DIRECTORY, ClaudeFile, CodexFile
from tests.recordings.kettle import REQUEST, kettle_session

pytestmark = pytest.mark.anyio

CONVERSATION = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"


@pytest.fixture
def theatre(theatre: Theatre) -> Theatre:
    for name in ("claude", "codex"):
        theatre.commands[name] = theatre.commands["rehearsal"]
    return theatre


def settled(file: ClaudeFile | CodexFile, directory: Path | str, conversation: str = CONVERSATION) -> Any:
    """The same session, as if it had been held in this directory."""
    lines = json.loads(json.dumps(file.lines).replace(DIRECTORY, str(directory)))
    for line in lines:
        line["sessionId"] = conversation
        if line.get("type") == "session_meta":
            line["payload"]["id"] = conversation
    return replace(file, lines=lines) if isinstance(file, ClaudeFile) else _codex(lines)


def _codex(lines: list[dict[str, Any]]) -> CodexFile:
    file = CodexFile()
    file.lines = lines
    return file


def codex_session() -> CodexFile:
    """A patch, a plan, a command that takes its time, and a failing test."""
    file = CodexFile().user("Mend the whistle of the kettle.\nDo not change the lid.")
    file.calls("update_plan", "p1", plan=[{"step": "Find the whistle", "status": "in_progress"}])
    file.calls("exec_command", "c1", cmd="make slow-check")
    file.answered("c1", "Process running with session ID 7\nOutput:\nstill at it\n")
    file.calls("write_stdin", "c2", session_id=7, chars="")
    file.answered("c2", "Process exited with code 0\nOutput:\ndone\n")
    file.program("apply_patch", "a1", f"*** Begin Patch\n*** Update File: {DIRECTORY}/src/whistle.py\n+steam\n")
    file.event(type="patch_apply_end", success=True, changes={f"{DIRECTORY}/src/whistle.py": {"type": "update"}})
    file.answered("a1", "Success.")
    file.calls("exec_command", "c3", cmd="python -m pytest tests/test_whistle.py")
    file.answered("c3", "Process exited with code 1\nOutput:\nFAILED tests/test_whistle.py::test_steam\n1 failed\n")
    usage = {"input_tokens": 1000, "cached_input_tokens": 400, "output_tokens": 50}
    file.event(type="token_count", info={"last_token_usage": usage, "model_context_window": 200_000})
    return file.says("I chose brass instead of tin because it lasts. The test still fails.")


async def imported(theatre: Theatre, file: Path, **more: Any) -> Imported:
    return await theatre.orchestrator.import_session(ImportRequest(file=file, **more))


async def facts_in_journal(theatre: Theatre, view: Imported) -> SessionFacts:
    return facts_of(lines_of(await theatre.services.journal.records(view.workflow.id, limit=10_000)))


def numberless(value: Any) -> Any:
    """Facts without the numbers of their lines."""
    if isinstance(value, tuple):
        return tuple(map(numberless, value))
    if is_dataclass(value):
        shown = [
            field.name
            for field in fields(value)
            if field.name not in ("number", "superseded_by", "last", "passed_at", "solved_at", "later", "withdrawn")
        ]
        return tuple(numberless(getattr(value, name)) for name in shown)
    return value


# ── what is made ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("session", [kettle_session(), codex_session()], ids=["claude", "codex"])
async def test_the_journal_holds_the_file(on_each: Theatre, session: ClaudeFile | CodexFile, tmp_path: Path) -> None:
    file = session.write(tmp_path)
    expected = facts_of_file(file)
    found = await facts_in_journal(on_each, await imported(on_each, file, repository=on_each.repository))
    assert expected.files and expected.commands and expected.tests and expected.decisions and expected.todos
    for name in ("request", "said", "files", "commands", "tests", "errors", "todos", "decisions",
                 "sentences", "commits", "open_calls", "directory", "summary", "usage"):  # fmt: skip
        assert numberless(getattr(found, name)) == numberless(getattr(expected, name)), name


async def test_a_session_becomes_a_paused_workflow(on_each: Theatre, tmp_path: Path) -> None:
    (on_each.repository / "draft.txt").write_text("half done")
    answer = await imported(on_each, settled(kettle_session(), on_each.repository).write(tmp_path))
    view = answer.workflow
    assert (answer.status, answer.agent, answer.unread_lines, answer.clean_boundary) == (
        "imported",
        "claude",
        0,
        True,
    )
    assert (view.status, view.agent, view.here, view.runs) == (WorkflowStatus.PAUSED, "claude", True, 0)
    assert view.title == "The kettle must stop by itself when the water boils. At the moment it goes on…"
    assert (view.worktree, view.branch) == (str(on_each.repository), "main")
    assert [task.title for task in view.tasks] == [f"Go on with: {view.title}"]
    [created] = await on_each.events(view.id, e.WorkflowCreated)
    assert created.issue.description == REQUEST
    [session] = await on_each.orchestrator.sessions(view.id)
    assert (session.status, session.token) == (SessionStatus.SUSPENDED, CONVERSATION)
    assert session.usage.turns == 2 and session.usage.tool_calls == 18
    [snapshot] = await on_each.services.journal.checkpoints.snapshots(view.id)
    assert (snapshot.trigger, snapshot.reason) == (Trigger.PAUSE, "imported from claude.jsonl")
    assert snapshot.clean_boundary and snapshot.can_resume
    assert snapshot.git is not None and [change.path for change in snapshot.git.changes] == ["draft.txt"]
    assert snapshot.commit and git(on_each.repository, "show", f"{snapshot.commit}:draft.txt") == "half done"
    assert (await on_each.orchestrator.verify(view.id)).verified


async def test_a_session_that_ends_in_a_call_says_so(opened: Theatre, tmp_path: Path) -> None:
    file = settled(ClaudeFile().user("Boil.").calls("Bash", "b1", command="make boil"), opened.repository)
    answer = await imported(opened, file.write(tmp_path))
    [snapshot] = await opened.services.journal.checkpoints.snapshots(answer.workflow.id)
    assert (answer.clean_boundary, answer.open_calls) == (False, ("Bash: make boil",))
    assert not snapshot.clean_boundary
    assert [(call.call_id, call.title) for call in snapshot.open_calls] == [("b1", "Bash: make boil")]


@pytest.mark.parametrize("end", [b'{"type": "assistant", "mess', b"\0" * 4096])
async def test_a_torn_last_line_costs_itself_only(opened: Theatre, tmp_path: Path, end: bytes) -> None:
    file = settled(kettle_session(), opened.repository).write(tmp_path)
    whole = len(list(read(file).lines))
    file.write_bytes(file.read_bytes() + b'{"type": "gossip"}\n' + end)
    answer = await imported(opened, file)
    assert (answer.lines, answer.unread_lines) == (whole, 2)
    # Something was being written when it stopped.
    assert not answer.clean_boundary


async def test_secrets_in_a_file_do_not_reach_the_disk(theatre: Theatre, tmp_path: Path) -> None:
    secret = "ghp_" + "k" * 36
    file = settled(ClaudeFile().user(f"Use {secret} to log in.").says(f"I use {secret}."), theatre.repository)
    async with theatre.open():
        await imported(theatre, file.write(tmp_path))
    for database in tmp_path.glob("segue.db*"):
        assert secret.encode() not in database.read_bytes()


async def test_a_title_cannot_hold_what_no_database_takes(on_each: Theatre, tmp_path: Path) -> None:
    file = settled(ClaudeFile().user("# Boil\0 it\ud800\nnow").says("Yes."), on_each.repository)
    view = (await imported(on_each, file.write(tmp_path))).workflow
    assert view.title == "Boil it?"


# ── once and wholly ─────────────────────────────────────────────────────────────────────────────────


async def test_the_same_content_is_imported_once(on_each: Theatre, tmp_path: Path) -> None:
    file = settled(kettle_session(), on_each.repository).write(tmp_path)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(file.read_bytes())
    first = await imported(on_each, file)
    again = await imported(on_each, copy)
    assert (again.status, again.workflow.id) == ("already_imported", first.workflow.id)
    assert len(await on_each.orchestrator.workflows(None, [])) == 1


async def test_two_imports_at_once_make_one_workflow(theatre: Theatre, database_url: str, tmp_path: Path) -> None:
    theatre.database_url = database_url
    file = settled(kettle_session(), theatre.repository).write(tmp_path)
    answers: list[Imported] = []

    async def one() -> None:
        answers.append(await imported(theatre, file))

    async with theatre.open():
        async with anyio.create_task_group() as both:
            both.start_soon(one)
            both.start_soon(one)
        assert sorted(answer.status for answer in answers) == ["already_imported", "imported"]
        assert len({answer.workflow.id for answer in answers}) == 1


async def test_an_import_that_breaks_off_leaves_nothing(on_each: Theatre, tmp_path: Path) -> None:
    file = settled(kettle_session(), on_each.repository).write(tmp_path)
    passes = 0

    def pull(name: str) -> None:
        nonlocal passes
        passes += name == "journal.append"
        if passes == 5:
            raise WrongState("The plug was pulled.")

    crash.arm(pull)
    try:
        with pytest.raises(WrongState, match="plug"):
            await imported(on_each, file)
    finally:
        crash.arm(None)
    assert await on_each.orchestrator.workflows(None, []) == []
    assert (await imported(on_each, file)).status == "imported"


async def test_others_go_on_writing_during_a_long_import(on_each: Theatre, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", str(on_each.repository), str(other))
    small = (await imported(on_each, settled(kettle_session(), other, "small").write(tmp_path))).workflow
    long = settled(kettle_session(rounds=1000), on_each.repository).write(tmp_path)
    over, written = anyio.Event(), 0

    async def others() -> None:
        nonlocal written
        while not over.is_set():
            await on_each.services.journal.append(small.id, e.Warned(code="x", message="still here"))
            written += 1

    async with anyio.create_task_group() as both:
        both.start_soon(others)
        view = (await imported(on_each, long)).workflow
        over.set()
    assert written == len(await on_each.events(small.id, e.Warned)) > 0
    for workflow in (small, view):
        assert (await on_each.orchestrator.verify(workflow.id)).verified


async def test_a_file_that_has_grown_adds_what_is_new(on_each: Theatre, tmp_path: Path) -> None:
    session = kettle_session()
    file = settled(session, on_each.repository).write(tmp_path)
    # RunStopped, as a file is while its agent writes.
    whole = settled(session.user("Now the lid."), on_each.repository).write(tmp_path).read_bytes()
    file.write_bytes(whole[:-20])
    first = await imported(on_each, file)
    settled(session.says("The lid is done."), on_each.repository).write(tmp_path)
    grown = await imported(on_each, file)
    assert (grown.status, grown.workflow.id) == ("extended", first.workflow.id)
    assert numberless((await facts_in_journal(on_each, grown)).said) == numberless(facts_of_file(file).said)
    assert [event.text for event in await on_each.events(grown.workflow.id, e.UserSpoke)].count("Now the lid.") == 1
    newest, oldest = await on_each.services.journal.checkpoints.snapshots(grown.workflow.id)
    assert (oldest.clean_boundary, newest.clean_boundary) == (False, True)
    assert newest.usage.turns == 3 and newest.tasks[0].title == first.workflow.tasks[0].title
    assert (await imported(on_each, file)).status == "already_imported"


async def test_a_grown_file_from_below_the_checkout_is_recognised(opened: Theatre, tmp_path: Path) -> None:
    below = opened.repository / "lid"
    below.mkdir()
    session = kettle_session()
    first = await imported(opened, settled(session, below).write(tmp_path))
    grown = await imported(opened, settled(session.user("Now the lid."), below).write(tmp_path))
    assert (grown.status, grown.workflow.id) == ("extended", first.workflow.id)


async def test_a_file_that_was_rewritten_is_refused(opened: Theatre, tmp_path: Path) -> None:
    await imported(opened, settled(kettle_session(), opened.repository).write(tmp_path))
    other = settled(ClaudeFile().user("Something else."), opened.repository).write(tmp_path)
    with pytest.raises(WrongState, match="does not begin with what was imported"):
        await imported(opened, other)


# ── where it goes on ────────────────────────────────────────────────────────────────────────────────


async def test_a_checkout_that_has_a_workflow_takes_no_other(opened: Theatre, tmp_path: Path) -> None:
    first = await imported(opened, settled(kettle_session(), opened.repository).write(tmp_path))
    other = settled(ClaudeFile().user("Tea!").says("Now."), opened.repository, "another").write(tmp_path)
    with pytest.raises(WorktreeInUse, match=rf"Workflow {first.workflow.slug} \(paused\)"):
        await imported(opened, other)
    await opened.cancel(first.workflow.id)
    assert (await imported(opened, other)).status == "imported"


async def test_a_session_from_elsewhere_needs_a_repository(opened: Theatre, tmp_path: Path) -> None:
    file = kettle_session().write(tmp_path)
    with pytest.raises(NotARepository, match=f"worked in {DIRECTORY}"):
        await imported(opened, file)
    view = (await imported(opened, file, repository=opened.repository)).workflow
    assert view.worktree == str(opened.repository)


async def test_an_agent_that_worked_below_the_checkout_is_told_the_history(opened: Theatre, tmp_path: Path) -> None:
    below = opened.repository / "lid"
    below.mkdir()
    view = (await imported(opened, settled(kettle_session(), below).write(tmp_path))).workflow
    assert view.worktree == str(opened.repository)
    [session] = await opened.orchestrator.sessions(view.id)
    assert session.token is None
    assert session.way_back is not None and session.way_back.way is not Way.NATIVE


async def test_the_newest_session_of_an_agent_is_found(opened: Theatre, tmp_path: Path) -> None:
    rollouts = tmp_path / "codex" / "sessions" / "2026" / "01" / "02"
    rollouts.mkdir(parents=True)
    for number, directory in enumerate([opened.repository, opened.repository, "/elsewhere"]):
        file = settled(CodexFile().user(f"Request {number}").says("Yes."), directory).write(tmp_path)
        os.utime(file.rename(rollouts / f"rollout-{number}.jsonl"), (number, number))
    request = ImportRequest(
        agent="codex", repository=opened.repository, environment={"CODEX_HOME": str(tmp_path / "codex")}
    )
    assert (await opened.orchestrator.import_session(request)).workflow.title == "Request 1"
    with pytest.raises(SessionNotFound) as refusal:
        await opened.orchestrator.import_session(replace(request, agent="claude", environment={"HOME": str(tmp_path)}))
    assert str(tmp_path / ".claude" / "projects") in refusal.value.hint
    with pytest.raises(BadInput):
        await opened.orchestrator.import_session(replace(request, agent="copilot"))


# ── files that are no sessions, and files that must stay as they are ────────────────────────────────


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "does not exist"),
        (b"", "it is empty"),
        (b"\x00\xff\x01" * 500, "JSON lines"),
        (b'{"type": "gossip"}\n', "not a session file"),
        (b'{"type": "session_meta", "payload": {"cwd": "/"}}\n', "no conversation yet"),
    ],
)
async def test_files_without_session_are_refused(
    opened: Theatre, tmp_path: Path, content: bytes | None, why: str
) -> None:
    file = tmp_path / "x.jsonl"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(NotASession, match=why):
        await imported(opened, file)


async def test_what_cannot_be_a_session_is_refused_unread(opened: Theatre, tmp_path: Path) -> None:
    huge = tmp_path / "huge.jsonl"
    with huge.open("wb") as stream:
        stream.truncate(300 * 1024 * 1024 + 1)
    refused = {tmp_path: "is not a file", tmp_path / ("x" * 300): "cannot be read", huge: "too large"}
    for file, why in refused.items():
        with pytest.raises(NotASession, match=why):
            await imported(opened, file)


async def test_the_file_stays_as_it_is(theatre: Theatre, tmp_path: Path) -> None:
    file = settled(kettle_session(), theatre.repository).write(tmp_path)
    os.utime(file, ns=(10**18, 10**18))
    file.chmod(0o400)
    before = file.read_bytes()
    async with theatre.open():
        await imported(theatre, file)
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (before, 10**18)


def test_what_an_agent_adds_meanwhile_is_left_for_another_time(tmp_path: Path) -> None:
    file = kettle_session().write(tmp_path)
    whole = read(file)
    lines = list(whole.lines)
    recording = read(file)
    next(recording.lines)
    with file.open("ab") as agent:
        agent.write(b'{"type": "user", "message": {"content": "And another thing."}}\n' * 100)
    assert (len(list(recording.lines)) + 1, recording.tally.sha256) == (len(lines), whole.tally.sha256)


# ── going on ────────────────────────────────────────────────────────────────────────────────────────

SCRIPT = """
turns:
  - match: Remember
    do: [{say: Noted.}]
  - match: Go on with
    do: [{say: It boils.}]
"""


async def held_by_the_agent(theatre: Theatre) -> str:
    """A conversation that the agent keeps, and no open workflow has."""
    held = await theatre.begin(SCRIPT, plan=None, title="Remember the kettle", here=True)
    await theatre.until(held.id, "completed")
    [session] = await theatre.orchestrator.sessions(held.id)
    assert session.token is not None
    return session.token


async def test_an_imported_conversation_goes_on_natively(opened: Theatre, tmp_path: Path) -> None:
    token = await held_by_the_agent(opened)
    file = settled(ClaudeFile().user("Boil.").says("Hot."), opened.repository, token).write(tmp_path)
    view = (await imported(opened, file)).workflow
    resumed = await opened.resume(view.id)
    assert (resumed.way, resumed.session_number, resumed.run) == (Way.NATIVE, 1, 1)
    done = await opened.until(view.id, "completed")
    assert (done.sessions, done.tasks_done) == (1, 1)
    assert "Go on with: Boil." in opened.diary("prompt")[-1]["text"]


async def test_an_imported_workflow_that_went_on_takes_no_more_lines(opened: Theatre, tmp_path: Path) -> None:
    session = ClaudeFile().user("Boil.").says("Hot.")
    token = await held_by_the_agent(opened)
    file = settled(session, opened.repository, token).write(tmp_path)
    view = (await imported(opened, file)).workflow
    said = await opened.prompt(view.id, "Remember the lid.")
    assert (said.status, said.way) == ("sent", Way.NATIVE)
    settled(session.user("More."), opened.repository, token).write(tmp_path)
    with pytest.raises(WrongState, match=f"workflow {view.slug}, which has gone on"):
        await imported(opened, file)
    assert len(await opened.events(view.id, e.SessionImported)) == 1


async def test_a_conversation_that_segue_holds_itself_is_not_imported(opened: Theatre, tmp_path: Path) -> None:
    await opened.begin(SCRIPT, title="Remember the kettle", here=True)
    token = (await opened.event("remember-the-kettle", e.TokenCaptured)).event.token
    file = settled(ClaudeFile().user("Boil.").says("Hot."), opened.repository, token).write(tmp_path)
    with pytest.raises(WrongState, match="which Segue runs itself"):
        await imported(opened, file)
    await opened.cancel("remember-the-kettle")


async def test_another_conversation_is_told_what_was_said(opened: Theatre, tmp_path: Path) -> None:
    file = kettle_session().write(tmp_path)
    opened.script.write_text(SCRIPT)
    view = (await imported(opened, file, repository=opened.repository)).workflow
    resumed = await opened.resume(view.id, way=Way.HISTORY)
    assert (resumed.way, resumed.session_number) == (Way.HISTORY, 2)
    await opened.until(view.id, "completed")
    prompt = opened.diary("prompt")[-1]["text"]
    assert "Do not poll the sensor in the main loop" in prompt and "onBoilInterrupt" in prompt

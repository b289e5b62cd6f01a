"""What becomes of a workflow: the real orchestrator, the real agent process, real git."""

from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from segue.model import events as e
from segue.model.agents import Choices, Review, Verify
from segue.model.errors import (
    AgentMissing,
    BadInput,
    BadPlan,
    EmptyRepository,
    NotARepository,
    NothingToAnswer,
    UnknownAgent,
    WorktreeInUse,
    WrongState,
)
from segue.model.requests import Answer, ApproveRequest, RejectRequest
from segue.model.status import SessionStatus, Way
from segue.workspace.processes import marked
from tests.orchestrator.races import failing
from tests.orchestrator.theatre import Theatre, git

pytestmark = pytest.mark.anyio

SIMPLE = """
turns:
  - match: Do A
    do: [{write: {path: a.txt, content: "A"}}, {usage: {used: 5000, size: 100000}}]
  - match: Do B
    do: [{write: {path: b.txt, content: "B"}}, {say: Done.}]
"""

HELD = """
turns:
  - match: Do A
    do: [{write: {path: a.txt, content: "A"}}, {wait_for: go}]
  - match: Do B
    do: [{write: {path: b.txt, content: "B"}}]
"""


def worktree_of(theatre: Theatre, slug: str = "build-it") -> Path:
    return theatre.root / "worktrees" / slug


async def test_a_workflow_runs_through_its_plan_in_a_worktree_of_its_own(opened: Theatre) -> None:
    await opened.begin(SIMPLE)
    view = await opened.until("build-it", "completed")
    assert (view.tasks_done, view.sessions, view.runs) == (2, 1, 1)
    assert view.context is not None and view.context.utilization == 0.05
    assert view.branch == "segue/build-it"
    worktree = worktree_of(opened)
    assert (worktree / "a.txt").read_text() + (worktree / "b.txt").read_text() == "AB"
    assert not (opened.repository / "a.txt").exists()
    assert view.merge_hint is not None and "merge segue/build-it" in view.merge_hint


async def test_the_merge_hint_works_as_it_stands(opened: Theatre) -> None:
    git(opened.repository, "config", "user.name", "test")
    git(opened.repository, "config", "user.email", "test@localhost")
    await opened.begin(SIMPLE)
    view = await opened.until("build-it", "completed")
    assert view.merge_hint is not None
    await anyio.run_process(["sh", "-c", view.merge_hint])
    assert (opened.repository / "b.txt").read_text() == "B"


async def test_a_title_cannot_move_the_cursor_of_whoever_is_shown_how_to_merge(opened: Theatre) -> None:
    await opened.begin("turns: []", plan=None, title="Say\x1b[2J\x07\nhello")
    view = await opened.until("say-2j-hello", "completed")
    assert view.merge_hint is not None and "commit -m 'Say [2J hello'; " in view.merge_hint


async def test_without_a_plan_the_issue_is_the_prompt(opened: Theatre) -> None:
    await opened.begin("turns: []", plan=None, title="Say hello")
    await opened.until("say-hello", "completed")
    assert "Say hello" in opened.diary("prompt")[0]["text"]


# ── pausing ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_pause_waits_for_the_task_boundary_and_resume_goes_on_with_the_next_task(opened: Theatre) -> None:
    await opened.begin_until(e.ToolFinished, HELD)
    asked = await opened.pause("build-it", "lunch")
    assert (asked.status, asked.snapshot_id) == ("pause_requested", None)
    (worktree_of(opened) / "go").touch()
    paused = await opened.pause("build-it", "again", wait=True)
    view = await opened.until("build-it", "paused")
    assert (paused.status, paused.snapshot_id) == ("paused", view.last_snapshot)
    assert view.tasks_done == 1
    snapshot = (await opened.orchestrator.snapshots("build-it"))[0].checkpoint
    assert (snapshot.trigger, snapshot.reason, snapshot.clean_boundary) == ("pause", "lunch", True)
    assert (snapshot.tasks_completed, snapshot.next_task) == (1, "b")
    resumed = await opened.resume("build-it")
    assert (resumed.way, resumed.run, resumed.tasks_remaining) == (Way.NATIVE, 2, 1)
    view = await opened.until("build-it", "completed")
    assert (view.sessions, view.runs) == (1, 2)
    assert [entry["prompts"] for entry in opened.diary("resumed")] == [1]


async def test_pausing_twice_gives_the_same_snapshot(opened: Theatre) -> None:
    await opened.begin_until(e.ToolFinished, HELD)
    await opened.pause("build-it")
    (worktree_of(opened) / "go").touch()
    assert await opened.pause("build-it", wait=True) == (await opened.pause("build-it", wait=True))
    assert len(await opened.orchestrator.snapshots("build-it")) == 1


async def test_a_pause_is_forced_when_the_task_does_not_end(theatre: Theatre) -> None:
    async with theatre.open(pause_force_after=300.0):
        await theatre.begin_until(e.ToolFinished, HELD)
        await theatre.pause("build-it")
        await theatre.clock.advance(299)
        assert (await theatre.orchestrator.workflow("build-it")).status == "in_progress"
        await theatre.clock.advance(2)
        assert (await theatre.until("build-it", "paused")).tasks_done == 0
        assert [w.code for w in await theatre.events("build-it", e.Warned)] == ["pause_forced"]
        snapshot = (await theatre.orchestrator.snapshots("build-it"))[0].checkpoint
        assert (snapshot.trigger, snapshot.clean_boundary, snapshot.current_task) == ("pause", False, "a")
        (worktree_of(theatre) / "go").touch()
        await theatre.resume_until("build-it", "completed")
    prompt = theatre.diary("prompt")[1]["text"]
    assert "interrupted in the middle" in prompt


async def test_a_deaf_agent_is_paused_by_force_all_the_same(opened: Theatre) -> None:
    deaf = "turns: [{match: Do A, do: [{touch: started}, {hang: true, deaf: true}]}]"
    view = await opened.begin_until(e.ToolFinished, deaf)
    await opened.pause("build-it")
    await opened.clock.advance(301)
    await opened.event("build-it", e.Warned)
    view = await opened.as_time_goes_by("build-it", "paused")
    (started,) = await opened.events(view.id, e.RunStarted)
    assert marked(started.attempt) == []


# ── permissions ─────────────────────────────────────────────────────────────────────────────────────

ASKING = """
turns:
  - match: Do A
    do:
      - ask: {title: "Delete it?", then: [{write: {path: yes.txt, content: ""}}], otherwise: [{say: "Then not."}]}
"""


@pytest.mark.parametrize(
    ("request_of", "status", "file"), [(ApproveRequest, "approved", True), (RejectRequest, "rejected", False)]
)
async def test_the_users_answer_reaches_the_agent(
    opened: Theatre, request_of: type[Answer], status: str, file: bool
) -> None:
    await opened.begin(ASKING, permissions="ask")
    asked = await opened.event("build-it", e.PermissionRequested)
    await opened.event("build-it", e.SessionMoved, after=asked.seq)
    view = await opened.orchestrator.workflow("build-it")
    assert view.question is not None and view.question.title == "Delete it?"
    assert view.status == "in_progress"
    assert (await opened.orchestrator.answer("build-it", request_of())).status == status
    await opened.until("build-it", "completed")
    with pytest.raises(NothingToAnswer):
        await opened.orchestrator.answer("build-it", request_of())
    assert (worktree_of(opened) / "yes.txt").exists() is file


async def test_an_unanswered_permission_is_denied_after_its_time(theatre: Theatre) -> None:
    async with theatre.open(permission_timeout=600.0, sweep_interval=60.0):
        await theatre.begin_until(e.PermissionRequested, ASKING, permissions="ask")
        await theatre.clock.advance(600)
        await theatre.as_time_goes_by("build-it", "completed")
        answered = await theatre.event("build-it", e.PermissionAnswered)
        assert (answered.event.outcome, answered.event.by) == ("denied", "timeout")
        asked = await theatre.event("build-it", e.PermissionRequested)
        assert (answered.at - asked.at).total_seconds() >= 600
    assert not (worktree_of(theatre) / "yes.txt").exists()


async def test_an_unanswerable_question_stops_no_sweep(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    async with theatre.open(permission_timeout=600.0, sweep_interval=36000.0):
        await theatre.begin_until(e.PermissionRequested, ASKING, permissions="ask")
        theatre.agent_home = theatre.root / "another-agent"
        await theatre.begin(ASKING, permissions="ask", title="Another")
        await theatre.event("another", e.PermissionRequested)
        broken = await theatre.orchestrator.workflow("build-it")

        failing(monkeypatch, "refuse question", RuntimeError("a mistake"), when=lambda _, id, *words: id == broken.id)
        await theatre.clock.advance(700)
        await theatre.sweep()
        await theatre.until("another", "completed")
        assert (await theatre.orchestrator.workflow("build-it")).question is not None


@pytest.mark.parametrize(
    ("permissions", "step", "outcome"),
    [
        ("all", "run: touch done", "allowed"),
        ("edits", "write: {path: done, content: x}", "allowed"),
        ("read-only", "write: {path: done, content: x}", "denied"),
        ("read-only", "run: touch done", "denied"),
    ],
)
async def test_the_chosen_policy_answers(opened: Theatre, permissions: str, step: str, outcome: str) -> None:
    script = f"turns: [{{match: Do A, do: [{{{step}, ask: true}}]}}]"
    await opened.begin(script, permissions=permissions)
    await opened.until("build-it", "completed")
    answers = await opened.events("build-it", e.PermissionAnswered)
    assert [(a.outcome, a.by) for a in answers] == [(outcome, "policy")]
    assert (worktree_of(opened) / "done").exists() is (outcome == "allowed")


# ── what goes wrong ─────────────────────────────────────────────────────────────────────────────────


async def test_a_crashed_agent_leaves_a_workflow_that_can_be_resumed(opened: Theatre) -> None:
    crashing = """
    turns:
      - match: Do A
        do: [{crash: {when: after, of: {write: {path: a.txt, content: A}}}, once: true}, {say: Done.}]
    """
    await opened.begin(crashing)
    view = await opened.until("build-it", "paused")
    assert view.session is not None and view.session.status is SessionStatus.SUSPENDED
    snapshot = (await opened.orchestrator.snapshots("build-it"))[0].checkpoint
    assert (snapshot.trigger, snapshot.clean_boundary, snapshot.current_task) == ("crash", False, "a")
    await opened.resume_until("build-it", "completed")
    assert "Do A" in opened.diary("prompt")[1]["text"]


async def test_a_full_window_pauses_with_that_trigger(opened: Theatre) -> None:
    full = "turns: [{match: Do A, do: [{say: Much., once: true}, {exceed_window: true, once: true}, {say: Done.}]}]"
    await opened.begin(full)
    await opened.until("build-it", "paused")
    assert (await opened.orchestrator.snapshots("build-it"))[0].checkpoint.trigger == "exhaustion"
    await opened.resume_until("build-it", "completed")


@pytest.mark.parametrize("refusal", ["reject: true", "other_id: true"])
async def test_a_rejected_token_is_said_kept_and_followed_by_a_child_session(opened: Theatre, refusal: str) -> None:
    await opened.begin_until(e.ToolFinished, HELD + f"on_load: {{{refusal}}}\n")
    await opened.pause("build-it")
    await opened.go_until("build-it", "paused")
    assert (await opened.resume("build-it")).way is Way.NATIVE
    view = await opened.until("build-it", "review")
    assert view.session is not None and view.session.status is SessionStatus.WAITING_FOR_INPUT
    assert view.reason
    state = await opened.services.journal.state(view.id)
    assert state.session is not None and len(state.session.refused_tokens) == 1
    again = await opened.resume("build-it")
    assert (again.way, again.session_number) == (Way.CONTEXT, 2)
    view = await opened.until("build-it", "completed")
    assert (view.sessions, view.runs) == (2, 3)
    first, second = (await theatre_prompts(opened))[:2]
    assert "# Build it" in first
    assert second.startswith("## Session Resume Context")
    assert "✓ [a] Do A" in second and "Build it" in second


async def theatre_prompts(theatre: Theatre) -> list[str]:
    return [entry["text"] for entry in theatre.diary("prompt")]


async def test_an_agent_that_exits_at_once_fails_the_workflow_with_its_own_words(opened: Theatre) -> None:
    await opened.begin("turns: []", agent="hasty")
    view = await opened.until("build-it", "failed")
    assert "out of order" in view.reason
    assert view.session is not None and view.session.status is SessionStatus.FAILED
    await opened.event("build-it", e.WorktreeDiscarded)
    assert not worktree_of(opened).exists()
    assert git(opened.repository, "branch", "--list", "segue/*") == ""
    mended = replace(opened.services.agents["rehearsal"], name="hasty")
    opened.services.agents = {**opened.services.agents, "hasty": mended}
    assert (await opened.resume("build-it")).session_number == 2
    await opened.until("build-it", "completed")


async def test_a_failed_setup_command_fails_the_workflow_with_its_output(theatre: Theatre) -> None:
    async with theatre.open(setup="echo no such compiler; exit 4"):
        await theatre.begin(SIMPLE)
        view = await theatre.until("build-it", "failed")
    assert "no such compiler" in view.reason


async def test_setup_runs_once_before_the_first_session(theatre: Theatre) -> None:
    async with theatre.open(setup="echo ready >> setup.log"):
        await theatre.begin(SIMPLE)
        await theatre.until("build-it", "completed")
    assert (worktree_of(theatre) / "setup.log").read_text() == "ready\n"


@pytest.mark.parametrize(("chosen", "left"), [("echo mine > setup.log", "mine\n"), ("", None)])
async def test_a_workflow_may_have_a_setup_of_its_own_or_none(theatre: Theatre, chosen: str, left: str | None) -> None:
    theatre.choices = Choices(setup=chosen)
    async with theatre.open(setup="echo ready > setup.log"):
        await theatre.begin(SIMPLE)
        await theatre.until("build-it", "completed")
    log = worktree_of(theatre) / "setup.log"
    assert (log.read_text() if log.exists() else None) == left


async def test_what_changed_while_the_work_stood_still_is_said(opened: Theatre) -> None:
    await opened.begin_until(e.ToolFinished, HELD)
    await opened.pause("build-it")
    await opened.go_until("build-it", "paused")
    (worktree_of(opened) / "a.txt").write_text("changed by hand")
    assert any("a.txt" in sentence for sentence in (await opened.resume("build-it")).divergence)
    await opened.until("build-it", "completed")
    assert any("a.txt" in text for text in await theatre_prompts(opened))


# ── runs that lost their way ────────────────────────────────────────────────────────────────────────


async def test_a_run_that_was_settled_over_its_head_does_not_touch_the_next_one(opened: Theatre) -> None:
    view = await opened.begin_until(e.ToolFinished, HELD)
    assert view.session is not None
    lost = opened.services.live.pop(view.id)
    assert await opened.settle(view.session.id, 1, "it hung")
    opened.services.queue.forget(view.session.id, 1)
    await opened.resume("build-it")
    (worktree_of(opened) / "go").touch()
    with anyio.fail_after(30):
        await lost.done.wait()
    view = await opened.until("build-it", "completed")
    assert view.session is not None and view.session.status is SessionStatus.COMPLETED
    assert [task.task_id for task in (await opened.events("build-it", e.TaskCompleted))] == ["a", "b"]


async def test_a_run_that_fails_before_it_begins_is_not_queued_for_ever(theatre: Theatre) -> None:
    async with theatre.open(agents_at_once=1):
        agents = theatre.services.agents
        async with theatre.services.slots.one(theatre.clock.now()):
            await theatre.begin(SIMPLE)
            theatre.services.agents = {}
        await theatre.event("build-it", e.RunEnded)
        theatre.services.agents = agents
        assert (await theatre.orchestrator.workflow("build-it")).status == "pending"
        await theatre.resume_until("build-it", "completed")


async def test_an_answer_after_a_forced_pause_finds_no_question(opened: Theatre) -> None:
    await opened.begin_until(e.PermissionRequested, ASKING, permissions="ask")
    await opened.pause("build-it")
    await opened.as_time_goes_by("build-it", "paused")
    (answer,) = await opened.events("build-it", e.PermissionAnswered)
    assert answer.outcome == "interrupted"
    with pytest.raises(NothingToAnswer):
        await opened.orchestrator.answer("build-it", ApproveRequest())


async def test_a_page_of_events_tells_where_the_journal_ends(opened: Theatre) -> None:
    await opened.begin(SIMPLE)
    await opened.until("build-it", "completed")
    last = await opened.event("build-it", e.SnapshotStudied)
    page = await opened.orchestrator.events("build-it", 0, 0, 5)
    assert (len(page.events), page.head) == (5, last.seq)


# ── cancelling ──────────────────────────────────────────────────────────────────────────────────────


async def test_cancelling_ends_the_agent_and_keeps_the_worktree(opened: Theatre) -> None:
    view = await opened.begin_until(e.ToolFinished, HELD)
    await opened.cancel("build-it", "wrong idea")
    view = await opened.until("build-it", "cancelled")
    assert view.session is not None and view.session.status is SessionStatus.CANCELLED
    (started,) = await opened.events(view.id, e.RunStarted)
    assert marked(started.attempt) == []
    with pytest.raises(WrongState, match="cancelled"):
        await opened.resume("build-it")
    assert (await opened.cancel("build-it")).status == "cancelled"
    assert (worktree_of(opened) / "a.txt").read_text() == "A"


# ── bad input leaves nothing behind ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"agent": "nobody"}, UnknownAgent),
        ({"agent": "missing"}, AgentMissing),
        ({"agent": "halved"}, AgentMissing),
        ({"choices": Choices(review=Review(agent="nobody"))}, UnknownAgent),
        ({"choices": Choices(review=Review(agent="missing"))}, AgentMissing),
        ({"choices": Choices(review=Review(agent="halved"))}, AgentMissing),
        ({"choices": Choices(fixer="halved")}, AgentMissing),
        ({"choices": Choices(fixer="nobody")}, UnknownAgent),
        ({"choices": Choices(verify=Verify(command="TOKEN=ghp_0123456789abcdefghijklmnopqrstuvwxyz make"))}, BadInput),
        ({"plan": "[{id: a, title: A, depends_on: [b]}, {id: b, title: B, depends_on: [a]}]"}, BadPlan),
    ],
)
@pytest.mark.usefixtures("halved")
async def test_unworkable_input_writes_nothing(theatre: Theatre, change: dict, error: type[Exception]) -> None:
    theatre.choices = change.pop("choices", Choices())
    async with theatre.open():
        with pytest.raises(error):
            await theatre.begin(SIMPLE, **change)
        assert await theatre.orchestrator.workflows(None, []) == []
    assert git(theatre.repository, "branch", "--list", "segue/*") == ""


async def test_a_directory_without_git_is_refused(opened: Theatre, tmp_path: Path) -> None:
    opened.repository = tmp_path / "plain"
    opened.repository.mkdir()
    with pytest.raises(NotARepository):
        await opened.begin(SIMPLE)


async def test_a_repository_without_a_commit_is_refused(opened: Theatre, tmp_path: Path) -> None:
    opened.repository = tmp_path / "empty"
    opened.repository.mkdir()
    git(opened.repository, "init", "--quiet")
    with pytest.raises(EmptyRepository):
        await opened.begin(SIMPLE)


async def test_two_workflows_here_do_not_share_the_checkout(opened: Theatre) -> None:
    await opened.begin(HELD, here=True)
    with pytest.raises(WorktreeInUse):
        await opened.begin(HELD, here=True, title="Another one")
    await opened.event("build-it", e.ToolFinished)
    (opened.repository / "go").touch()
    await opened.until("build-it", "completed")
    assert (opened.repository / "b.txt").exists()


async def test_what_is_going_on_is_shown_before_what_has_ended(opened: Theatre) -> None:
    await opened.begin(HELD)
    await opened.begin(HELD, title="Build another")
    await opened.cancel("build-another")
    assert [view.slug for view in await opened.orchestrator.recent(9)] == ["build-it", "build-another"]
    assert [view.slug for view in await opened.orchestrator.recent(1)] == ["build-it"]
    await opened.cancel("build-it")


async def test_workflows_of_one_title_that_are_started_at_once_have_names_of_their_own(theatre: Theatre) -> None:
    async with theatre.open(agents_at_once=1), anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(theatre.begin, "turns: []")
    async with theatre.open():
        slugs = {view.slug for view in await theatre.orchestrator.workflows(None, [])}
    assert slugs == {"build-it", "build-it-2", "build-it-3", "build-it-4"}


async def test_a_name_that_a_branch_has_already_is_not_used_again(opened: Theatre) -> None:
    git(opened.repository, "branch", "segue/build-it")
    assert (await opened.begin(SIMPLE)).slug == "build-it-2"
    await opened.until("build-it-2", "completed")

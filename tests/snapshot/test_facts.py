"""What is known of a session from its transcript alone."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.model import events as e
from segue.model.events import AgentMessage, TodoEntry, ToolCalled, UsageReported
from segue.model.facts import SessionFacts
from segue.model.ids import PromptId, Seq, TaskId, WorkflowId
from segue.model.transcript import FilesChanged, Line, Said, Summarised, ToolProgressed, UserSaid, WorkLocation
from segue.snapshot.facts import Collector, facts_of
from segue.snapshot.facts.commands import headline
from segue.snapshot.facts.journal import lines_of
from tests.recordings import DIRECTORY, edited, facts, ran, todo, transcript
from tests.recordings.kettle import CORRECTION, REQUEST, kettle_lines

HERE = WorkLocation(directory=DIRECTORY, branch="main")


def test_an_empty_transcript_has_no_facts() -> None:
    assert facts() == SessionFacts()


def test_the_request_is_the_first_thing_said_and_corrections_follow() -> None:
    found = facts(UserSaid(text="Build a boat."), UserSaid(text="It floats. Never use nails for the hull of it!"))
    assert found.request is not None
    assert found.request.text == "Build a boat."
    assert found.said[0].constraints == ("Never use nails for the hull of it!",)


def test_files_have_their_last_action_and_reason() -> None:
    found = facts(
        HERE,
        AgentMessage(text="Now the hull gets its keel:"),
        *edited("1", f"{DIRECTORY}/src/hull.py", "keel = Keel()"),
        *edited("2", f"{DIRECTORY}/src/mast.py", "mast = 1", failed=True),
        *ran("3", "rm src/old.py"),
        FilesChanged(changes=(("src/new.py", "created"),)),
    )
    assert [(file.path, file.action) for file in found.files] == [
        ("src/hull.py", "modified"),
        ("src/old.py", "deleted"),
        ("src/new.py", "created"),
    ]
    assert found.files[0].reason == "Now the hull gets its keel"


def test_a_file_of_the_work_is_named_from_its_root() -> None:
    found = facts(HERE, *edited("1", f"{DIRECTORY}/README.md", "# Kettle"))
    assert found.files[0].path == "README.md"


def test_a_patch_names_the_files_it_changes() -> None:
    patch = "*** Begin Patch\n*** Add File: src/a.py\n+one = 1\n*** Delete File: src/b.py\n*** End Patch"
    found = facts(*ran("1", f"apply_patch <<'EOF'\n{patch}\nEOF"))
    assert [(file.path, file.action) for file in found.files] == [("src/a.py", "created"), ("src/b.py", "deleted")]
    assert found.files[0].change == "one = 1"


def test_a_command_has_its_last_outcome_and_is_told_without_its_trimmings() -> None:
    found = facts(
        *ran("1", "cd /x && make all 2>&1 | tail -3", failed=True), *ran("2", "make all"), *ran("3", "ls -la")
    )
    assert [(each.command, each.outcome, each.times) for each in found.commands] == [("make all", "passed", 2)]


@pytest.mark.parametrize(
    ("command", "output", "failing"),
    [
        ("python -m pytest -q", "FAILED tests/test_a.py::test_b - assert 0\n1 failed", ("tests/test_a.py::test_b",)),
        ("python -m unittest", "FAIL: test_b (tests.A)\nFAILED (failures=1)", ("test_b (tests.A)",)),
        ("env CGO_ENABLED=0 go test ./...", "--- FAIL: TestB (0.00s)\nFAIL", ("TestB",)),
        ("cargo test", "test a::b ... FAILED\ntest result: FAILED. 0 passed; 1 failed", ("a::b",)),
        ("npx vitest run", "  × adds two numbers 5ms\n 1 failed", ("adds two numbers",)),
        ("make check && just test", "not ok 1 - lib/sum.t", ("lib/sum.t",)),
    ],
)
def test_runners_tell_which_tests_failed(command: str, output: str, failing: tuple[str, ...]) -> None:
    # As after a pipe: the status says that all is well, and the output that it is not.
    tests = facts(*ran("1", command, output)).tests
    assert tests is not None
    assert (tests.outcome, tests.phase, tests.failing) == ("failed", "red", failing)


def test_the_phase_goes_from_red_to_green_to_refactor() -> None:
    red = [*edited("1", "tests/test_a.py", "def test_b(): ..."), *ran("2", "pytest", "FAILED tests/test_a.py::test_b")]
    green = [*red, *edited("3", "src/a.py", "b = 1"), *ran("4", "pytest", "1 passed")]
    phases = [facts(*said).tests for said in (red, green, [*green, *edited("5", "src/a.py", "b = 2")])]
    assert [tests and tests.phase for tests in phases] == ["red", "green", "refactor"]
    assert [tests and tests.expected_failures for tests in phases] == [("tests/test_a.py::test_b",), (), ()]


def test_looking_for_a_test_is_not_running_it() -> None:
    found = facts(*ran("1", "grep -rn pytest ."), *ran("2", 'gh pr create --body "ran go test ./..."'))
    assert found.tests is None


def test_an_error_is_open_until_the_same_or_a_broader_run_goes_well() -> None:
    broken = ran("1", "go test ./hull -run TestKeel", "hull.go:3: undefined: keel\nFAIL", failed=True)
    assert [error.cleared for error in facts(*broken).errors] == [False]
    assert [error.cleared for error in facts(*broken, *ran("2", "go test ./mast", "ok")).errors] == [False]
    assert [error.cleared for error in facts(*broken, *ran("2", "go test ./...", "ok")).errors] == [True]


def test_the_error_of_a_traceback_is_its_last_line() -> None:
    output = "Traceback (most recent call last):\n  File x\nKeyError: 'keel'\n"
    assert facts(*ran("1", "python a.py", output, failed=True)).errors[0].message == "KeyError: 'keel'"


def test_tests_that_failed_already_are_known_before_the_run_ends() -> None:
    call, _ = ran("1", "go test ./...")
    found = facts(call, ToolProgressed(call_id="1", output="--- FAIL: TestKeel\n"))
    assert found.tests is not None
    assert (found.tests.failing, found.open_calls) == (("TestKeel",), ("Bash: go test ./...",))


def test_the_latest_list_of_things_to_do_counts() -> None:
    found = facts(todo(Dig_a_hole="pending"), todo(Dig_a_hole="completed", Plant_a_tree="in_progress"))
    assert found.todos == (
        TodoEntry(content="Dig a hole", status="completed"),
        TodoEntry(content="Plant a tree", status="in_progress"),
    )


def test_branches_and_commits_are_known() -> None:
    found = facts(
        HERE,
        *ran("1", "git checkout -b add-keel"),
        *ran("2", "git commit -m x", "[add-keel 1a2b3c4d] Add a keel"),
        *ran("3", 'git commit -qm "Quietly"'),
        WorkLocation(branch="HEAD"),
    )
    assert found.branches == ("main", "add-keel")
    assert [(commit.hash, commit.subject) for commit in found.commits] == [("1a2b3c4d", "Add a keel"), ("", "Quietly")]


def test_usage_adds_up_and_the_window_is_the_latest() -> None:
    used = [UsageReported(context_tokens=n, input_tokens=n, output_tokens=1, window=100) for n in (10, 20)]
    usage = facts(*used).usage
    assert (usage.context_tokens, usage.input_tokens, usage.output_tokens, usage.window) == (20, 30, 2, 100)


def test_extract_decisions_from_messages() -> None:
    quote = "I decided to glue the hull rather than nailing it."
    found = facts(UserSaid(text="Build."), AgentMessage(text=f"Hm. {quote} More later."))
    assert [(each.type, each.quote, each.by, each.number) for each in found.decisions] == [
        ("approach", quote, "agent", 2)
    ]


def test_a_decision_that_is_taken_back_is_marked() -> None:
    chosen = AgentMessage(text="I decided to use copper plates for the kettle's bottom.")
    found = facts(chosen, AgentMessage(text="I reverted the copper plates, the kettle got too heavy."))
    assert found.decisions[0].superseded_by == 2


def test_extract_errors_from_messages() -> None:
    found = facts(*ran("1", "make", "Exit code 2\nfatal: no rule to make target", failed=True))
    assert [error.message for error in found.errors] == ["fatal: no rule to make target"]


def test_handles_empty_messages() -> None:
    assert facts(UserSaid(text=""), AgentMessage(text="")).decisions == ()


def test_handles_no_decisions() -> None:
    assert facts(AgentMessage(text="The file has three lines. Let me see the rest of it.")).decisions == ()


def test_the_agents_summary_of_what_came_before_is_kept() -> None:
    assert facts(Summarised(text="We built half a boat.")).summary == "We built half a boat."


def test_links_are_told_as_what_they_lead_to() -> None:
    text = (
        f"The keel is set in [hull.py]({DIRECTORY}/src/hull.py#L12), see [the docs](https://example.com/keel) "
        "and [the notes](notes)."
    )
    found = facts(HERE, AgentMessage(text=text))
    assert found.sentences[-1].text == "The keel is set in src/hull.py:12, see the docs and the notes."


def test_a_change_that_is_cut_says_so() -> None:
    found = facts(*edited("1", "src/hull.py", "plank " * 100), *edited("2", "src/mast.py", "mast = 1"))
    assert [file.change[-7:] for file in found.files] == [" plank…", "ast = 1"]


def test_the_journal_gives_the_same_facts() -> None:
    call = e.ToolCalled(call_id="1", title="Bash", tool="execute", input={"command": ["bash", "-lc", "make test"]})
    end = e.ToolFinished(call_id="1", status="completed", output="1 passed")
    events: list[e.Event] = [
        e.WorktreeReady(path=DIRECTORY, branch="segue/boat", commit="c0ffee"),
        e.PromptQueued(prompt_id=PromptId("p"), text="Task 1 of 1: …", task_id=TaskId("1")),
        e.PromptQueued(prompt_id=PromptId("q"), text="Never use nails."),
        call,
        end,
    ]
    at = datetime(2026, 1, 2, tzinfo=UTC)
    found = facts_of(
        lines_of(
            e.Record(workflow_id=WorkflowId("w"), seq=Seq(n), at=at, session_id=None, run=None, event=event, hash="")
            for n, event in enumerate(events, start=1)
        )
    )
    assert found.request is not None
    assert found.request.text == "Never use nails."
    assert found.tests is not None
    assert (found.tests.outcome, found.tests.number, found.branches) == ("passed", 5, ("segue/boat",))


def test_the_pieces_of_a_message_are_one_message_and_two_messages_are_not_glued() -> None:
    texts = ("The hull is gl", "ued because nails rust.", "The mast is next, it needs a rope.")
    at = datetime(2026, 1, 2, tzinfo=UTC)
    records = [
        e.Record(
            workflow_id=WorkflowId("w"),
            seq=Seq(n),
            at=at,
            session_id=None,
            run=None,
            event=AgentMessage(text=text),
            hash="",
        )
        for n, text in enumerate(texts, start=1)
    ]
    told = [sentence.text for sentence in facts_of(lines_of(records)).sentences]
    assert told == ["The hull is glued because nails rust.", "The mast is next, it needs a rope."]


def test_facts_may_be_asked_for_at_any_time(tmp_path: Path) -> None:
    collector, lines = Collector(), list(kettle_lines(tmp_path))
    for line in lines:
        collector.hear(line)
        collector.facts()
    assert collector.facts() == facts_of(lines)


def test_a_made_up_session_is_understood(tmp_path: Path) -> None:
    found = facts_of(kettle_lines(tmp_path))
    assert found.request is not None
    assert found.request.text == REQUEST
    assert [ask.text for ask in found.said] == [CORRECTION]
    assert [file.path for file in found.files] == ["tests/test_boil.py", "src/boil_controller.py"]
    assert [error.cleared for error in found.errors] == [True, False]
    assert found.commits[-1].subject == "Stop at the boiling point"


@pytest.mark.parametrize(
    "output",
    [
        "\n" * 200_000,
        " ".join(f"nameNumber{n}" for n in range(60_000)),
        "FAIL " * 100_000,
        "1" * 500_000,
        '{"a":"' + "x/" * 200_000 + '"}',
    ],
    ids=["empty lines", "one line of names", "one line of failures", "digits", "slashes"],
)
def test_an_output_without_end_is_heard_to_its_end(output: str) -> None:
    """What grows with the square of the length would not come back from these."""
    endless = "go test ./... && " + "go task " * 500
    found = facts(*ran("1", endless, output), *ran("2", f"python -c '{output}'", "", failed=True))
    assert found.tests is not None


texts = st.text(max_size=200)
anything: st.SearchStrategy[Said] = st.one_of(
    st.builds(UserSaid, text=texts),
    st.builds(AgentMessage, text=texts),
    st.builds(
        ToolCalled,
        call_id=st.sampled_from("abc"),
        title=texts,
        tool=st.sampled_from(["execute", "edit", "read", "other"]),
        input=st.dictionaries(st.sampled_from(["command", "new_string", "edits", "plan"]), texts | st.lists(texts)),
        paths=st.tuples(texts),
    ),
    st.builds(e.ToolFinished, call_id=st.sampled_from("abc"), status=st.just("completed"), output=texts),
)


@given(st.lists(anything, max_size=30))
def test_no_transcript_is_too_odd(said: list[Said]) -> None:
    assert replace(facts(*said)) == facts_of(transcript(*said))


def test_an_edit_that_only_its_answer_tells_of_is_known_by_what_it_wrote() -> None:
    """Some agents announce an edit before its text is known, and a work may lie below a scratch directory."""
    path = "/tmp/work/lib/boil.py"
    told = f"--- {path}\n+++ {path}\n@@ -0,0 +1 @@\n+BOILS = 100"
    said: list[Said] = [
        WorkLocation(directory="/tmp/work"),
        ToolCalled(call_id="c", title="Write boil.py", tool="edit", input={"file_path": path}, paths=(path,)),
        e.ToolFinished(call_id="c", status="completed", output=told),
        ToolCalled(call_id="d", title="Write", tool="edit", input={}, paths=("/tmp/scratch.py",)),
        e.ToolFinished(call_id="d", status="completed"),
    ]
    found = facts_of([Line(number, each) for number, each in enumerate(said, 1)])
    assert [(file.path, file.change) for file in found.files] == [("lib/boil.py", "BOILS = 100")]


def test_a_command_that_only_looks_like_a_patch_changes_nothing() -> None:
    assert facts(*ran("c", "make boil && echo '*** all done ***'", "*** all done ***")).files == ()


def test_a_command_with_endless_spaces_is_read_in_no_time() -> None:
    assert headline(f"make{' ' * 200_000}boil | tail") == "make boil"

"""Decisions, errors and tests, as a snapshot tells them."""

from datetime import UTC, datetime, timedelta

import pytest

from segue.model.events import AgentMessage
from segue.model.facts import ReviewFact, SessionFacts
from segue.model.findings import Decision, ErrorRecord, TestState
from segue.model.ids import TaskId
from segue.model.transcript import Said, UserSaid
from segue.snapshot.findings import Calendar, decisions_of, errors_of, reviews_of, seqs_of
from segue.snapshot.findings import tests_of as where_tests_stand
from tests.recordings import facts, ran
from tests.snapshot.kept import REVIEW

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
CALENDAR = Calendar(
    times={number: NOON + timedelta(minutes=number) for number in range(1, 50)},
    default=NOON,
    starts=((2, TaskId("a")), (5, TaskId("b"))),
)
CHOICE = "I'll use a regular expression instead of a parser generator because the grammar is tiny."


def decisions(*said: Said) -> tuple[Decision, ...]:
    return decisions_of(facts(*said), CALENDAR)


def errors(*said: Said) -> tuple[ErrorRecord, ...]:
    return errors_of(facts(*said), CALENDAR)


def ran_tests(output: str, command: str = "pytest -q") -> TestState:
    found = where_tests_stand(facts(*ran("1", command, output)), CALENDAR)
    assert found is not None
    return found


def test_a_session_in_which_nothing_was_said_has_no_findings() -> None:
    empty = SessionFacts()
    assert decisions_of(empty, CALENDAR) == errors_of(empty, CALENDAR) == ()
    assert where_tests_stand(empty, CALENDAR) is None
    assert seqs_of(empty) == set()


def test_talk_without_a_choice_has_no_decisions() -> None:
    assert decisions(UserSaid(text="Hello."), AgentMessage(text="The sky is blue today.")) == ()


def test_a_decision_has_its_reason_and_what_was_not_taken() -> None:
    (found,) = decisions(UserSaid(text="Split words."), AgentMessage(text=CHOICE))
    assert (found.description, found.quote, found.by) == (CHOICE, CHOICE, "agent")
    assert (found.rationale, found.alternatives_considered) == ("the grammar is tiny", ("a parser generator",))
    assert (found.id, found.seq, found.timestamp) == ("decision-2", 2, NOON + timedelta(minutes=2))


def test_a_decision_that_gives_no_reason_has_none() -> None:
    (found,) = decisions(AgentMessage(text="I decided to go with the standard library for the parser."))
    assert (found.rationale, found.alternatives_considered) == ("", ())


def test_decisions_of_one_message_have_names_of_their_own() -> None:
    found = decisions(AgentMessage(text=f"{CHOICE} I decided to go with pytest rather than unittest for the tests."))
    assert [each.id for each in found] == ["decision-1", "decision-1-2"]


def test_a_decision_that_was_taken_back_says_where() -> None:
    back = "I reverted the regular expression grammar."
    found = decisions(UserSaid(text="Split words."), AgentMessage(text=CHOICE), AgentMessage(text=back))
    assert found[0].superseded_by == 3


def test_what_the_user_laid_down_is_a_decision_of_the_users() -> None:
    found = decisions(UserSaid(text="Split words."), UserSaid(text="Never use eval for any of this!"))
    assert [(each.by, each.decision_type) for each in found] == [("user", "clarification")]


def test_each_finding_belongs_to_the_task_that_was_being_worked_on() -> None:
    said = [AgentMessage(text=f"I'll use module{n} instead of package{n} because it is there.") for n in range(1, 7)]
    assert [each.task_id for each in decisions(*said)] == [None, "a", "a", "a", "b", "b"]
    assert Calendar(times={}, default=NOON).task(7) is None
    assert Calendar(times={}, default=NOON).at(7) == NOON


def test_an_error_is_unresolved_until_the_same_command_goes_well() -> None:
    broken = ran("1", "python build.py", "Traceback (most recent call last):\nImportError: no module named words", True)
    (before,) = errors(*broken)
    assert (before.error_type, before.resolution, before.resolution_notes) == ("ImportError", "unresolved", "")
    assert (before.error_message, before.context) == ("ImportError: no module named words", "python build.py")
    (after,) = errors(*broken, *ran("2", "python build.py"))
    assert (after.resolution, after.resolution_notes) == ("fixed", "a later run went well (#4)")


def test_an_error_without_a_name_is_a_command_that_failed() -> None:
    (found,) = errors(*ran("1", "make all", "make: *** No such target 'all'.  Stop, this failed.", failed=True))
    assert found.error_type == "command failed"


def test_a_command_that_only_looked_around_makes_no_error() -> None:
    assert errors(*ran("1", "ls nowhere", "ls: cannot access 'nowhere': No such file or directory", failed=True)) == ()


def test_the_rules_around_an_error_are_not_the_error() -> None:
    output = f"{'=' * 20} ERRORS {'=' * 20}\n{'_' * 9} ERROR collecting a.py {'_' * 9}\nE   ImportError: no words here"
    (found,) = errors(*ran("1", "python -m pytest -q", output, failed=True))
    assert found.error_message == "E   ImportError: no words here"


@pytest.mark.parametrize(
    ("command", "output", "counts"),
    [
        ("pytest -q", "1 failed, 2 passed, 3 skipped in 0.10s", (2, 1, 3)),
        ("pytest -q", "===== 5 passed, 1 xfailed in 0.10s =====", (5, 0, None)),
        ("pytest -q", "2 passed, 1 error in 0.10s", (2, 1, None)),
        ("npx jest", "Tests:       1 failed, 1 skipped, 1 todo, 4 passed, 7 total", (4, 1, 2)),
        ("npx mocha", "  7 passing (12ms)\n  1 pending", (7, 0, None)),
        ("cargo test", "test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured", (3, 1, 2)),
        ("go test ./...", "ok  \texample.com/words\t0.004s", (None, None, None)),
        ("python -m unittest", "Ran 5 tests in 0.001s\n\nOK", (None, None, None)),
    ],
)
def test_counts_are_the_runners(command: str, output: str, counts: tuple[int | None, int | None, int | None]) -> None:
    found = ran_tests(output, command)
    assert (found.passing, found.failing, found.pending) == counts


def test_tests_tell_their_command_their_time_and_what_fails() -> None:
    found = ran_tests("FAILED tests/test_a.py::test_b - assert 0\n1 failed in 0.10s")
    assert (found.phase, found.failing_tests) == ("red", ("tests/test_a.py::test_b",))
    assert (found.last_test_command, found.last_test_output_summary) == ("pytest -q", "1 failed in 0.10s")
    assert (found.seq, found.last_test_run_at) == (2, NOON + timedelta(minutes=2))


def test_tests_that_pass_again_have_none_that_fails() -> None:
    red = ran("1", "pytest -q", "FAILED tests/test_a.py::test_b - assert 0\n1 failed in 0.10s")
    found = where_tests_stand(facts(*red, *ran("2", "pytest -q", "1 passed in 0.10s")), CALENDAR)
    assert found is not None
    assert (found.phase, found.failing_tests, found.passing) == ("green", (), 1)


def test_the_times_of_all_findings_are_asked_for_together() -> None:
    found = facts(
        AgentMessage(text=CHOICE),
        *ran("1", "pytest -q", "1 passed"),
        *ran("2", "make all", "error: it failed", failed=True),
    )
    assert seqs_of(found) == {1, 3, 5}


def test_reviews_are_told_to_the_successor() -> None:
    assert list(reviews_of([REVIEW])) == [
        ReviewFact(
            reviewer="Security", severity="high", approved=False, comments=("Check the length.",), addressed=False
        )
    ]

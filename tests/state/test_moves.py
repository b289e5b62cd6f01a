import pytest

from segue.model.errors import IllegalMove
from segue.model.status import SessionStatus, WorkflowStatus
from segue.state.moves import (
    SESSION_ENDED,
    SESSION_MOVES,
    WORKFLOW_ENDED,
    WORKFLOW_MOVES,
    check_session_move,
    check_workflow_move,
)


def reachable(moves: dict, start: object) -> set[object]:
    found, ahead = {start}, [start]
    while ahead:
        for state in moves[ahead.pop()] - found:
            found.add(state)
            ahead.append(state)
    return found


@pytest.mark.parametrize(("kind", "moves"), [(WorkflowStatus, WORKFLOW_MOVES), (SessionStatus, SESSION_MOVES)])
def test_every_status_has_a_row_in_its_table(kind: type, moves: dict) -> None:
    assert set(moves) == set(kind)


@pytest.mark.parametrize(
    ("moves", "start", "ends"),
    [
        (WORKFLOW_MOVES, WorkflowStatus.PENDING, WORKFLOW_ENDED),
        (SESSION_MOVES, SessionStatus.CREATED, SESSION_ENDED),
    ],
)
def test_every_status_can_be_reached_and_left_unless_it_is_an_end(moves: dict, start: object, ends: frozenset) -> None:
    assert reachable(moves, start) == set(moves)
    for state in moves:
        assert reachable(moves, state) & ends


@pytest.mark.parametrize(
    ("before", "after"),
    [("completed", "in_progress"), ("cancelled", "paused"), ("pending", "completed"), ("pending", "review")],
)
def test_a_workflow_move_that_is_not_in_the_table_is_refused_by_name(before: str, after: str) -> None:
    with pytest.raises(IllegalMove, match=f"{before} to {after}"):
        check_workflow_move(WorkflowStatus(before), WorkflowStatus(after))


@pytest.mark.parametrize(
    ("before", "after"),
    [("completed", "starting"), ("suspended", "running"), ("created", "running"), ("terminated", "starting")],
)
def test_a_session_move_that_is_not_in_the_table_is_refused_by_name(before: str, after: str) -> None:
    with pytest.raises(IllegalMove, match=f"{before} to {after}"):
        check_session_move(SessionStatus(before), SessionStatus(after))


@pytest.mark.parametrize(
    ("before", "after"),
    [("paused", "blocked"), ("blocked", "paused"), ("failed", "in_progress"), ("review", "completed")],
)
def test_the_transitions_missing_in_the_seeds_are_legal(before: str, after: str) -> None:
    check_workflow_move(WorkflowStatus(before), WorkflowStatus(after))

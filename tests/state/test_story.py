"""Valid history after any number of rewinds."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from segue.model.events import Stretch
from segue.model.ids import Seq
from segue.state.story import Rewind, story

WORK, BACK = "work", "back"
steps = st.lists(st.tuples(st.sampled_from([WORK, WORK, BACK]), st.integers(min_value=0)), max_size=40)
"""Something happens, or the work is taken back to where it stood after some earlier event."""


def played(moves: list[tuple[str, int]]) -> tuple[list[Rewind], list[list[int]]]:
    """The goings back, and what was known after each event, kept as copies: the slow and obvious way."""
    known: list[list[int]] = [[], [1]]
    rewinds: list[Rewind] = []
    for kind, choice in moves:
        seq = len(known)
        after = seq - 1 if kind == WORK else choice % seq
        if kind == BACK:
            rewinds.append(Rewind(Seq(seq), Seq(after)))
        known.append([*known[after], seq])
    return rewinds, known


def events_of(stretches: tuple[Stretch, ...]) -> list[int]:
    return [seq for stretch in stretches for seq in range(stretch.after + 1, stretch.until + 1)]


@given(steps)
def test_the_story_equals_a_model_that_copies_the_history_at_each_step(moves: list[tuple[str, int]]) -> None:
    rewinds, known = played(moves)
    assert [events_of(story(rewinds, Seq(until))) for until in range(len(known))] == known


@given(steps)
def test_the_story_goes_forward_only(moves: list[tuple[str, int]]) -> None:
    rewinds, known = played(moves)
    told = events_of(story(rewinds, Seq(len(known) - 1)))
    assert all(before < after for before, after in pairwise(told))


@given(steps, st.integers(min_value=0))
def test_undoing_a_rewind_restores_exactly_the_earlier_story(moves: list[tuple[str, int]], choice: int) -> None:
    rewinds, known = played(moves)
    now = len(known) - 1
    back = Rewind(Seq(now + 1), Seq(choice % (now + 1)))
    undone = Rewind(Seq(now + 2), Seq(now))
    told = events_of(story([*rewinds, back, undone], Seq(now + 2)))
    assert told == [*events_of(story(rewinds, Seq(now))), now + 2]


def test_a_story_without_a_rewind_is_the_whole_journal() -> None:
    assert story([], Seq(7)) == (Stretch(Seq(0), Seq(7)),)


def test_events_between_the_target_and_the_rewind_are_left_out() -> None:
    assert story([Rewind(Seq(5), Seq(2))], Seq(7)) == (Stretch(Seq(0), Seq(2)), Stretch(Seq(4), Seq(7)))

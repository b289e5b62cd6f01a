"""The order of answers, and what a score means."""

import pytest

from benchmarks.recall_plugin import build
from segue.journal.search import SHELF, Occurrences
from segue.memory.ranking import Ranked, rank
from segue.memory.terms import LONGEST, likeness, names, query_terms

FIRST = 7 * SHELF + 10


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    found = {"rare": Occurrences(1, {FIRST: 0.5}), "common": Occurrences(80, {FIRST + 50: 0.5})}
    best = rank(found, {"rare", "common"}, total=100, limit=10)
    assert best[0].id == FIRST


def test_the_score_is_the_share_of_the_words_that_stand_here_or_beside_it() -> None:
    found = {"here": Occurrences(3, {FIRST: 1.0}), "beside": Occurrences(3, {FIRST + 1: 1.0})}
    scores = {each.id: round(each.score, 3) for each in rank(found, {"here", "beside"}, total=100, limit=10)}
    assert scores[FIRST] == scores[FIRST + 1] == 0.8
    assert scores[FIRST - 1] == 0.5, "one word beside it, one two places away"
    assert FIRST - 3 not in scores


def test_a_word_that_nobody_wrote_lowers_every_score() -> None:
    here = Occurrences(1, {FIRST: 1.0})
    assert rank({"here": here}, {"here"}, total=100, limit=1) == [Ranked(FIRST, 1.0)]
    (best,) = rank({"here": here, "nowhere": Occurrences(0, {})}, {"here", "nowhere"}, total=100, limit=1)
    assert best.score < 0.5


def test_an_identifier_that_is_found_in_parts_only_is_no_lack() -> None:
    found = {
        "parse": Occurrences(1, {FIRST: 1.0}),
        "header": Occurrences(1, {FIRST: 1.0}),
        "parseheader": Occurrences(0, {}),
    }
    assert rank(found, {"parse", "header"}, total=100, limit=1) == [Ranked(FIRST, 1.0)]


def test_what_was_memorized_has_no_neighbours() -> None:
    assert rank({"word": Occurrences(1, {3: 1.0})}, {"word"}, total=100, limit=10) == [Ranked(3, 1.0)]


def test_identifiers_are_taken_apart_and_put_together() -> None:
    assert names("call getUserName and HTTPServer and snake_case_name, then done").split() == [
        *("get", "user", "name", "http", "server"),
        "snakecasename",
    ]
    asked = query_terms("where is the getUserName of user_id?")
    assert asked.words == ("get", "user", "name", "id")
    assert asked.wholes == ("getusername", "userid")


def test_a_question_of_nothing_but_small_words_is_looked_for_all_the_same() -> None:
    assert query_terms("what is it").words == ("what", "is", "it")


def test_likeness_goes_from_nothing_in_common_to_the_same() -> None:
    assert likeness("The cap is five.", "the cap is FIVE") == 1.0
    assert likeness("red green", "red blue") == 0.5
    assert likeness("red", "blue") == 0.0


def test_the_plugin_for_scorers_asks_the_products_own_index() -> None:
    search = build(["The zeppelin lands.", "It is moored at the mast.", "Nothing else.", "Much later, tea is served."])
    assert search("zeppelins landing", 2)[0] == 0
    assert search("mast", 1) == [1]
    assert search("absent", 5) == []


@pytest.mark.parametrize("text", ["a" * 200_000, "_a" * 100_000, "aA" * 100_000, "deadbeef" * 25_000])
def test_what_is_too_long_to_be_a_word_is_cut_before_names_are_looked_for(text: str) -> None:
    assert all(len(word) <= LONGEST for word in (*query_terms(text).all, *names(text).split()))

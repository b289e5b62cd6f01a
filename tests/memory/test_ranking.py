"""Order and scores of search results."""

import pytest

from benchmarks.recall_plugin import build
from segue.journal.search import SHELF, Occurrences
from segue.memory.ranking import Ranked, rank
from segue.memory.terms import LONGEST, likeness, names, query_terms

FIRST = 7 * SHELF + 10


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    found = {"rare": Occurrences(1, {FIRST: 0.5}), "common": Occurrences(80, {FIRST + 50: 0.5})}
    assert rank(found, {"rare", "common"}, total=100, limit=10)[0].id == FIRST


def test_the_score_is_the_share_of_the_terms_found_here_or_in_neighbours() -> None:
    found = {"here": Occurrences(3, {FIRST: 1.0}), "beside": Occurrences(3, {FIRST + 1: 1.0})}
    scores = {each.id: round(each.score, 3) for each in rank(found, {"here", "beside"}, total=100, limit=10)}
    assert scores[FIRST] == scores[FIRST + 1] == 0.8
    assert scores[FIRST - 1] == 0.5, "one word beside it, one two places away"
    assert FIRST - 3 not in scores


def test_a_term_without_occurrence_lowers_every_score() -> None:
    here = Occurrences(1, {FIRST: 1.0})
    assert rank({"here": here}, {"here"}, total=100, limit=1) == [Ranked(FIRST, 1.0)]
    (best,) = rank({"here": here, "nowhere": Occurrences(0, {})}, {"here", "nowhere"}, total=100, limit=1)
    assert best.score < 0.5


def test_an_identifier_found_only_in_parts_does_not_lower_the_score() -> None:
    found = {
        "parse": Occurrences(1, {FIRST: 1.0}),
        "header": Occurrences(1, {FIRST: 1.0}),
        "parseheader": Occurrences(0, {}),
    }
    assert rank(found, {"parse", "header"}, total=100, limit=1) == [Ranked(FIRST, 1.0)]


def test_entries_have_no_neighbours() -> None:
    assert rank({"word": Occurrences(1, {3: 1.0})}, {"word"}, total=100, limit=10) == [Ranked(3, 1.0)]


def test_identifiers_are_split_and_joined() -> None:
    assert names("call getUserName and HTTPServer and snake_case_name, then done").split() == [
        *("get", "user", "name", "http", "server"),
        "snakecasename",
    ]
    asked = query_terms("where is the getUserName of user_id?")
    assert (asked.words, asked.wholes) == (("get", "user", "name", "id"), ("getusername", "userid"))


def test_a_query_of_stop_words_only_is_searched_too() -> None:
    assert query_terms("what is it").words == ("what", "is", "it")


def test_similarity_ranges_from_different_to_equal() -> None:
    assert likeness("The cap is five.", "the cap is FIVE") == 1.0
    assert likeness("red green", "red blue") == 0.5
    assert likeness("red", "blue") == 0.0


def test_the_benchmark_plugin_uses_the_products_own_index() -> None:
    search = build(["The zeppelin lands.", "It is moored at the mast.", "Nothing else.", "Much later, tea is served."])
    assert search("zeppelins landing", 2)[0] == 0
    assert search("mast", 1) == [1]
    assert search("absent", 5) == []


@pytest.mark.parametrize("text", ["a" * 200_000, "_a" * 100_000, "aA" * 100_000, "deadbeef" * 25_000])
def test_a_very_long_token_is_cut_before_the_search_for_identifiers(text: str) -> None:
    assert all(len(word) <= LONGEST for word in (*query_terms(text).all, *names(text).split()))

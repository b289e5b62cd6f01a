"""The rules for the types of decisions, on plain sentences."""

import pytest

from segue.snapshot.facts.decisions import alternatives, decision_type

FIRST = (
    ("We skip the Windows build, nobody asked for it.", "skip"),
    ("I left the legacy endpoint untouched because two clients still call it.", "skip"),
    ("Pagination is out of scope for this change.", "skip"),
    ("We won't support Python 3.8.", "skip"),
    ("The root cause was a stale lock file.", "clarification"),
    ("By 'active' the customer means paid within 30 days.", "clarification"),
    ("It turned out that the timestamps are in local time.", "clarification"),
    ("The spec says that the list is sorted, so we sort it.", "clarification"),
    ("I moved the parsing into a module of its own, so that the importer stays small.", "architecture"),
    ("We split the service into a reader and a writer process.", "architecture"),
    ("All SQL goes through the repository layer, because it is tested there.", "architecture"),
    ("The cache sits behind the storage interface, so callers do not know it.", "architecture"),
    ("We use httpx because it has timeouts by default.", "library"),
    ("I switched from moment to dayjs since it is smaller.", "library"),
    ("I added the tenacity package for retries.", "library"),
    ("Dates are parsed with dateutil, not by hand.", "library"),
)
SECOND = (
    ("Let's leave the admin page out for now.", "skip"),
    ("I deferred the cleanup of old sessions to a follow-up PR.", "skip"),
    ("We don't handle leap seconds, they never occur in this data.", "skip"),
    ("Translating the error messages can wait, so I did not touch them.", "skip"),
    ("The user confirmed that prices include tax.", "clarification"),
    ("I assume that an empty file counts as valid.", "clarification"),
    ("So 'archived' means hidden, not deleted.", "clarification"),
    ("The actual bug was in the retry loop, it never reset the counter.", "clarification"),
    ("I introduced an adapter between the queue and the workers, since both will change.", "architecture"),
    ("Validation belongs in the domain layer, therefore I moved it out of the controller.", "architecture"),
    ("We keep one writer process and many readers behind a queue.", "architecture"),
    ("I extracted the retry logic into a shared helper, because three modules had a copy.", "architecture"),
    ("I chose zod over yup because its types are inferred.", "library"),
    ("We depend on the rich library for tables.", "library"),
    ("I'll use the csv module of the standard library rather than pandas.", "library"),
    ("We replaced requests with aiohttp so that downloads run at once.", "library"),
)


@pytest.mark.parametrize("listed", [FIRST, SECOND], ids=["first", "second"])
def test_the_type_of_a_plain_sentence_is_found(listed: tuple[tuple[str, str], ...]) -> None:
    missed = [(sentence, expected, decision_type(sentence)) for sentence, expected in listed]
    missed = [each for each in missed if each[1] != each[2]]
    assert len(missed) <= 2, missed


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("I chose zod over yup because its types are inferred.", "yup"),
        ("We use a queue instead of polling.", "polling"),
        ("Dates are parsed with dateutil, not by hand.", "by hand"),
        ("I considered a trigger, but the writer already knows the row.", "a trigger"),
        ("A bloom filter was rejected because of false positives.", "A bloom filter"),
        ("I picked Postgres, not SQLite, since many write at once.", "SQLite"),
        ("The alternatives were Redis and a table in memory.", "Redis and a table in memory"),
        ("Rather than a daemon, we start a process per job.", "a daemon"),
    ],
)
def test_what_was_not_chosen_is_found(sentence: str, expected: str) -> None:
    assert expected in alternatives(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Let me check the parser instead of guessing what it does.",
        "I'm checking the tokens now rather than assuming their format.",
        "Should I use a table instead of a file for this?",
        "All tests pass now.",
    ],
)
def test_an_announcement_or_a_question_is_no_decision(sentence: str) -> None:
    assert decision_type(sentence) is None

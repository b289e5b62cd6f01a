"""An order that was taken back is never told without its end."""

import pytest

from segue.model.events import AgentMessage
from segue.model.transcript import Said, UserSaid
from segue.resume.compiler import compile_context
from tests.recordings import facts

PAIRS = (
    ("Add a CSV export for the invoices.", "We can do without the CSV export, accounting has its own."),
    ("Rename the module billing to ledger.", "Forget renaming billing."),
    ("Send the report by e-mail every Monday.", "The Monday e-mail is off the table."),
    ("Write the docs in German as well.", "Scratch the German docs."),
    ("Support Python 3.8 too.", "Python 3.8 is not needed any more."),
    ("Cache the exchange rates for an hour.", "Rates change too fast, so let's drop caching exchange rates."),
    ("Put a feature flag around the new parser.", "On second thought no flag around the parser."),
    ("Create a Docker image for the worker.", "Docker for the worker won't be needed."),
    ("Migrate the old attachments to S3.", "Legal said no, so S3 for attachments is shelved."),
    ("Show a progress bar while importing.", "I changed my mind about the progress bar."),
    ("Use GraphQL for the mobile client.", "The mobile client stays on REST, GraphQL is moot."),
    ("Keep a copy of each deleted customer.", "Hold off on copies of deleted customers."),
    ("Add retries to the payment call.", "Cancel the retries for payments."),
    ("Log every request body.", "Nix logging request bodies, privacy objects."),
    ("Compress the nightly backup with zstd.", "The nightly backup does not have to be compressed after all."),
)
APPARENT = (
    ("Add a CSV export for the invoices.", "The CSV export should have a header line."),
    ("Rename the module billing to ledger.", "While renaming billing, update the imports too."),
    ("Cache the exchange rates for an hour.", "Make the hour for exchange rates a setting."),
    ("Create a Docker image for the worker.", "Name the Docker image of the worker acme-worker."),
    ("Log every request body.", "Request bodies over 4 kB are logged in part."),
)


def work(order: str, end: str) -> list[Said]:
    said: list[Said] = [UserSaid(text="Build the invoice service for the shop."), UserSaid(text=order)]
    for turn in range(60):
        said.append(AgentMessage(text=f"The handler {turn} returns early because field {turn} is empty; it is fixed."))
        if turn == 30:
            said.append(UserSaid(text=end))
        if turn % 9 == 8:
            said.append(UserSaid(text=f"Next is handler number {turn}, it has a bug in line {turn * 3}."))
    return said


@pytest.mark.parametrize("budget", [300, 600, 4000])
@pytest.mark.parametrize(("order", "end"), PAIRS + APPARENT)
def test_where_an_order_stands_its_end_stands(order: str, end: str, budget: int) -> None:
    text = compile_context(facts(*work(order, end)), budget).text
    assert order not in text or end in text


@pytest.mark.parametrize(("order", "end"), APPARENT)
def test_a_later_remark_on_the_same_thing_takes_nothing_back(order: str, end: str) -> None:
    assert "taken back" not in compile_context(facts(*work(order, end))).text


def test_an_order_of_the_request_is_told_with_its_withdrawal() -> None:
    request = "Build the shop. It needs a CSV export and a search field with suggestions."
    known = facts(UserSaid(text=request), AgentMessage(text="I begin."), UserSaid(text="Forget the CSV export."))
    text = compile_context(known, 300).text
    assert "taken back in #3" in text and "Forget the CSV export." in text


def test_words_that_name_nothing_take_back_what_was_said_before() -> None:
    known = facts(UserSaid(text="Build."), UserSaid(text="Paint the hull green."), UserSaid(text="Never mind."))
    assert [phrase.later for phrase in known.said[0].phrases] == [(3,)]

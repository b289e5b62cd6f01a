import pytest

from segue.memory.scan import found_in, without_private

PRIVATE = {
    "a secret (github-token)": "The token is ghp_" + "a" * 36,
    "a secret (secret-variable)": "export DB_PASSWORD=correcthorsebattery",
    "an e-mail address": "Ask jane.doe@acme-corp.com about it.",
    "a telephone number": "Call +49 151 2345 6789 first.",
    "a payment card": "Paid with 4111 1111 1111 1111 then.",
    "a bank account": "Send it to DE89 3704 0044 0532 0130 00 today.",
    "a social security number": "Hers is 123-45-6789, by the way.",
}


@pytest.mark.parametrize("kind", PRIVATE)
def test_private_data_is_reported_by_its_kind(kind: str) -> None:
    assert list(found_in(PRIVATE[kind])) == [kind]


@pytest.mark.parametrize("kind", PRIVATE)
def test_private_data_is_replaced(kind: str) -> None:
    assert list(found_in(without_private(PRIVATE[kind]))) == []
    assert without_private(PRIVATE[kind]).split()[0] == PRIVATE[kind].split()[0]


@pytest.mark.parametrize(
    "text",
    [
        "Write to someone@example.com in the docs.",
        "Commit 4111111111111112 is no card, and 1.2.3-45-6789 is no number.",
        "It listens on 127.0.0.1:8080 since 2026-11-16T12:30:00+01:00.",
        "The password is asked for at the prompt.",
        "Author: bot <noreply@github.com>",
        "What stood here was [redacted:github-token].",
        "GB00 ABCD 1234 5678 is no account.",
    ],
)
def test_similar_harmless_text_is_kept(text: str) -> None:
    assert list(found_in(text)) == []
    assert without_private(text) == text

"""Scan for private data: secrets, and data that identifies people."""

import re
from collections.abc import Callable, Iterator

from segue.journal.redaction import redact_text
from segue.model.errors import SecretFound

_NOTE = re.compile(r"\[redacted:([a-z-]+)\]")


def _any(_found: str) -> bool:
    """Accept every match of a pattern."""
    return True


def _mail(found: str) -> bool:
    """Return True for a mail address, False for a placeholder."""
    domain = found.rpartition("@")[2].lower()
    return not (re.search(r"(^|\.)(example(\.\w+)?|invalid|localhost|test)$", domain) or "noreply" in found.lower())


def _card(found: str) -> bool:
    """Return True if the check digit of a payment card is right (Luhn)."""
    digits = [int(each) for each in re.sub(r"\D", "", found)][::-1]
    doubled = [sum(divmod(2 * each, 10)) for each in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1


def _iban(found: str) -> bool:
    """Return True if the check digits of a bank account are right (ISO 7064)."""
    plain = re.sub(r"\s", "", found)
    return int("".join(str(int(each, 36)) for each in plain[4:] + plain[:4])) % 97 == 1


_PERSONAL: dict[str, tuple[re.Pattern[str], Callable[[str], bool]]] = {
    "an e-mail address": (re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"), _mail),
    "a telephone number": (re.compile(r"(?<![\w.+])\+\d{1,3}(?:[ ./-]?\(?\d{2,4}\)?){2,5}(?!\w)"), _any),
    "a payment card": (re.compile(r"(?<![\w.-])\d{4}(?:[ -]?\d{4}){2}[ -]?\d{1,7}(?![\w.-])"), _card),
    "a bank account": (re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"), _iban),
    "a social security number": (re.compile(r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])"), _any),
}


def refuse_private(kinds: list[str]) -> None:
    """Raise an error that lists the kinds of private data, and never the data itself; do nothing without any."""
    if kinds:
        raise SecretFound(
            f"Nothing was stored: the text holds {_listed(kinds)}.",
            hint="Take it out, or write down where it can be found instead.",
        )


def found_in(text: str) -> Iterator[str]:
    """Yield the kinds of private data in a text, secrets first."""
    noted_before = len(_NOTE.findall(text))
    for kind in _NOTE.findall(redact_text(text))[noted_before:]:
        yield f"a secret ({kind})"
    for kind, (pattern, is_one) in _PERSONAL.items():
        if any(is_one(match[0]) for match in pattern.finditer(text)):
            yield kind


def without_private(text: str) -> str:
    """Return the text with a placeholder for each piece of private data."""
    text = redact_text(text)
    for kind, (pattern, is_one) in _PERSONAL.items():
        text = pattern.sub(lambda match, kind=kind, is_one=is_one: f"[{kind}]" if is_one(match[0]) else match[0], text)
    return text


def _listed(kinds: list[str]) -> str:
    """Join the kinds with commas and a last "and"."""
    return " and ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))

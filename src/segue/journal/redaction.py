"""Secrets never reach the disk: a table of patterns, applied to the JSON text that is about to be stored.

Every pattern takes only characters that stand for themselves inside a JSON string, or whole escapes, so a replacement
cannot break it.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

# Where a word begins, seen in JSON: after an escape such as \n, or after a terminal's colour code, too.
_EDGE = r"(\b|\\[bfnrt]|\\u[0-9a-fA-F]{4}|[0-9]m)"

PATTERNS: dict[str, str] = {
    "private-key": r'()-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----[^"]*?-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----',
    "aws-key": r"()(?:AKIA|ASIA)[0-9A-Z]{16}",
    "github-token": r"()(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})",
    "gitlab-token": r"()gl(?:pat|dt|rt|ptt)-[A-Za-z0-9_-]{20,}",
    "anthropic-key": r"()sk-ant-[A-Za-z0-9_-]{20,}",
    "openai-key": _EDGE + r"sk-(?:(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{32,})",
    "slack-token": r"()xox[abeoprs]-[A-Za-z0-9-]{10,}",
    "slack-webhook": r"()hooks\.slack\.com/services/[A-Za-z0-9/]{20,}",
    "google-key": r"()AIza[0-9A-Za-z_-]{35}",
    "stripe-key": r"()[rs]k_(?:live|test)_[0-9A-Za-z]{16,}",
    "npm-token": r"()npm_[A-Za-z0-9]{36}",
    "pypi-token": r"()pypi-AgE[A-Za-z0-9_-]{50,}",
    "hugging-face-token": _EDGE + r"hf_[A-Za-z0-9]{30,}",
    "jwt": r"()eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    "authorization": r"()(?i:authorization)[\\\"' ]*[:=][\\\"' ]*(?i:bearer|basic|token) +[A-Za-z0-9._~+/=-]{12,}",
    "url-password": r"(://[^/\s:@\"\\]{1,100}:)[^/\s@\"\\]{3,200}@",
    "api-key-header": r"()(?i:x-api-key|api-key|x-auth-token)[\\\"' ]*[:=][\\\"' ]*[A-Za-z0-9._~+/=-]{12,}",
    # Names as they stand in an environment, with whatever they are set to; code that merely mentions a password, or
    # asks for one, is left alone.
    "secret-variable": _EDGE
    + r"(?:[A-Z][A-Z0-9]*_)*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS)"
    r"(?:_[A-Z0-9]+)*[\\\"']*(?: ?[:=] ?[\\]*[\"'][^\"'\\\s]{8,}|=[^\"'\\\s\$(){}<>,;\[\]]{8,}"
    r"| ?[:=] ?[^\"'\\\s\$(){}<>,;\[\].]{8,})",
}


def _library() -> Any:
    """google-re2 runs in linear time; where it has no wheel, the standard library's `re` stands in."""
    try:
        return import_module("re2")
    except ImportError:
        return import_module("re")


_re = _library()
_ANY = _re.compile("|".join(PATTERNS.values()).encode())
# What stood around the secret is put back.
_AFTER = {"url-password": "@"}
_EACH = [
    (_re.compile(pattern.encode()), rf"\1[redacted:{name}]{_AFTER.get(name, '')}".encode())
    for name, pattern in PATTERNS.items()
]


def redact(text: bytes) -> bytes:
    """The same text with every secret replaced by a note of what stood there."""
    if _ANY.search(text) is None:
        return text
    for pattern, note in _EACH:
        text = pattern.sub(note, text)
    return text


def redact_all(texts: Sequence[bytes]) -> Sequence[bytes]:
    """Each of them redacted. Mostly there is nothing to find, and one look at all of them together tells."""
    if _ANY.search(b"\n".join(texts)) is None:
        return texts
    return [redact(text) for text in texts]


def redact_text(text: str) -> str:
    return redact(text.encode(errors="replace")).decode()

"""Secrets never reach the disk: a table of patterns, applied to the JSON text that is about to be stored.

Every pattern takes only characters that stand for themselves inside a JSON string, or whole escapes, so a replacement
cannot break it.
"""

import json
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, cast

# Where a word begins, seen in JSON: after an escape such as \n, or after a terminal's colour code, too.
_EDGE = r"(\b|\\[bfnrt]|\\u[0-9a-fA-F]{4}|[0-9]m)"

_NAME = (
    _EDGE.replace("(", "(?:", 1)
    + r"(?:[A-Z][A-Z0-9]*_)*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS)"
    r"(?:_[A-Z0-9]+)*[\\\"']*"
)

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
    "authorization": r"((?i:authorization)[\\\"' ]*[:=][\\\"' ]*(?i:bearer|basic|token) +)[A-Za-z0-9._~+/=-]{12,}",
    "url-password": r"(://[^/\s:@\"\\]{1,100}:)[^/\s@\"\\]{3,200}@",
    "api-key-header": r"((?i:x-api-key|api-key|x-auth-token)[\\\"' ]*[:=][\\\"' ]*)[A-Za-z0-9._~+/=-]{12,}",
    # Names as they stand in an environment, with whatever they are set to; code that merely mentions a password, or
    # asks for one, is left alone.
    "secret-variable/quoted": rf"({_NAME} ?[:=] ?[\\]*[\"'])[^\"'\\\s\$][^\"'\\\s]{{7,}}",
    "secret-variable/assigned": rf"({_NAME}=)[^\"'\\\s\$(){{}}<>,;\[\]]{{8,}}",
    "secret-variable/bare": rf"({_NAME} ?[:=] ?)[^\"'\\\s\$(){{}}<>,;\[\].]{{8,}}",
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
    (_re.compile(pattern.encode()), rf"\1[redacted:{name.partition('/')[0]}]{_AFTER.get(name, '')}".encode())
    for name, pattern in PATTERNS.items()
]


def redact(text: bytes) -> bytes:
    """The same text with every secret replaced by a note of what stood there; what was JSON stays JSON."""
    if _ANY.search(text) is None:
        return text
    redacted = _noted(text)
    if redacted != text and (document := _parsed(text)) is not None and _parsed(redacted) is None:
        # A secret that is no string, such as a number under a telling name, cannot be replaced where it stands.
        return json.dumps(_inside(document.value), ensure_ascii=False, separators=(",", ":")).encode()
    return redacted


def _noted(text: bytes) -> bytes:
    for pattern, note in _EACH:
        text = pattern.sub(note, text)
    return text


class _Document(NamedTuple):
    value: Any


def _parsed(text: bytes) -> _Document | None:
    try:
        return _Document(json.loads(text))
    except ValueError:
        return None


def _inside(value: Any) -> Any:
    """Value by value, each looked at beside its name."""
    match value:
        case str():
            return _noted(value.encode(errors="replace")).decode()
        case list():
            return [_inside(item) for item in cast(list[Any], value)]
        case dict():
            return {_inside(name): _under(name, item) for name, item in cast(dict[str, Any], value).items()}
        case _:
            return value


def _under(name: str, value: Any) -> Any:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        assigned = f"{name}={value}"
        if _noted(assigned.encode(errors="replace")).decode(errors="replace") != assigned:
            return "[redacted:secret-variable]"
    return _inside(value)


def redact_all(texts: Sequence[bytes]) -> Sequence[bytes]:
    """Each of them redacted. Mostly there is nothing to find, and one look at all of them together tells."""
    if _ANY.search(b"\n".join(texts)) is None:
        return texts
    return [redact(text) for text in texts]


def redact_text(text: str) -> str:
    return redact(text.encode(errors="replace")).decode()

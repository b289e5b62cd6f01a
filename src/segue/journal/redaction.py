"""Redaction of secrets: a table of patterns, applied to JSON text before it is stored.

Every pattern matches only plain characters of a JSON string, or whole escapes, so a replacement leaves valid JSON.
"""

import json
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, cast

# Beginning of a word in JSON text: also after an escape such as \n, or after a terminal's colour code.
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
    # Names of environment variables with their values; code that only mentions or requests a password is not matched.
    "secret-variable/quoted": rf"({_NAME} ?[:=] ?[\\]*[\"'])[^\"'\\\s\$][^\"'\\\s]{{7,}}",
    "secret-variable/assigned": rf"({_NAME}=)[^\"'\\\s\$(){{}}<>,;\[\]]{{8,}}",
    "secret-variable/bare": rf"({_NAME} ?[:=] ?)[^\"'\\\s\$(){{}}<>,;\[\].]{{8,}}",
}


def _library() -> Any:
    """Import google-re2, which runs in linear time, or the standard library's `re` where it has no wheel."""
    try:
        return import_module("re2")
    except ImportError:
        return import_module("re")


_re = _library()
_ANY = _re.compile("|".join(PATTERNS.values()).encode())
# Text after the secret that the pattern matched, too.
_AFTER = {"url-password": "@"}
_EACH = [
    (_re.compile(pattern.encode()), rf"\1[redacted:{name.partition('/')[0]}]{_AFTER.get(name, '')}".encode())
    for name, pattern in PATTERNS.items()
]


def redact(text: bytes) -> bytes:
    """Replace every secret in the text by a note of its kind and return it; JSON stays JSON."""
    if _ANY.search(text) is None:
        return text
    redacted = _replace_secrets(text)
    if redacted != text and (document := _parse(text)) is not None and _parse(redacted) is None:
        # A secret that is not a string, such as a number in a field named PASSWORD, cannot be replaced in the text.
        return json.dumps(_redact_value(document.value), ensure_ascii=False, separators=(",", ":")).encode()
    return redacted


def _replace_secrets(text: bytes) -> bytes:
    """Apply every pattern to the text, one after the other."""
    for pattern, note in _EACH:
        text = pattern.sub(note, text)
    return text


class _Document(NamedTuple):
    value: Any


def _parse(text: bytes) -> _Document | None:
    """Parse the text as JSON; None if it is none."""
    try:
        return _Document(json.loads(text))
    except ValueError:
        return None


def _redact_value(value: Any) -> Any:
    """Redact a parsed document, each field's value together with its name."""
    match value:
        case str():
            return _replace_secrets(value.encode(errors="replace")).decode()
        case list():
            return [_redact_value(item) for item in cast(list[Any], value)]
        case dict():
            return {
                _redact_value(name): _redact_field(name, item) for name, item in cast(dict[str, Any], value).items()
            }
        case _:
            return value


def _redact_field(name: str, value: Any) -> Any:
    """Return the field's value redacted: whole if name and value together are a secret, else by itself."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        assigned = f"{name}={value}"
        if _replace_secrets(assigned.encode(errors="replace")).decode(errors="replace") != assigned:
            return "[redacted:secret-variable]"
    return _redact_value(value)


def redact_all(texts: Sequence[bytes]) -> Sequence[bytes]:
    """Redact each of these texts. Most hold no secret, so all are searched together first."""
    if _ANY.search(b"\n".join(texts)) is None:
        return texts
    return [redact(text) for text in texts]


def redact_text(text: str) -> str:
    """Replace every secret of a text by a note of its kind."""
    return redact(text.encode(errors="replace")).decode()

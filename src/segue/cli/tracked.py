"""An issue of GitHub or GitLab, as their programs and interfaces print it."""

import json
import re
from typing import Any, cast

from segue.model.errors import BadInput

_JSON = re.compile(r'\{\s*["}]|\[\s*[{\]]')
"""How a JSON document begins, and hardly anything that a person writes."""
_FORM = "gh issue view 12 --json title,body,number,url,labels,comments | segue run -"
MOST_COMMENTS = 20
LONGEST_COMMENT = 2_000


def looks_like_json(text: str) -> bool:
    """Whether it begins like an issue in JSON, or is another value of JSON; what stands in quotes is a text."""
    return _JSON.match(text) is not None or _is_value(text)


def _is_value(text: str) -> bool:
    try:
        return not isinstance(json.loads(text), str)
    except RecursionError:
        return True
    except ValueError:
        return False


def tracked_issue(text: str) -> dict[str, str]:
    """An issue as the programs and interfaces of GitHub and GitLab give it."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"This begins like JSON, and is none: {error}.", hint=f"The form is: {_FORM}") from error
    if isinstance(document, list):
        raise BadInput("This is a list, and a workflow is about one issue.", hint=f"Give one of them: {_FORM}")
    if not isinstance(document, dict):
        raise BadInput("This is a value of JSON, and no issue.", hint=f"Write what is to be done, or: {_FORM}")
    fields = cast(dict[str, Any], document)
    title = " ".join(_string(fields, "title").split())
    if not title:
        raise BadInput('This JSON is no issue: it has no "title".', hint=f"The form is: {_FORM}")
    body = (_string(fields, "body") or _string(fields, "description")).replace("\r\n", "\n").strip()
    parts = [body, _labels(fields), _comments(fields), _address(fields)]
    return {"title": title, "description": "\n\n".join(part for part in parts if part)}


def _string(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _objects(fields: dict[str, Any], *keys: str) -> list[dict[str, Any]]:
    """The first list under one of these names; some give a number there instead."""
    lists = [cast(list[object], fields[key]) for key in keys if isinstance(fields.get(key), list)]
    return [cast(dict[str, Any], each) for each in lists[0] if isinstance(each, dict)] if lists else []


def _labels(fields: dict[str, Any]) -> str:
    given: object = fields.get("labels")
    plain = [each for each in cast(list[object], given) if isinstance(each, str)] if isinstance(given, list) else []
    names = [*plain, *(_string(each, "name") for each in _objects(fields, "labels"))]
    return f"Labels: {', '.join(filter(None, names))}" if any(names) else ""


def _comments(fields: dict[str, Any]) -> str:
    told = [
        f"{_author(each)}: {_string(each, 'body').strip()}" for each in _objects(fields, "comments", "Notes", "notes")
    ]
    kept = [each if len(each) <= LONGEST_COMMENT else f"{each[:LONGEST_COMMENT]}…" for each in told[-MOST_COMMENTS:]]
    return "\n\n".join(["Comments:", *kept]) if kept else ""


def _author(comment: dict[str, Any]) -> str:
    who: object = comment.get("author") or comment.get("user")
    named = cast(dict[str, Any], who) if isinstance(who, dict) else {}
    return _string(named, "login") or _string(named, "username") or "somebody"


def _address(fields: dict[str, Any]) -> str:
    address = _string(fields, "html_url") or _string(fields, "web_url") or _string(fields, "url")
    number: object = fields.get("number") or fields.get("iid")
    return f"This is issue {number}: {address}" if number and address else address

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
    """Return True if a text begins like an issue in JSON, or is another value of JSON, except a string."""
    return _JSON.match(text) is not None or _is_value(text)


def _is_value(text: str) -> bool:
    """Return True if the text is a JSON value other than a string, or is nested too deeply to be read."""
    try:
        return not isinstance(json.loads(text), str)
    except RecursionError:
        return True
    except ValueError:
        return False


def tracked_issue(text: str) -> dict[str, str]:
    """Return title and description from an issue in the JSON of GitHub or GitLab; raise BadInput if it is none."""
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
    given: object = fields.get("labels")
    plain = [each for each in cast(list[object], given) if isinstance(each, str)] if isinstance(given, list) else []
    labels = [name for name in (*plain, *(_string(each, "name") for each in _objects(fields, "labels"))) if name]
    address = _string(fields, "html_url") or _string(fields, "web_url") or _string(fields, "url")
    number: object = fields.get("number") or fields.get("iid")
    source = f"This is issue {number}: {address}" if number and address else address
    parts = [body, f"Labels: {', '.join(labels)}" if labels else "", _comments(fields), source]
    return {"title": title, "description": "\n\n".join(part for part in parts if part)}


def _string(fields: dict[str, Any], key: str) -> str:
    """Return the text under this key, or an empty one."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _objects(fields: dict[str, Any], *keys: str) -> list[dict[str, Any]]:
    """Return the objects of the first list under one of these keys; empty if there is none."""
    lists = [cast(list[object], fields[key]) for key in keys if isinstance(fields.get(key), list)]
    return [cast(dict[str, Any], each) for each in lists[0] if isinstance(each, dict)] if lists else []


def _comments(fields: dict[str, Any]) -> str:
    """Return the latest comments with their authors, long ones cut, under a heading; empty if there are none."""
    comments: list[str] = []
    for each in _objects(fields, "comments", "Notes", "notes"):
        who: object = each.get("author") or each.get("user")
        named = cast(dict[str, Any], who) if isinstance(who, dict) else {}
        author = _string(named, "login") or _string(named, "username") or "somebody"
        comments.append(f"{author}: {_string(each, 'body').strip()}")
    latest = comments[-MOST_COMMENTS:]
    kept = [each if len(each) <= LONGEST_COMMENT else f"{each[:LONGEST_COMMENT]}…" for each in latest]
    return "\n\n".join(["Comments:", *kept]) if kept else ""

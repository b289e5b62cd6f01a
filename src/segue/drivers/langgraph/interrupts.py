"""Interrupts of a graph, as questions that are answered with yes, no, or free text.

LangGraph does not define the content of an interrupt or its answer. Most are one question: yes is `True`, no is
`False`, free text is the text. LangChain's own human-in-the-loop lists the actions to be reviewed, and expects one
decision for each.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import ToolCall

from segue.drivers.langgraph.graph_messages import fields_of
from segue.drivers.skeleton.agent_program import PermissionDecision
from segue.drivers.text import shortened

LONGEST_TITLE = 500
_SENTENCES = ("question", "message", "description", "title", "query", "prompt")
"""Keys under which an interrupt with several fields usually has its sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptQuestion:
    """One thing to be decided."""

    title: str
    call_id: str
    """The call of a tool that it is about, or a name of its own."""
    about: object
    words: bool = False
    """True if free text is accepted. A call is allowed or not."""


def questions(interrupt: str, value: object, calls: Sequence[ToolCall]) -> list[InterruptQuestion]:
    """Return the questions of an interrupt: one for each requested action, else one; `calls` have no result yet."""
    if (actions := _actions(value)) is not None:
        return [
            InterruptQuestion(title=_action(each), call_id=_call_of(each, calls) or f"{interrupt}-{number}", about=each)
            for number, each in enumerate(actions)
        ]
    # One call and one question belong together; with more of them the pairing is unknown.
    call = calls[0]["id"] if len(calls) == 1 else None
    own = f"interrupt-{interrupt}"
    return [InterruptQuestion(title=_title(value), call_id=call or own, about=value, words=not calls)]


def resumption(value: object, answers: Sequence[PermissionDecision]) -> object:
    """Return the value that the graph gets in place of its interrupt."""
    if _actions(value) is not None:
        approved, rejected = {"type": "approve"}, {"type": "reject", "message": "The user refused this."}
        return {"decisions": [approved if answer.allowed else rejected for answer in answers]}
    answer = answers[0]
    return answer.words or answer.allowed


def _actions(value: object) -> list[dict[str, Any]] | None:
    """Return the actions that an interrupt requests; None if it has another form."""
    wanted = fields_of(value).get("action_requests")
    return cast(list[dict[str, Any]], wanted) if isinstance(wanted, list) else None


def _action(action: dict[str, Any]) -> str:
    """Return the description of an action, or its name and arguments."""
    said = action.get("description") or f"{action.get('name')}({_json(action.get('args'))})"
    return shortened(str(said), LONGEST_TITLE)


def _call_of(action: dict[str, Any], calls: Sequence[ToolCall]) -> str | None:
    """Return the id of the call that an action is, or None."""
    same = (call["id"] for call in calls if (call["name"], call["args"]) == (action.get("name"), action.get("args")))
    return next(same, None)


def _title(value: object) -> str:
    """Return the question that an interrupt contains, or its value as text."""
    fields = fields_of(value)
    said = next((fields[key] for key in _SENTENCES if isinstance(fields.get(key), str)), None)
    text = said or (value if isinstance(value, str) else _json(value))
    return shortened(text.strip() or "The graph wants to know whether to go on.", LONGEST_TITLE)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

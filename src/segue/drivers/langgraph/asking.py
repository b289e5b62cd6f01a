"""What a graph wants to know when it interrupts itself, as questions that are answered with yes, no, or words.

LangGraph leaves open what an interrupt says and what it wants to hear. Most are one question: yes is `True`, no is
`False`, words are the words. LangChain's own human-in-the-loop lists the actions it wants to have reviewed, and hears
one decision for each.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import ToolCall

from segue.drivers.langgraph.messages import fields_of
from segue.drivers.programs.skeleton import Decision
from segue.drivers.text import shortened

LONGEST_TITLE = 500
_SENTENCES = ("question", "message", "description", "title", "query", "prompt")
"""Where people put the sentence, if an interrupt says more than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One thing to be decided."""

    title: str
    call_id: str
    """The call of a tool that it is about, or a name of its own."""
    about: object
    words: bool = False
    """Whether it may be answered in words, too. A call is allowed or not."""


def questions(interrupt: str, value: object, calls: Sequence[ToolCall]) -> list[Question]:
    """What an interrupt of this id asks; `calls` are those that the graph has not answered."""
    if (actions := _actions(value)) is not None:
        return [
            Question(title=_action(each), call_id=_call_of(each, calls) or f"{interrupt}-{number}", about=each)
            for number, each in enumerate(actions)
        ]
    # One call and one question belong together; with more of them nobody knows.
    call = calls[0]["id"] if len(calls) == 1 else None
    own = f"interrupt-{interrupt}"
    return [Question(title=_title(value), call_id=call or own, about=value, words=not calls)]


def resumption(value: object, answers: Sequence[Decision]) -> object:
    """What the graph hears in place of its interrupt."""
    if _actions(value) is not None:
        return {"decisions": [_decision(answer) for answer in answers]}
    answer = answers[0]
    return answer.words or answer.allowed


def _decision(answer: Decision) -> dict[str, str]:
    return {"type": "approve"} if answer.allowed else {"type": "reject", "message": "The user refused this."}


def _actions(value: object) -> list[dict[str, Any]] | None:
    wanted = fields_of(value).get("action_requests")
    return cast(list[dict[str, Any]], wanted) if isinstance(wanted, list) else None


def _action(action: dict[str, Any]) -> str:
    said = action.get("description") or f"{action.get('name')}({_json(action.get('args'))})"
    return shortened(str(said), LONGEST_TITLE)


def _call_of(action: dict[str, Any], calls: Sequence[ToolCall]) -> str | None:
    same = (call["id"] for call in calls if (call["name"], call["args"]) == (action.get("name"), action.get("args")))
    return next(same, None)


def _title(value: object) -> str:
    fields = fields_of(value)
    said = next((fields[key] for key in _SENTENCES if isinstance(fields.get(key), str)), None)
    text = said or (value if isinstance(value, str) else _json(value))
    return shortened(text.strip() or "The graph wants to know whether to go on.", LONGEST_TITLE)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

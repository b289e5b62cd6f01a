"""Permissions: what the policy answers by itself, what people answer, and which of the agent's options that is."""

from typing import Literal

from segue.journal import Transaction
from segue.journal.rows import QuestionRow
from segue.model.events import PermissionAnswered, PermissionRequested
from segue.model.ids import RequestId, WorkflowId
from segue.model.status import Permissions, SessionStatus, WaitingFor
from segue.orchestrator.runtime.handle import PermissionReply
from segue.orchestrator.runtime.house import House

READING = frozenset({"read", "search", "think", "fetch"})
EDITING = frozenset({"edit", "delete", "move"})

_ALLOW = ("allow_once", "allow_always")
_REJECT = ("reject_once", "reject_always")


def policy(permissions: Permissions, question: PermissionRequested) -> bool | None:
    """True and False answer at once; None asks the user."""
    match permissions:
        case Permissions.ALL:
            return True
        case Permissions.EDITS:
            return True if question.tool in READING | EDITING else None
        case Permissions.READ_ONLY:
            return question.tool in READING
        case Permissions.ASK:
            return None


def option_for(question: PermissionRequested, allow: bool) -> str | None:
    """The option that says yes or no for this once; None where the agent offers none, which refuses."""
    wanted = _ALLOW if allow else _REJECT
    by_kind = {option.kind: option.id for option in question.options}
    return next((by_kind[kind] for kind in wanted if kind in by_kind), None)


def by_policy(question: PermissionRequested, allow: bool, reason: str = "") -> PermissionAnswered:
    outcome = "allowed" if allow else "denied"
    return PermissionAnswered(
        request_id=question.request_id, outcome=outcome, by="policy", option=option_for(question, allow), reason=reason
    )


async def answer_question(
    house: House,
    workflow_id: WorkflowId,
    request_id: RequestId | None,
    *,
    allow: bool,
    by: Literal["user", "timeout"],
    reason: str = "",
    words: str = "",
) -> QuestionRow | None:
    """Answer one question, or the oldest; None when nothing is open. The agent hears it after it is on disk."""
    said = words or reason
    question = await house.journal.transact(workflow_id, lambda t: _answer(t, request_id, allow, by, said))
    live = house.live.get(workflow_id)
    if question is not None and live is not None:
        verdict = PermissionReply(request_id=question.id, title=question.title, allow=allow, words=words)
        live.replies.put_nowait(verdict)
    return question


def _answer(
    t: Transaction, request_id: RequestId | None, allow: bool, by: Literal["user", "timeout"], reason: str
) -> QuestionRow | None:
    open_now = t.questions.open()
    question = next((q for q in open_now if request_id in (None, q.id)), None)
    if question is None:
        return None
    outcome = "allowed" if allow else "denied"
    run = t.runs.open()
    number = run.number if run else None
    answer = PermissionAnswered(request_id=question.id, outcome=outcome, by=by, reason=reason)
    t.questions.answer(answer, question.session_id, number)
    session = t.sessions.current()
    waiting = session.status is SessionStatus.WAITING_FOR_INPUT and session.waiting_for is WaitingFor.PERMISSION
    if waiting and len(open_now) == 1:
        t.sessions.move(question.session_id, SessionStatus.RUNNING, run=number)
    return question

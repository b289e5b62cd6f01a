"""Answers to permission requests: by policy or by people, and the agent's option for each."""

from typing import Literal

from segue.journal import Transaction
from segue.journal.rows import QuestionRow
from segue.model.events import PermissionAnswered, PermissionRequested
from segue.model.ids import RequestId, WorkflowId
from segue.model.status import Permissions, SessionStatus, WaitingFor
from segue.orchestrator.runtime.run_handle import PermissionReply
from segue.orchestrator.runtime.services import RuntimeServices

READING = frozenset({"read", "search", "think", "fetch"})
EDITING = frozenset({"edit", "delete", "move"})

_ALLOW = ("allow_once", "allow_always")
_REJECT = ("reject_once", "reject_always")


def policy(permissions: Permissions, question: PermissionRequested) -> bool | None:
    """Return True or False if the policy allows or denies the request, None to ask the user."""
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
    """Return the option that allows or refuses once; None, which refuses, where the agent offers none."""
    wanted = _ALLOW if allow else _REJECT
    by_kind = {option.kind: option.id for option in question.options}
    return next((by_kind[kind] for kind in wanted if kind in by_kind), None)


def by_policy(question: PermissionRequested, allow: bool, reason: str = "") -> PermissionAnswered:
    """Build the event of an answer that the policy gave."""
    outcome = "allowed" if allow else "denied"
    return PermissionAnswered(
        request_id=question.request_id, outcome=outcome, by="policy", option=option_for(question, allow), reason=reason
    )


async def answer_question(
    services: RuntimeServices,
    workflow_id: WorkflowId,
    request_id: RequestId | None,
    *,
    allow: bool,
    by: Literal["user", "timeout"],
    reason: str = "",
    words: str = "",
) -> QuestionRow | None:
    """Answer this open request, or the oldest one, and return it; None if there is none. The answer is on disk
    before the agent gets it."""
    said = words or reason
    question = await services.journal.transact(workflow_id, lambda t: _answer(t, request_id, allow, by, said))
    live = services.live.get(workflow_id)
    if question is not None and live is not None:
        verdict = PermissionReply(request_id=question.id, title=question.title, allow=allow, words=words)
        live.replies.put_nowait(verdict)
    return question


def _answer(
    t: Transaction, request_id: RequestId | None, allow: bool, by: Literal["user", "timeout"], reason: str
) -> QuestionRow | None:
    """Write the answer to the open request, and let the session run again if no other is open; return the request,
    None if there is none."""
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

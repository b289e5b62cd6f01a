"""Answers of people to what a workflow waits for: a permission request, a plan, or a task."""

import logging
from collections.abc import Awaitable, Callable
from typing import Literal

from segue.journal import Transaction
from segue.journal.rows import WorkflowRow
from segue.model.errors import BadInput, NothingToAnswer, WrongState
from segue.model.events import ApprovalAwaited, PlanAdopted, PlanRejected
from segue.model.plan import Plan
from segue.model.requests import Answer
from segue.model.status import WorkflowStatus
from segue.model.views import Answered
from segue.orchestrator.requests.resumption import Resuming
from segue.orchestrator.requests.task_answers import answer_person
from segue.orchestrator.run.plan_proposals import after_what_is_done, described
from segue.orchestrator.runtime.agents import agent_named
from segue.orchestrator.runtime.permissions import answer_question
from segue.orchestrator.runtime.plan_text import read_plan
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.runtime.views import open_question
from segue.protocol.admission import Question, admit_answer
from segue.state.fold import WorkflowState
from segue.state.moves import WORKFLOW_ENDED

log = logging.getLogger("segue")

W = WorkflowStatus
Reply = Callable[[WorkflowRow, Answer], Awaitable[Answered | None]]
"""Function that answers one kind of question; it returns None if none of its kind is open."""


class Answering:
    """Service that answers what waits in a workflow: a permission request first, then the plan, then a task."""

    def __init__(self, services: RuntimeServices, resuming: Resuming) -> None:
        self._services = services
        self._resuming = resuming
        self._replies: tuple[Reply, ...] = (self._permission, self._plan, self._task)

    async def answer(self, name: str, answer: Answer) -> Answered:
        """Answer the oldest request that waits in the workflow: a permission, else its plan, else its task; raise
        NothingToAnswer if none waits."""
        row = await self._services.journal.workflows.get(name)
        for reply in self._replies:
            if (answered := await reply(row, answer)) is not None:
                return answered
        raise await self._nothing(row, answer)

    async def _nothing(self, row: WorkflowRow, answer: Answer) -> NothingToAnswer:
        """Build the error that the workflow has no question which this answer fits."""
        state = await self._services.journal.state(row.id)
        if state.status in WORKFLOW_ENDED:
            return NothingToAnswer(f"The workflow is {state.status}, and nothing in it waits for an answer.")
        if answer.plan is not None and open_question(state):
            return NothingToAnswer(
                "No plan waits for a word; the open question is about a task.", hint="Leave --plan out."
            )
        return NothingToAnswer("This workflow has no open question.", hint="`segue status` shows what is open.")

    async def _permission(self, row: WorkflowRow, answer: Answer) -> Answered | None:
        """Answer the open permission request, by id or the oldest, and return the result; None if there is none or
        the answer has a plan."""
        if answer.plan is not None:
            return None
        question = await answer_question(
            self._services, row.id, answer.request_id, allow=answer.allow, by="user", reason=answer.reason
        )
        if question is None:
            return None
        return Answered(
            status=_status(answer),
            about="permission",
            workflow_id=row.id,
            request_id=question.id,
            title=question.title,
        )

    async def _plan(self, row: WorkflowRow, answer: Answer) -> Answered | None:
        """Adopt or reject the plan that waits, and start the next run; None if no plan waits or the answer names a
        request."""
        state = await self._services.journal.state(row.id)
        proposed = state.planning.proposed if state.planning else None
        if proposed is None or answer.request_id is not None:
            return None
        if not answer.allow and not agent_named(self._services, row.agent).plans:
            hint = "Approve another plan instead: segue approve --plan FILE. `segue cancel` ends the work."
            raise WrongState(f"{row.agent} makes no plans, so it would not plan again.", hint=hint)
        word = _word_on(state, proposed, answer)

        def write(t: Transaction) -> None:
            planning = t.catch_up(state).planning
            is_open = planning is not None and planning.proposed == proposed
            admit_answer(self._resuming.launching.standing(t), Question.PLAN, is_open=is_open)
            if isinstance(word, PlanAdopted):
                t.tasks.adopt_plan(word)
            else:
                t.append(word)

        resumed = await self._resuming.after_a_word(row, answer.environment, write, f"the plan was {_status(answer)}")
        plan = word.plan if isinstance(word, PlanAdopted) else proposed
        title = described(plan, state)
        return Answered(status=_status(answer), about="plan", workflow_id=row.id, title=title, resumed=resumed)

    async def _task(self, row: WorkflowRow, answer: Answer) -> Answered | None:
        """Answer the question about a task, and start the next run; None if none is open or the answer is about a
        request or a plan."""
        state = await self._services.journal.state(row.id)
        if state.asked is None or answer.request_id is not None or answer.plan is not None:
            return None
        resumed = await answer_person(self._resuming, row, answer.environment, allow=answer.allow, reason=answer.reason)
        if resumed is None:
            return None
        asked = state.asked.task_id
        title = next((mark.title for mark in state.marks if mark.id == asked), asked)
        return Answered(status=_status(answer), about="task", workflow_id=row.id, title=title, resumed=resumed)


def _status(answer: Answer) -> Literal["approved", "rejected"]:
    """Return "approved" or "rejected", as the answer allows."""
    return "approved" if answer.allow else "rejected"


def _word_on(state: WorkflowState, proposed: Plan, answer: Answer) -> PlanAdopted | PlanRejected:
    """Return the event that this answer to the proposed plan writes: PlanAdopted or PlanRejected; raise BadInput for a
    rejection without a reason."""
    if not answer.allow and not answer.reason.strip():
        raise BadInput("A plan is rejected with a reason.", hint="Say what is wrong with it: segue reject 'REASON'.")
    if not answer.allow:
        return PlanRejected(reason=answer.reason.strip())
    if answer.plan is None:
        return PlanAdopted(plan=proposed, by="user")
    assert state.issue is not None, "every journal begins with its workflow's issue"
    plan = after_what_is_done(state, read_plan(state.issue, answer.plan))
    return PlanAdopted(plan=plan, by="user", edited=plan != proposed)


async def announce(services: RuntimeServices) -> None:
    """Append ApprovalAwaited for each blocked or reviewed workflow with an open question, and log a warning; called at
    server start."""
    for row in await services.journal.workflows.all([W.BLOCKED, W.REVIEW]):
        question = open_question(await services.journal.state(row.id))
        if question:
            await services.journal.transact(row.id, lambda t, q=question: t.append(ApprovalAwaited(question=q)))
            log.warning("%s waits for an answer: %s", row.slug, question)

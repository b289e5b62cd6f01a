"""Answers of people to a task that tests or reviewers did not pass."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from segue.drivers.environment import allowed
from segue.journal import Transaction
from segue.journal.rows import WorkflowRow
from segue.model import events as e
from segue.model.errors import BadInput
from segue.model.findings import PERSON, ReviewerFeedback
from segue.model.ids import new_attempt_id
from segue.model.plan import Task
from segue.model.status import WorkflowStatus
from segue.model.views import Resumed
from segue.orchestrator.requests.resumption import Resuming
from segue.orchestrator.run.task_completion import commit_task, done
from segue.orchestrator.runtime.agents import agent_named, require
from segue.orchestrator.settling.recovery import checkpoint_ref, write_checkpoint
from segue.protocol.admission import Question, admit_answer
from segue.snapshot.gather import gather
from segue.state.fold import WorkflowState

ANSWERABLE = frozenset({WorkflowStatus.REVIEW, WorkflowStatus.PAUSED, WorkflowStatus.IN_PROGRESS})
"""Statuses in which a task may be answered; in progress only during a chat."""
Word = Callable[[Transaction], None]


async def answer_person(
    resuming: Resuming, row: WorkflowRow, environment: Mapping[str, str], *, allow: bool, reason: str
) -> Resumed | None:
    """Accept the task as done, or reject it with the reason, and launch the work that follows; None if no question
    about a task is open in a status that allows an answer."""
    services = resuming.services
    state = await services.journal.state(row.id)
    if state.asked is None or row.status not in ANSWERABLE:
        return None
    if not allow and not reason.strip():
        raise BadInput("A task is given back with a reason.", hint="Say what is wrong with it: segue reject 'REASON'.")
    decision = _Decision(resuming, row, state, state.asked)
    if not allow:
        word = decision.give_back(reason.strip())
        return await resuming.after_a_word(row, environment, word, "the task was rejected")
    with resuming.launching.alone_with(row.id):
        # A commit cannot be taken back, so requests that would be refused are refused before it.
        require(agent_named(services, row.agent), environment)
        await services.journal.transact(row.id, decision.refuse_if_late)
        # Read before Segue's own commit, which is no change to warn about.
        changed = await resuming.launching.divergence(state, row.id)
        word = await decision.accept(environment, reason.strip())
        resumed = await resuming.after_a_word(
            row, environment, word, "the task was approved", alone=True, changed=changed
        )
    services.unstudied.put_nowait(row.id)
    return resumed


class _Decision:
    """Answer of a person about a task, written in the transaction of the run that follows."""

    def __init__(self, resuming: Resuming, row: WorkflowRow, state: WorkflowState, asked: e.PersonAsked) -> None:
        self._resuming = resuming
        self._services = resuming.services
        self._row = row
        self._state = state
        self._asked = asked

    def give_back(self, reason: str) -> Word:
        """Return the function that writes the rejection: the answer, and its reason as a review of the task."""
        rounds = [each.round for each in self._state.reviews if each.task_id == self._asked.task_id]
        number = max(rounds, default=0) + 1

        def give_back(t: Transaction) -> None:
            self._answer(t, e.PersonAnswered(task_id=self._asked.task_id, approved=False, reason=reason))
            feedback = ReviewerFeedback(
                review_id=f"{self._asked.task_id}-{number}-{PERSON}",
                reviewer_persona=PERSON,
                timestamp=t.now,
                approved=False,
                severity="high",
                comments=(reason,),
            )
            t.append(e.ReviewGiven(task_id=self._asked.task_id, round=number, feedback=feedback))

        return give_back

    async def accept(self, environment: Mapping[str, str], reason: str) -> Word:
        """Commit the task's files if that is chosen, and return the function that writes the acceptance, with a
        snapshot for the agent that goes on."""
        task, attempt = self._task, new_attempt_id()
        committed = await commit_task(self._row, task, allowed(environment), attempt)
        state = await self._services.journal.state(self._row.id)
        workspace = await gather(state.worktree, checkpoint_ref(self._row.id, state), state.base)

        occasion = replace(done(task), reason=self._taken(reason), snapshot=True)

        def accept(t: Transaction) -> None:
            self._answer(t, e.PersonAnswered(task_id=task.id, approved=True, reason=reason))
            if committed is not None:
                t.append(committed)
            t.append(e.FeedbackAddressed(task_id=task.id))
            t.tasks.accept(task.id, attempt, t.sessions.current().id)
            write_checkpoint(t, t.sessions.current().id, 0, occasion, t.catch_up(state), workspace)

        return accept

    def _taken(self, reason: str) -> str:
        """Build the reason why the task counts as done, with the person's own."""
        why = f": {reason}" if reason else ""
        if not self._asked.problem:
            return f"a person has taken “{self._task.title}” as done{why}"
        return f"{self._asked.problem}; a person has taken it as done all the same{why}"

    def _answer(self, t: Transaction, answer: e.PersonAnswered) -> None:
        """Append the answer; raise if the question is not open any more."""
        self.refuse_if_late(t)
        t.append(answer)

    def refuse_if_late(self, t: Transaction) -> None:
        """Raise if another answer was given before or an agent works on the task; else do nothing."""
        is_open = t.catch_up(self._state).asked == self._asked
        admit_answer(self._resuming.launching.standing(t), Question.TASK, is_open=is_open)

    @property
    def _task(self) -> Task:
        """Return the task that the question is about."""
        plan = self._state.plan
        assert plan is not None, "nobody is asked about a task without a plan"
        return next(task for task in plan.tasks if task.id == self._asked.task_id)

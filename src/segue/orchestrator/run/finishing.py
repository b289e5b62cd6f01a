"""What lies between the end of a task's turn and the task that counts as done: tests, reviews, a commit, a person."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from segue.journal import Transaction
from segue.model import events as e
from segue.model.agents import Choices
from segue.model.checkpoint import CheckpointType
from segue.model.codec import decode
from segue.model.errors import WorkspaceError
from segue.model.ids import new_prompt_id
from segue.model.plan import Task
from segue.model.status import Phase, SessionStatus, Trigger, WaitingFor, WorkflowStatus
from segue.orchestrator.run.committing import commit_task
from segue.orchestrator.run.fixing import consult
from segue.orchestrator.run.onlooking import files_of
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.run.reviewing import Round, review
from segue.orchestrator.run.tenure import Tenure
from segue.orchestrator.run.turns import Turns, broken_off
from segue.orchestrator.run.verifying import run_tests
from segue.orchestrator.runtime.agents import fixer_of
from segue.orchestrator.settling.ends import End
from segue.orchestrator.settling.retrying import policy_for, start_over, start_over_as_advised
from segue.orchestrator.settling.settling import write_checkpoint
from segue.protocol.retries import AskPerson, Fixer, Outcome, Retry, Undo, Wait, may_start_over, next_step
from segue.resume.advice import NO_ADVICE, advised
from segue.resume.remarks import not_approved, tests_failed
from segue.snapshot.gather import Occasion
from segue.state.fold import WorkflowState
from segue.workspace.processes import PART
from segue.workspace.worktrees import stands


@dataclass(frozen=True, slots=True)
class _Again:
    """Why the task takes another turn, in words for the agent."""

    text: str


@dataclass(frozen=True, slots=True)
class _Changed:
    """The agent was told something, and changed files: what was found of them before does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """A try at the task that did not hold, and what the next one would be told."""

    what: Outcome
    reason: str
    problem: str
    """What a person is told if there is no next one, without a mark at its end."""
    text: str = ""


class Finishing:
    """Brings a task whose turn is over to its end: done, or before a person."""

    def __init__(
        self,
        tenure: Tenure,
        turns: Turns,
        recorder: Recorder,
        environment: Mapping[str, str],
    ) -> None:
        self._tenure = tenure
        self._house = tenure.house
        self._turns = turns
        self._recorder = recorder
        self._environment = environment
        self._choices = decode(Choices, tenure.workflow.choices)

    async def finish(self, task: Task) -> End | None:
        """None when the task is done; else why the run ends here."""
        phase = self._tenure.live.phase
        phase.move_from({Phase.IDLE}, Phase.FINISHING)
        if (end := await self._seen_to(task)) is None:
            await self._complete(task, await self._committed(task))
        phase.move_from({Phase.FINISHING}, Phase.IDLE)
        return end

    async def _seen_to(self, task: Task) -> End | None:
        """One turn after the other, until the tests pass, the reviewers approve, and nobody has anything to say now."""
        while True:
            problem = await self._tested(task) or await self._told() or await self._reviewed(task) or await self._told()
            if problem is None:
                return None
            end = problem if isinstance(problem, End) else await self._again(task, problem)
            if end is not None:
                return end

    async def _told(self) -> _Changed | End | None:
        """What somebody wants heard now is heard before the task counts as done."""
        if not self._turns.pressing:
            return None
        before = await files_of(self._tenure)
        if (reason := await self._turns.take_messages()) is not None:
            return broken_off(self._tenure.live, reason)
        return _Changed() if before is None or before != await files_of(self._tenure) else None

    async def _again(self, task: Task, problem: _Again | _Changed) -> End | None:
        """Another turn of the same task, after what people have to say."""
        if isinstance(problem, _Changed):
            return None
        if isinstance(end := await self._told(), End):
            return end
        self._tenure.pay_for_a_turn()
        prompt = e.PromptQueued(prompt_id=new_prompt_id(), text=problem.text, task_id=task.id)
        session_id, number = self._tenure.session_id, self._tenure.number
        await self._tenure.write("task.again", lambda t: t.prompts.queue(prompt, session_id, number))
        turn = await self._turns.take(prompt, problem.text)
        return None if turn.reason == "end_turn" else broken_off(self._tenure.live, turn.reason)

    # ── tests ───────────────────────────────────────────────────────────────────────────────────────

    async def _tested(self, task: Task) -> _Again | End | None:
        verify = self._choices.verify
        if verify is None:
            return None
        with self._tenure.live.patient(self._house.clock.now(), verify.seconds):
            verified = await run_tests(self._tenure, self._environment, verify, task)
        ran = verified.ran
        await self._tenure.write("tests.ran", lambda t: self._append(t, ran))
        if ran.passed:
            return None
        failed = _Failed(
            what=Outcome.TESTS_FAILED,
            reason=verified.reason,
            problem=f"“{task.title}” does not pass its tests: {verified.reason}",
            text=tests_failed(ran, verified.reason, verified.tail),
        )
        return await self._after(task, failed)

    # ── reviews ─────────────────────────────────────────────────────────────────────────────────────

    async def _reviewed(self, task: Task) -> _Again | End | None:
        wanted = self._choices.review
        if wanted is None:
            return None
        round_ = await review(self._tenure, self._environment, wanted, task)
        if round_.wrong_approach:
            return await self._after(task, _wrong_approach(task, round_))
        if round_.approved and round_.missing:
            names = ", ".join(round_.missing)
            return self._ask_person(task, f"“{task.title}” was not reviewed by {names}")
        if round_.approved:
            await self._tenure.write("review.passed", lambda t: self._append(t, e.FeedbackAddressed(task_id=task.id)))
            return None
        state = await self._house.journal.state(self._tenure.workflow_id)
        # Also those of runs before: an agent that fails after each review would else be reviewed for ever.
        passes = sum(reviewed == task.id for reviewed, _ in state.rounds)
        if passes < wanted.passes:
            return _Again(not_approved(state.reviews, task))
        return await self._after(task, _not_passed(task, round_, passes))

    # ── what follows a failure ──────────────────────────────────────────────────────────────────────

    async def _after(self, task: Task, failed: _Failed) -> _Again | End:
        """Written down first; then the table of retries says what follows."""
        told = e.StepFailed(step=task.id, what=failed.what, reason=failed.reason)
        await self._tenure.write("task.failed", lambda t: self._append(t, told))
        state = await self._house.journal.state(self._tenure.workflow_id)
        policy, now = policy_for(self._house, self._tenure.workflow), self._house.clock.now()
        match next_step(policy, state.failures, now, self._house.chance(), replans=state.replans):
            case Retry(undo=Undo.NOTHING):
                return _Again(failed.text)
            case Retry():
                return start_over(task.id, failed.reason, now)
            case Fixer() if fixer_of(self._house, self._tenure.workflow) is not None:
                return await self._helped(task, failed, state)
            case Fixer(beside=beside) | AskPerson(beside=beside):
                return self._ask_person(task, f"{failed.problem} ({beside})" if beside else failed.problem)
            case Wait(reason=reason):
                return self._ask_person(task, failed.problem, reason)

    async def _helped(self, task: Task, failed: _Failed, state: WorkflowState) -> _Again | End:
        """A second agent says how it can be done, that it leads nowhere, or that a person has to look."""
        advice = await consult(self._tenure, self._environment, state.failures)
        match advice.verdict:
            case "fix":
                return _Again("\n\n".join([failed.text, *advised(advice, task.id)]))
            case "rewind" if may_start_over(self._house.rules.retries, state.replans):
                return start_over_as_advised(advice, self._house.clock.now())
            case "rewind" | "escalate":
                said = f"A second agent says: {advice.advice}" if advice.advice else NO_ADVICE
                return self._ask_person(task, failed.problem, said)

    def _ask_person(self, task: Task, problem: str, more: str = "") -> End:
        told = f"{problem}. {more}".strip()
        asked = e.PersonAsked(task_id=task.id, question=f"{told} Is it done all the same?", problem=problem)
        return End(WorkflowStatus.REVIEW, told if more else problem, Trigger.PAUSE, asks=asked)

    def _append(self, t: Transaction, event: e.Event) -> None:
        t.append(event, session_id=self._tenure.session_id, run=self._tenure.number)

    # ── done ────────────────────────────────────────────────────────────────────────────────────────

    async def _committed(self, task: Task) -> e.WorkCommitted | e.Warned | None:
        execution = f"{self._tenure.attempt}{PART}commit"
        return await commit_task(self._tenure.workflow, task, self._environment, execution)

    async def _complete(self, task: Task, committed: e.WorkCommitted | e.Warned | None) -> None:
        """Adopt the task's result: the checkpoint and the status, together or not at all."""
        state, workspace = await self._tenure.gather()
        path = Path(self._tenure.workflow.worktree)
        if workspace.commit is None and not stands(path):
            raise WorkspaceError(f"The worktree {path} is gone, and what was done there for “{task.title}” with it.")

        def complete(t: Transaction) -> None:
            if committed is not None:
                self._append(t, committed)
            t.tasks.complete(task.id, self._tenure.attempt, self._tenure.session_id, self._tenure.number)
            write_checkpoint(t, self._tenure.session_id, self._tenure.number, done(task), state, workspace)
            if workspace.problem:
                self._append(t, e.Warned(code="not_saved", message=f"“{task.title}” is done. {workspace.problem}"))
            self._tenure.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)

        await self._tenure.write("task.complete", complete)


def done(task: Task) -> Occasion:
    return Occasion(
        type=CheckpointType.TASK_COMPLETE,
        trigger=Trigger.TASK_COMPLETE,
        reason=f"task {task.id} is done",
        snapshot=False,
        clean_boundary=True,
    )


def _wrong_approach(task: Task, round_: Round) -> _Failed:
    said = next(each.feedback for each in round_.given if each.wrong_approach)
    reason = f"{said.reviewer_persona} says that this way does not lead there"
    problem = f"“{task.title}” went the wrong way, {said.reviewer_persona} says"
    return _Failed(what=Outcome.WRONG_APPROACH, reason=reason, problem=problem)


def _not_passed(task: Task, round_: Round, passes: int) -> _Failed:
    names = ", ".join(each.feedback.reviewer_persona for each in round_.given if not each.feedback.approved)
    times = f"after {passes} review{'' if passes == 1 else 's'}"
    problem = f"“{task.title}” is not approved by {names} {times}"
    return _Failed(what=Outcome.REVIEW_NOT_PASSED, reason=f"not approved by {names} {times}", problem=problem)

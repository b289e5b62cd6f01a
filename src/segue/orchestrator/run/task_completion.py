"""Completion of a task after its turn: tests, reviews, a commit, or a person's decision."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from segue.journal import Transaction
from segue.journal.rows import WorkflowRow
from segue.model import events as e
from segue.model.agents import Choices, CommitPolicy
from segue.model.checkpoint import CheckpointType
from segue.model.codec import decode
from segue.model.crash import crash_point
from segue.model.errors import WorkspaceError
from segue.model.events import Warned, WorkCommitted
from segue.model.ids import new_prompt_id
from segue.model.plan import Task
from segue.model.status import Phase, SessionStatus, Trigger, WaitingFor, WorkflowStatus
from segue.orchestrator.run.fixer import consult
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.run.read_only_guard import files_of
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.run.reviews import review
from segue.orchestrator.run.test_runs import run_tests
from segue.orchestrator.run.turns import Turns, broken_off
from segue.orchestrator.runtime.agents import fixer_of
from segue.orchestrator.settling.recovery import write_checkpoint
from segue.orchestrator.settling.retry_schedule import policy_for, start_over, start_over_as_advised
from segue.orchestrator.settling.run_ends import End
from segue.protocol.retries import AskPerson, Fixer, Retry, Undo, Wait, WorkFailure, may_start_over, next_step
from segue.resume.advice import NO_ADVICE, advised
from segue.resume.remarks import not_approved, tests_failed
from segue.snapshot.gather import Occasion
from segue.state.fold import WorkflowState
from segue.workspace.commits import Commit, commit_all
from segue.workspace.processes import PART
from segue.workspace.worktrees import stands


@dataclass(frozen=True, slots=True)
class _Again:
    """Another turn for the task, with the reason for the agent."""

    text: str


@dataclass(frozen=True, slots=True)
class _Changed:
    """Files changed after a message, so that earlier test and review results do not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """Failed try at the task, and the text for the next try."""

    what: WorkFailure
    reason: str
    problem: str
    """Sentence for a person if there is no next try, without a full stop."""
    text: str = ""


class Finishing:
    """Brings a task whose turn is over to its end: done, or before a person."""

    def __init__(
        self,
        lease: Lease,
        turns: Turns,
        recorder: Recorder,
        environment: Mapping[str, str],
    ) -> None:
        self._lease = lease
        self._services = lease.services
        self._turns = turns
        self._recorder = recorder
        self._environment = environment
        self._choices = decode(Choices, lease.workflow.choices)

    async def finish(self, task: Task) -> End | None:
        """Test, review, commit and complete the task, and return None; or return why the run ends here."""
        phase = self._lease.live.phase
        phase.move_from({Phase.IDLE}, Phase.FINISHING)
        if (end := await self._verify(task)) is None:
            execution = f"{self._lease.attempt}{PART}commit"
            await self._complete(task, await commit_task(self._lease.workflow, task, self._environment, execution))
        phase.move_from({Phase.FINISHING}, Phase.IDLE)
        return end

    async def _verify(self, task: Task) -> End | None:
        """Take turns until the tests pass, the reviewers approve and no urgent message waits; return the end of the
        run if that fails, else None."""
        while True:
            problem = (
                await self._tested(task)
                or await self._take_messages()
                or await self._reviewed(task)
                or await self._take_messages()
            )
            if problem is None:
                return None
            end = problem if isinstance(problem, End) else await self._again(task, problem)
            if end is not None:
                return end

    async def _take_messages(self) -> _Changed | End | None:
        """Send urgent messages before the task counts as done. None: there were none, or no file changed; _Changed:
        check the task again."""
        if not self._turns.pressing:
            return None
        before = await files_of(self._lease)
        if (reason := await self._turns.take_messages()) is not None:
            return broken_off(self._lease.live, reason)
        return _Changed() if before is None or before != await files_of(self._lease) else None

    async def _again(self, task: Task, problem: _Again | _Changed) -> End | None:
        """Send people's messages, then the task again with the problem; None means that the task is checked again.
        After _Changed, send nothing."""
        if isinstance(problem, _Changed):
            return None
        if isinstance(end := await self._take_messages(), End):
            return end
        self._lease.pay_for_a_turn()
        prompt = e.PromptQueued(prompt_id=new_prompt_id(), text=problem.text, task_id=task.id)
        session_id, number = self._lease.session_id, self._lease.number
        await self._lease.write("task.again", lambda t: t.prompts.queue(prompt, session_id, number))
        turn = await self._turns.take(prompt, problem.text)
        return None if turn.reason == "end_turn" else broken_off(self._lease.live, turn.reason)

    # ── tests ───────────────────────────────────────────────────────────────────────────────────────

    async def _tested(self, task: Task) -> _Again | End | None:
        """Run the wanted tests and journal the result. None: passed, or no tests wanted; else the next turn's text
        or the run's end."""
        verify = self._choices.verify
        if verify is None:
            return None
        with self._lease.live.patient(self._services.clock.now(), verify.seconds):
            verified = await run_tests(self._lease, self._environment, verify, task)
        ran = verified.ran
        await self._lease.write("tests.ran", lambda t: self._append(t, ran))
        if ran.passed:
            return None
        failed = _Failed(
            what=WorkFailure.TESTS_FAILED,
            reason=verified.reason,
            problem=f"“{task.title}” does not pass its tests: {verified.reason}",
            text=tests_failed(ran, verified.reason, verified.tail),
        )
        return await self._after(task, failed)

    # ── reviews ─────────────────────────────────────────────────────────────────────────────────────

    async def _reviewed(self, task: Task) -> _Again | End | None:
        """Ask the wanted reviewers about the task. None: approved, or no review wanted; else the next turn's text or
        the run's end."""
        wanted = self._choices.review
        if wanted is None:
            return None
        round_ = await review(self._lease, self._environment, wanted, task)
        if round_.wrong_approach:
            reviewer = next(each.feedback.reviewer_persona for each in round_.given if each.wrong_approach)
            failed = _Failed(
                what=WorkFailure.WRONG_APPROACH,
                reason=f"{reviewer} says that this way does not lead there",
                problem=f"“{task.title}” went the wrong way, {reviewer} says",
            )
            return await self._after(task, failed)
        if round_.approved and round_.missing:
            names = ", ".join(round_.missing)
            return self._ask_person(task, f"“{task.title}” was not reviewed by {names}")
        if round_.approved:
            await self._lease.write("review.passed", lambda t: self._append(t, e.FeedbackAddressed(task_id=task.id)))
            return None
        state = await self._services.journal.state(self._lease.workflow_id)
        # Also those of runs before: an agent that fails after each review would else be reviewed for ever.
        passes = sum(reviewed == task.id for reviewed, _ in state.rounds)
        if passes < wanted.passes:
            return _Again(not_approved(state.reviews, task))
        names = ", ".join(each.feedback.reviewer_persona for each in round_.given if not each.feedback.approved)
        reason = f"not approved by {names} after {passes} review{'' if passes == 1 else 's'}"
        problem = f"“{task.title}” is {reason}"
        return await self._after(task, _Failed(what=WorkFailure.REVIEW_NOT_PASSED, reason=reason, problem=problem))

    # ── what follows a failure ──────────────────────────────────────────────────────────────────────

    async def _after(self, task: Task, failed: _Failed) -> _Again | End:
        """Record the failure, then follow the table of retries: another turn, a fresh start, a fixer's advice, or a
        question to a person."""
        event = e.StepFailed(step=task.id, what=failed.what, reason=failed.reason)
        await self._lease.write("task.failed", lambda t: self._append(t, event))
        state = await self._services.journal.state(self._lease.workflow_id)
        policy, now = policy_for(self._services, self._lease.workflow), self._services.clock.now()
        match next_step(policy, state.failures, now, self._services.chance(), replans=state.replans):
            case Retry(undo=Undo.NOTHING):
                return _Again(failed.text)
            case Retry():
                return start_over(task.id, failed.reason, now)
            case Fixer() if fixer_of(self._services, self._lease.workflow) is not None:
                return await self._helped(task, failed, state)
            case Fixer(beside=beside) | AskPerson(beside=beside):
                return self._ask_person(task, f"{failed.problem} ({beside})" if beside else failed.problem)
            case Wait(reason=reason):
                return self._ask_person(task, failed.problem, reason)

    async def _helped(self, task: Task, failed: _Failed, state: WorkflowState) -> _Again | End:
        """Ask a second agent, and follow its advice: another turn with it, a fresh start if one is left, or a
        question to a person."""
        advice = await consult(self._lease, self._environment, state.failures)
        match advice.verdict:
            case "fix":
                return _Again("\n\n".join([failed.text, *advised(advice, task.id)]))
            case "rewind" if may_start_over(self._services.rules.retries, state.replans):
                return start_over_as_advised(advice, self._services.clock.now())
            case "rewind" | "escalate":
                more = f"A second agent says: {advice.advice}" if advice.advice else NO_ADVICE
                return self._ask_person(task, failed.problem, more)

    def _ask_person(self, task: Task, problem: str, more: str = "") -> End:
        """Return the end of a run that leaves the workflow in review with a question to a person about the task."""
        text = f"{problem}. {more}".strip()
        asked = e.PersonAsked(task_id=task.id, question=f"{text} Is it done all the same?", problem=problem)
        return End(WorkflowStatus.REVIEW, text if more else problem, Trigger.PAUSE, asks=asked)

    def _append(self, t: Transaction, event: e.Event) -> None:
        """Append an event of the lease's session and run."""
        t.append(event, session_id=self._lease.session_id, run=self._lease.number)

    # ── done ────────────────────────────────────────────────────────────────────────────────────────

    async def _complete(self, task: Task, committed: e.WorkCommitted | e.Warned | None) -> None:
        """Write the completed task, its commit event, checkpoint and session status together; raise if the worktree
        is gone."""
        state, workspace = await self._lease.gather()
        path = Path(self._lease.workflow.worktree)
        if workspace.commit is None and not stands(path):
            raise WorkspaceError(f"The worktree {path} is gone, and what was done there for “{task.title}” with it.")

        def complete(t: Transaction) -> None:
            if committed is not None:
                self._append(t, committed)
            t.tasks.complete(task.id, self._lease.attempt, self._lease.session_id, self._lease.number)
            write_checkpoint(t, self._lease.session_id, self._lease.number, done(task), state, workspace)
            if workspace.problem:
                self._append(t, e.Warned(code="not_saved", message=f"“{task.title}” is done. {workspace.problem}"))
            self._lease.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)

        await self._lease.write("task.complete", complete)


async def commit_task(
    row: WorkflowRow, task: Task, environment: Mapping[str, str], execution: str
) -> WorkCommitted | Warned | None:
    """Commit a task's files and return the event or warning for the journal; None if not wanted or nothing changed.
    After a crash in between, the commit exists and the next try finds nothing to commit."""
    if decode(Choices, row.choices).commit is not CommitPolicy.TASK:
        return None
    wanted = Commit(
        branch=row.branch,
        title=task.title,
        body=row.title if row.title != task.title else "",
        environment=environment,
        execution=execution,
    )
    try:
        committed = await commit_all(Path(row.worktree), wanted)
    except WorkspaceError as error:
        message = f"“{task.title}” is done and was not committed: {error.message} {error.hint}".strip()
        return Warned(code="not_committed", message=message)
    crash_point("work.committed")
    if committed is None:
        return None
    return WorkCommitted(task_id=task.id, commit=committed.commit, files=committed.files)


def done(task: Task) -> Occasion:
    """Build the occasion of a finished task's checkpoint."""
    return Occasion(
        type=CheckpointType.TASK_COMPLETE,
        trigger=Trigger.TASK_COMPLETE,
        reason=f"task {task.id} is done",
        snapshot=False,
        clean_boundary=True,
    )

"""Bringing agents back: one way in, whoever asks.

A workflow is resumed, a session is opened, somebody says something, or says it again because the agent was gone by
then: all of them come through `_launch`, which holds the workflow's lock from the look at what there is to the run it
queues. So two that ask at once make one launch, and the second gets the first one's answer.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

import anyio

from segue.drivers.environment import allowed
from segue.journal import Transaction
from segue.journal.reading import queued_prompt
from segue.journal.rows import RunRow, WorkflowRow, open_runs, prompt_by_id, session_by_id
from segue.model.agents import AgentConfiguration, Choices
from segue.model.checkpoint import Checkpoint
from segue.model.codec import decode
from segue.model.crash import crash_point
from segue.model.errors import BadInput, SegueError, WrongState
from segue.model.events import (
    PersonAnswered,
    PlanReopened,
    Price,
    PromptQueued,
    PromptSent,
    RetryScheduled,
    RunEnded,
    RunQueued,
    Warned,
)
from segue.model.ids import PromptId, Seq, SessionId, WorkflowId, new_prompt_id, new_session_id
from segue.model.plan import TaskStatus
from segue.model.status import (
    Carrying,
    Failure,
    PromptStatus,
    Purpose,
    Role,
    RunStatus,
    SessionStatus,
    Trigger,
    Way,
    WorkflowStatus,
)
from segue.model.views import Prompted, Resumed, Successor, WorkspaceRestored
from segue.orchestrator import forking, projections, rewinding
from segue.orchestrator.agents import agent_named, choices_for
from segue.orchestrator.alongside import both
from segue.orchestrator.contexts import Present
from segue.orchestrator.house import DIVERGED, House, Stop
from segue.orchestrator.limits import limits_of, refuse_if_used_up
from segue.orchestrator.permissions import answer_question
from segue.orchestrator.reviewing import helpers_variables
from segue.orchestrator.rewinding import TakenBack
from segue.orchestrator.secrets import refuse_secrets
from segue.resume.history import KINDS as HISTORY_KINDS
from segue.resume.history import history
from segue.resume.planner import Means, ResumePlan, plan_resume
from segue.resume.planning import planning_prompt
from segue.resume.prompts import Occasion, task_prompt
from segue.state.fold import TELLING, SessionState, WorkflowState
from segue.state.moves import SESSION_ENDED
from segue.workspace.comparison import divergence
from segue.workspace.git import read_state
from segue.workspace.programs import require_program
from segue.workspace.worktrees import ensure_worktree, require_worktree

W = WorkflowStatus

RESUMABLE: Mapping[Purpose, frozenset[WorkflowStatus]] = {
    Purpose.WORK: frozenset({W.PAUSED, W.FAILED, W.REVIEW, W.PENDING}),
    Purpose.TALK: frozenset({W.PAUSED, W.FAILED, W.REVIEW, W.BLOCKED}),
}
ON_ITS_WAY = frozenset({SessionStatus.CREATED, SessionStatus.STARTING, SessionStatus.SUSPENDED, SessionStatus.FAILED})
"""Where a session is whose run was queued and whose agent is not up yet."""


GONE = frozenset({Failure.PROCESS_EXITED, Failure.TRANSPORT_LOST})
"""An agent that was awake turned out not to be there any more."""


class Leaving(WrongState):
    """The agent is being put away just now."""

    hint = "Try again in a moment."


class AtWork(WrongState):
    """An agent is at work on it."""

    hint = "Pause it first: segue pause."


class Overtaken(WrongState):
    """Somebody else has decided how it goes on."""


class FilesMoving(WrongState):
    """The workflow's files are being put in place just now."""

    hint = "Try again in a moment."


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is wanted, and with whose variables."""

    purpose: Purpose
    environment: Mapping[str, str]
    way: Way | None = None
    agent: AgentConfiguration
    choices: Choices | None = None
    """What is chosen for an agent that takes over from another; None keeps what was chosen before."""
    back: TakenBack | None = None
    """The files were taken back for this; what is left is to write it down."""
    due: datetime | None = None
    """The retry that this is; it is made only while it stands scheduled for then."""
    word: Callable[[Transaction], None] | None = None
    """Writes down what somebody said and the work waited for; it is not said without the run that follows from it."""
    reason: str = "resumed"
    reopens: str = ""
    """Why what is left is planned again, if it is."""


async def means_of(house: House, state: WorkflowState, workflow_id: WorkflowId, agent: AgentConfiguration) -> Means:
    """What there is to go back with."""
    session = state.session
    assert session is not None, "a workflow is created with its first session"
    records = await house.hearings.last_records(workflow_id, HISTORY_KINDS, state)
    standing = await house.journal.standing(workflow_id, state)
    return Means(
        session=session,
        agent=agent,
        budget=house.rules.context_budget if standing else None,
        history=history(records, house.rules.history),
        request=_request(state, standing, house.rules.plan_tasks),
        original=await forking.original(house, state),
    )


def _request(state: WorkflowState, checkpoint: Checkpoint | None, most: int) -> int:
    """Characters of the prompt that a new conversation would begin with."""
    occasion = Occasion(way=Way.FRESH, checkpoint=checkpoint, git=checkpoint.git if checkpoint else None)
    if state.issue is not None and state.planning is not None:
        return len(planning_prompt(state.issue, state.planning, state.marks, occasion, most))
    if state.issue is None or state.plan is None or state.next_task is None:
        return 0
    return len(task_prompt(state.issue, state.plan, state.next_task, occasion))


def queue(
    house: House,
    t: Transaction,
    session_id: SessionId,
    plan: ResumePlan,
    purpose: Purpose,
    environment: Mapping[str, str],
) -> int:
    """The next run of a session, in the journal and with the engine; the variables are for this run alone."""
    queued = RunQueued(way=plan.way, reason=plan.reason, purpose=purpose, prices=plan.prices)
    number = t.queue_run(session_id, queued, house.boot)
    house.environments[session_id, number] = environment
    if purpose is Purpose.WORK:
        house.kept_environments.pop(t.workflow_id, None)
    house.engine.enqueue(t, session_id, number)
    return number


class Resuming:
    """The four entry points."""

    def __init__(self, house: House) -> None:
        self.house = house
        self._journal = house.journal
        self._files_moving: set[WorkflowId] = set()
        """Workflows whose files are being put in place; no agent is started there meanwhile."""

    async def resume(
        self,
        name: str,
        environment: Mapping[str, str],
        way: Way | None,
        successor: Successor | None,
        snapshot: str | None = None,
    ) -> Resumed:
        """The user's word to go on with the plan, with the same agent or another, from here or from a snapshot."""
        row = await self._journal.workflow(name)
        if (waiting := await self._block_again(row, as_it_is=not (way or successor or snapshot))) is not None:
            return waiting
        ask = self._ask(row, Purpose.WORK, environment, way, successor)
        if ask.choices is not None:
            refuse_secrets(ask.choices)
        await self._finish_fork(row, environment)
        if snapshot is not None:
            return await self._go_back(row, ask, snapshot)
        if way is not None or ask.agent.name != row.agent:
            await self.put_away(row.id, "the work goes on another way")
            return await self._launch(row, ask)
        return await self._go_on(row, ask)

    async def try_again(self, row: WorkflowRow, due: datetime) -> None:
        """A retry whose time has come; unless somebody was quicker, it goes the way of everybody who resumes."""
        environment = self.house.kept_environments.get(row.id, self.house.environment)
        ask = replace(self._ask(row, Purpose.WORK, environment), due=due)
        with suppress(Overtaken):
            await self._go_on(row, ask)

    async def _go_on(self, row: WorkflowRow, ask: Ask) -> Resumed:
        """As the retry says that was scheduled, if there was one."""
        retry = (await self._journal.state(row.id)).retry
        if retry is None or not retry.rewind:
            return await self._launch(row, ask)
        return await self._start_over(row, ask, retry)

    async def _start_over(self, row: WorkflowRow, ask: Ask, retry: RetryScheduled) -> Resumed:
        """The work goes back to before the step that went wrong, and what is left is planned again."""
        ask = replace(ask, reopens=retry.reason)
        target = await rewinding.before_task(self.house, row, retry.step)
        if target is None:
            return await self._launch(row, ask)
        await rewinding.require_worktree_of(row, target)

        def admit(t: Transaction) -> None:
            _refuse_if_overtaken(t, ask)
            _refuse_at_work(t)

        with self._alone_with(row.id):
            await self.put_away(row.id, "the work is taken back")
            back = await rewinding.take_back(self.house, row, target, admit)
            return await self._launch(row, replace(ask, back=back))

    async def after_a_word(
        self, row: WorkflowRow, environment: Mapping[str, str], word: Callable[[Transaction], None], reason: str
    ) -> Resumed:
        """Go on because somebody said what the work waited for; that is the user's word to start an agent, too."""
        ask = self._ask(row, Purpose.WORK, environment)
        return await self._launch(row, replace(ask, word=word, reason=reason))

    async def _block_again(self, row: WorkflowRow, *, as_it_is: bool) -> Resumed | None:
        """A plan that waited for a word before the pause waits for it after; no agent is started for that."""
        state = await self._journal.state(row.id)

        def block(t: Transaction) -> Resumed | None:
            now = t.catch_up(state)
            if t.workflow.status is not W.PAUSED or now.planning is None or now.planning.proposed is None:
                return None
            if not as_it_is:
                hint = f"Bring it back first (segue resume {row.slug}), then approve or reject it."
                raise WrongState("Its plan waits for a word before anything else.", hint=hint)
            t.move_workflow(W.BLOCKED, reason="its plan waits for approval, as it did before the pause")
            return _blocked(t, now, row)

        return await self._journal.transact(row.id, block)

    async def open(self, session_id: str, environment: Mapping[str, str]) -> Resumed:
        """Bring the agent of a session back, and ask nothing of it."""
        row = await self._workflow_of(session_id)
        return await self._launch(row, self._ask(row, Purpose.TALK, environment))

    async def prompt(
        self, name: str, text: str, environment: Mapping[str, str], wait: bool = True, now: bool = False
    ) -> Prompted:
        """Say something to a workflow's agent, which is brought back for it if it is gone.

        Without `wait`, an agent that is in the middle of a task is not waited for: the words are on disk, and it gets
        them at the end of the task. With `now`, it is interrupted, gets them, and goes on with the task after.
        """
        if not text.strip():
            raise BadInput("There is nothing to say.", hint="Give the words: segue prompt 'What is left to do?'")
        row = await self._journal.workflow(name)
        if (answered := await self._answer_in_words(row, text)) is not None:
            return answered
        said = PromptQueued(prompt_id=new_prompt_id(), text=text)
        ask = self._ask(row, Purpose.TALK, environment)
        head = await self._journal.head(row.id)
        launched = await self._launch(row, ask, lambda t: t.queue_prompt(said, t.session.id, None))
        crash_point("prompt.queued")
        if now and (live := self.house.live.get(row.id)) is not None:
            live.urgent.put_nowait(said.prompt_id)
        at_work = launched.status == "joined" and row.status is W.IN_PROGRESS
        return await self._until_delivered(row, ask, launched, said.prompt_id, head, 0 if at_work and not wait else 1)

    async def prompt_session(
        self, session_id: str, text: str, environment: Mapping[str, str], wait: bool = True, now: bool = False
    ) -> Prompted:
        return await self.prompt((await self._workflow_of(session_id)).id, text, environment, wait, now)

    async def restore_workspace(self, name: str) -> WorkspaceRestored:
        """The worktree alone, for people to look at; no agent is started."""
        row = await self._journal.workflow(name)
        await require_worktree(Path(row.repository), Path(row.worktree), row.branch, here=row.here)
        if not row.here:
            await ensure_worktree(Path(row.repository), Path(row.worktree), row.branch)
        return WorkspaceRestored(workflow_id=row.id, worktree=row.worktree, branch=row.branch)

    async def _workflow_of(self, session_id: str) -> WorkflowRow:
        """The workflow whose current session this is: an older one is never woken again."""
        session = await self._journal.read(lambda c: session_by_id(c, session_id))
        row = await self._journal.workflow(session.workflow_id)
        if session.role is not Role.WRITER:
            raise WrongState(
                f"This session was a {session.role}'s, and is over.", hint=f"Talk to the workflow itself: {row.slug}."
            )
        if session.number != row.session_count:
            raise WrongState(
                f"Session {session.number} was followed by session {row.session_count}.",
                hint=f"Talk to the workflow itself: {row.slug}.",
            )
        return row

    def _ask(
        self,
        row: WorkflowRow,
        purpose: Purpose,
        environment: Mapping[str, str],
        way: Way | None = None,
        successor: Successor | None = None,
    ) -> Ask:
        agent = agent_named(self.house, successor.agent if successor else row.agent)
        require_program(agent.command[0], environment, hint=agent.install)
        choices = choices_for(successor, row) if successor else None
        return Ask(purpose=purpose, environment=environment, way=way, agent=agent, choices=choices)

    # ── going back ──────────────────────────────────────────────────────────────────────────────────

    async def _go_back(self, row: WorkflowRow, ask: Ask, name: str) -> Resumed:
        """Everything that can be refused is refused before a file is touched."""
        await self._refuse_while_at_work(row)
        target = await rewinding.target(self.house, row, name)
        await rewinding.require_worktree_of(row, target)
        foreseen = rewinding.foreseen(await self._journal.state(row.id), target)
        means = await means_of(self.house, foreseen, row.id, ask.agent)
        plan_resume(replace(means, goes_back=True), ask.way)
        with self._alone_with(row.id):
            await self.put_away(row.id, f"the work is taken back to {target.checkpoint.id}")
            back = await rewinding.take_back(self.house, row, target, _refuse_at_work)
            launched = await self._launch(row, replace(ask, back=back))
        return replace(launched, saved=back.event.saved, undone=back.event.undone, left_alone=back.left_alone)

    async def _refuse_while_at_work(self, row: WorkflowRow) -> None:
        """An agent that only talks makes room; one that works does not."""
        runs = await self._journal.read(lambda c: open_runs(c, row.id))
        if any(run.purpose is Purpose.WORK for run in runs):
            raise AtWork(f"{row.agent} is at work on it.")
        if not runs:
            refuse_unless_resumable(row, Purpose.WORK)

    @contextmanager
    def _alone_with(self, workflow_id: WorkflowId) -> Generator[None]:
        if workflow_id in self._files_moving:
            raise FilesMoving
        self._files_moving.add(workflow_id)
        try:
            yield
        finally:
            self._files_moving.discard(workflow_id)

    async def _finish_fork(self, row: WorkflowRow, environment: Mapping[str, str]) -> None:
        """A fork whose server died before its files were there gets them now."""
        if row.status is W.PENDING and (await self._journal.state(row.id)).forked_from is not None:
            with self._alone_with(row.id):
                await forking.prepare(self.house, row, environment)

    # ── the one path ────────────────────────────────────────────────────────────────────────────────

    async def _launch(self, row: WorkflowRow, ask: Ask, then: Callable[[Transaction], None] | None = None) -> Resumed:
        """A look at what there is, the run that follows from it, and what else belongs to it, in one transaction."""
        state = await self._journal.state(row.id)
        if ask.purpose is Purpose.WORK:
            refuse_if_used_up(limits_of(row), state, self.house.clock.now())
        after = rewinding.after(state, ask.back.event) if ask.back else state
        means, changes = await both(
            lambda: means_of(self.house, after, row.id, ask.agent), lambda: self._divergence(after, row.id)
        )
        child = new_session_id(self.house.clock.now())

        def go_on(t: Transaction) -> Resumed:
            if ask.back is None and t.workflow_id in self._files_moving:
                raise FilesMoving
            _refuse_if_overtaken(t, ask)
            if then is not None:
                _refuse_a_longer_line(t, self.house.rules.messages_waiting)
            if ask.word is not None:
                ask.word(t)
            elif ask.purpose is Purpose.WORK:
                _give_back(t, state)
            launched = self._join(t, ask, state) or self._begin(t, ask, replace(means, session=_now(t, state)), child)
            if then is not None:
                then(t)
            if launched.status == "resumed":
                for sentence in changes:
                    warning = Warned(code=DIVERGED, message=sentence)
                    t.append(warning, session_id=launched.session, run=launched.run)
            return replace(
                launched,
                paused_at=row.paused_at,
                tasks_done=sum(task.status is TaskStatus.COMPLETED for task in t.tasks),
                tasks_remaining=sum(task.status is not TaskStatus.COMPLETED for task in t.tasks),
                divergence=changes,
            )

        crash_point("resume.before")
        launched = await self._past_leavers(row.id, go_on)
        crash_point("resume.after")
        await self.house.engine.look()
        if (live := self.house.live.get(row.id)) is not None:
            live.spoken.set()
        if launched.session != state.current_session and state.current_session is not None:
            await projections.refresh(self.house, state.current_session)
        return launched

    async def _past_leavers(self, workflow_id: WorkflowId, go_on: Callable[[Transaction], Resumed]) -> Resumed:
        """An agent that is being put away is not asked to stay: its run comes to its end first."""
        try:
            return await self._journal.transact(workflow_id, go_on)
        except Leaving:
            await self._until_gone(workflow_id)
            return await self._journal.transact(workflow_id, go_on)

    async def _until_gone(self, workflow_id: WorkflowId) -> None:
        if (live := self.house.live.get(workflow_id)) is not None:
            with anyio.move_on_after(self.house.rules.delivery_wait):
                await live.done.wait()

    def _join(self, t: Transaction, ask: Ask, state: WorkflowState) -> Resumed | None:
        """The run that is there already, if there is one that serves; nothing is started twice."""
        run = t.open_run
        if run is None:
            if ask.word is None:
                refuse_unless_resumable(t.workflow, ask.purpose)
            return None
        if ask.back is not None:
            _refuse_at_work(t)
        if run.purpose is Purpose.LEAVING:
            raise Leaving
        if ask.purpose is Purpose.WORK and ask.agent.name != t.session.agent:
            raise AtWork(f"{t.session.agent} is at work on it.")
        if ask.way not in (None, run.way):
            raise WrongState(f"The agent is on its way back already, by another way ({run.way}).", hint="Try again.")
        if ask.purpose is Purpose.WORK and run.purpose is Purpose.TALK:
            t.repurpose(run.session_id, run.number, Purpose.WORK)
            t.cancel_retry(state, "it goes on now, with the agent that is awake")
            if t.workflow.pause_trigger is not None:
                t.withdraw_pause()
            if t.workflow.status is not W.IN_PROGRESS:
                t.move_workflow(W.IN_PROGRESS, reason=ask.reason)
            return _answer(t, run, "resumed", "the agent is awake already")
        if ask.purpose is Purpose.WORK and t.session.status not in ON_ITS_WAY and run.status is not RunStatus.QUEUED:
            refuse_unless_resumable(t.workflow, ask.purpose)
        return _answer(t, run, "joined", "it was on its way already")

    async def put_away(self, workflow_id: WorkflowId, reason: str) -> None:
        """An agent that waits for a word makes room."""
        live = self.house.live.get(workflow_id)
        runs = await self._journal.read(lambda c: open_runs(c, workflow_id))
        if live is not None and runs and runs[0].purpose is not Purpose.WORK:
            live.tear_away(Stop(trigger=Trigger.PAUSE, reason=reason))
            await self._until_gone(workflow_id)

    def _begin(self, t: Transaction, ask: Ask, means: Means, child: SessionId) -> Resumed:
        session = means.session
        if ask.choices is None and ask.agent.name != t.workflow.agent:
            raise WrongState(f"{t.workflow.agent} has taken it over just now.", hint="Try again.")
        if ask.back is not None:
            means = replace(means, goes_back=True)
            t.rewind(ask.back.event)
            _say_again(t)
        if ask.reopens:
            t.append(PlanReopened(reason=ask.reopens))
        if ask.way is Way.NATIVE and session.token is None and session.refused_tokens:
            t.retry_token(t.session.id, session.refused_tokens[-1])
            means = replace(means, session=replace(session, token=session.refused_tokens[-1]))
        plan = plan_resume(means, ask.way)
        session_id = self._session_for(t, plan, child, ask, means.session)
        if ask.purpose is Purpose.WORK and t.workflow.status is not W.PENDING:
            t.move_workflow(W.IN_PROGRESS, reason=ask.reason)
        choices = decode(Choices, t.workflow.choices)
        wanted = (*ask.agent.environment, *choices.variables, *helpers_variables(self.house, choices))
        queue(self.house, t, session_id, plan, ask.purpose, allowed(ask.environment, wanted))
        run = t.open_run
        assert run is not None, "it was queued just now"
        return _answer(t, run, "resumed", plan.reason, plan.prices)

    def _session_for(
        self, t: Transaction, plan: ResumePlan, child: SessionId, ask: Ask, session: SessionState
    ) -> SessionId:
        """The session itself, or a child that takes over from it."""
        parent = t.session
        over = parent.status in SESSION_ENDED | {SessionStatus.FAILED}
        if plan.way is Way.NATIVE or (plan.way is Way.FIRST and not over):
            return parent.id
        carrying = Carrying.NEEDED if plan.way in TELLING else Carrying.NOTHING
        if plan.way is Way.FORK:
            t.will_carry(parent.id, carrying)
            return parent.id
        if session.unborn and not over and ask.choices is None and ask.back is None:
            t.will_carry(parent.id, carrying)
            return parent.id
        if not over and parent.status is not SessionStatus.CREATED:
            t.move_session(parent.id, SessionStatus.COMPLETED, reason="handed over")
        if ask.choices is not None:
            t.change_agent(ask.agent.name, ask.choices)
        t.create_session(child, ask.agent.name, parent.id, carrying, ask.choices)
        return child

    async def present(self, row: WorkflowRow) -> Present:
        """What a successor would find in the worktree now."""
        state = await self._journal.state(row.id)
        now = self.house.clock.now()
        if state.worktree is None:
            return Present(git=None, at=now)
        try:
            git = await read_state(Path(state.worktree), state.base)
        except SegueError as error:
            return Present(git=None, at=now, divergence=(error.message,))
        return Present(git=git, at=now, divergence=await self._divergence(state, row.id))

    async def _divergence(self, state: WorkflowState, workflow_id: WorkflowId) -> tuple[str, ...]:
        standing = await self._journal.standing(workflow_id, state)
        if standing is None or standing.git is None or state.worktree is None:
            return ()
        try:
            return await divergence(Path(state.worktree), standing.git, standing.commit)
        except SegueError as error:
            # The worktree may be gone; the run makes it again or says why not.
            return (error.message,)

    # ── after something was said ────────────────────────────────────────────────────────────────────

    async def _answer_in_words(self, row: WorkflowRow, text: str) -> Prompted | None:
        """What is said while a question is open that may be answered in words is the answer to it."""
        state = await self._journal.state(row.id)
        session = state.session
        asked = next((id for id, each in session.questions.items() if each.words), None) if session else None
        if asked is None or state.current_session is None or row.id not in self.house.live:
            return None
        question = await answer_question(self.house, row.id, asked, allow=True, by="user", words=text)
        if question is None:
            return None
        return Prompted(
            status="answered", workflow_id=row.id, session=state.current_session, reason=f"It answers: {question.title}"
        )

    async def _until_delivered(
        self, row: WorkflowRow, ask: Ask, launched: Resumed, prompt_id: PromptId, head: Seq, patience: float
    ) -> Prompted:
        """Until the agent has it. A talk that was over just before, or whose agent was gone, is followed by another,
        once."""
        answer = Prompted(
            status="waiting",
            workflow_id=row.id,
            session=launched.session,
            prompt_id=prompt_id,
            way=launched.way if launched.status == "resumed" else None,
            reason="The agent gets it at the end of what it does now.",
        )
        joined_a_talk = launched.status == "joined" and row.status is not W.IN_PROGRESS
        with anyio.move_on_after(self.house.rules.delivery_wait * patience):
            ended = await self._sent_or_ended(launched, prompt_id, head)
            if ended is not None and (ended.outcome == "talked" or (joined_a_talk and ended.failure in GONE)):
                again = await self._launch(row, ask)
                answer = replace(answer, session=again.session, way=again.way)
                ended = await self._sent_or_ended(again, prompt_id, head)
            if ended is None:
                return replace(answer, status="sent", reason="")
            return await self._not_taken(row, prompt_id, answer, ended)
        return answer

    async def _not_taken(self, row: WorkflowRow, prompt_id: PromptId, answer: Prompted, ended: RunEnded) -> Prompted:
        """Words wait for the next run, unless there will be none."""
        if ended.outcome in ("paused", "asked"):
            return replace(answer, reason="The workflow stopped; the agent gets it when the work goes on.")
        if ended.outcome in ("completed", "cancelled"):
            await self._journal.transact(row.id, lambda t: _withdraw(t, prompt_id))
        return replace(answer, status="not_delivered", reason=ended.reason or f"The workflow is {ended.outcome}.")

    async def _sent_or_ended(self, launched: Resumed, prompt_id: PromptId, head: Seq) -> RunEnded | None:
        """None when it was sent; else how the run ended that was to take it."""
        async for record in self._journal.follow(launched.workflow_id, head):
            match record.event:
                case PromptSent(prompt_id=sent) if sent == prompt_id:
                    return None
                case RunEnded() if (record.session_id, record.run) == (launched.session, launched.run):
                    return record.event
                case _:
                    pass
        raise AssertionError("a journal is followed for ever")


def _refuse_a_longer_line(t: Transaction, most: int) -> None:
    """Before a run is queued: what is refused later leaves variables behind that nobody needs."""
    if len(t.messages) >= most:
        raise WrongState(
            f"{most} messages wait for the agent already; this one was not taken.",
            hint="Wait until it has read some: `segue logs -f` shows that.",
        )


def _give_back(t: Transaction, state: WorkflowState) -> None:
    """Whoever goes on without answering what becomes of a task wants it tried again."""
    if (asked := t.catch_up(state).asked) is not None:
        t.append(PersonAnswered(task_id=asked.task_id, approved=False))


def _withdraw(t: Transaction, prompt_id: PromptId) -> None:
    if prompt_by_id(t.connection, prompt_id).status is PromptStatus.QUEUED:
        t.move_prompt(prompt_id, PromptStatus.NOT_SENT, t.session.id, None)


def _say_again(t: Transaction) -> None:
    """What somebody said and nobody got yet belongs to what comes now, and not to what was undone."""
    for message in t.messages:
        words = queued_prompt(t.connection, message.id).text
        t.move_prompt(message.id, PromptStatus.NOT_SENT, message.session_id, None)
        t.queue_prompt(PromptQueued(prompt_id=new_prompt_id(), text=words), t.session.id, None)


def _refuse_if_overtaken(t: Transaction, ask: Ask) -> None:
    if ask.due is not None and t.workflow.retry_at != ask.due:
        raise Overtaken


def _refuse_at_work(t: Transaction) -> None:
    if t.open_run is not None:
        raise AtWork(f"{t.session.agent} is at work on it.")
    refuse_unless_resumable(t.workflow, Purpose.WORK)


def _now(t: Transaction, state: WorkflowState) -> SessionState:
    return t.catch_up(state).sessions[t.session.id]


def _answer(
    t: Transaction, run: RunRow, status: Literal["resumed", "joined"], reason: str, prices: tuple[Price, ...] = ()
) -> Resumed:
    return Resumed(
        status=status,
        workflow_id=t.workflow_id,
        session=run.session_id,
        session_number=t.session.number,
        agent=t.session.agent,
        run=run.number,
        way=run.way,
        reason=reason,
        prices=prices,
        paused_at=None,
        tasks_done=0,
        tasks_remaining=0,
    )


def _blocked(t: Transaction, state: WorkflowState, row: WorkflowRow) -> Resumed:
    """What there is instead of a run: a plan, and a question."""
    return Resumed(
        status="blocked",
        workflow_id=row.id,
        session=t.session.id,
        session_number=t.session.number,
        agent=t.session.agent,
        run=t.session.run_count,
        way=(state.session.way if state.session else None) or Way.FIRST,
        reason="its plan waits for a word; no agent was started",
        paused_at=row.paused_at,
        tasks_done=len(state.finished),
        tasks_remaining=len(state.tasks) - len(state.finished),
    )


def refuse_unless_resumable(row: WorkflowRow, purpose: Purpose) -> None:
    if row.status in RESUMABLE[purpose]:
        return
    hints = {
        W.IN_PROGRESS: "`segue logs -f` follows it.",
        W.PENDING: "`segue resume` starts it.",
        W.BLOCKED: "Its plan waits for your word: `segue approve`, or `segue reject` with a reason.",
        W.COMPLETED: "Go on from it in a new workflow: `segue sessions fork`.",
        W.CANCELLED: "Go on from it in a new workflow: `segue sessions fork`.",
    }
    what = "resume" if purpose is Purpose.WORK else "talk to"
    raise WrongState(f"The workflow is {row.status}; there is nothing to {what}.", hint=hints.get(row.status, ""))

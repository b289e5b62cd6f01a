"""The plan that an agent proposes: asked for, read, checked by code, and put to a person or taken at once."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from segue.journal import Transaction
from segue.model import events as e
from segue.model.agents import Choices
from segue.model.checkpoint import CheckpointType
from segue.model.codec import decode
from segue.model.errors import BadPlan
from segue.model.ids import PromptId, TaskId, new_prompt_id
from segue.model.plan import PLANNING, Plan, Task, TaskStatus
from segue.model.status import SessionStatus, Trigger, WaitingFor, WorkflowStatus
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.run.read_only_guard import changes_since, files_of
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.run.turns import PLAN_TURN, Turns, broken_off
from segue.orchestrator.runtime.plan_text import counted, read_plan
from segue.orchestrator.settling.recovery import write_checkpoint
from segue.orchestrator.settling.run_ends import End
from segue.resume.planning import planning_prompt, repair_plan
from segue.resume.prompts import Occasion as PromptOccasion
from segue.snapshot.extraction import Text, Texts, Unreadable, read_object
from segue.snapshot.gather import Occasion
from segue.state.fold import WorkflowState

ONE_TASK = "the issue is one task"
KEPT = "what was planned before is tried again"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


# ── what is proposed ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedTask:
    """Task of a proposed plan, as the agent wrote it."""

    id: str
    title: str
    description: Text = ""
    depends_on: Texts = ()
    expected_failures: Texts = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Plan as the agent wrote it."""

    tasks: tuple[ProposedTask, ...]


def read_proposal(text: str, done: Sequence[Task], most: int) -> Plan | Unreadable:
    """Return the plan in an agent's answer, after the finished tasks; or its problem, in a sentence for the agent."""
    proposal = read_object(text, Proposal, ("tasks",))
    if isinstance(proposal, Unreadable):
        return proposal
    if not proposal.tasks:
        return Unreadable("It has no tasks.")
    if len(proposal.tasks) > most:
        return Unreadable(f"It has {len(proposal.tasks)} tasks, and there may be {most} at most.")
    try:
        return Plan(tasks=(*done, *map(_task, proposal.tasks)))
    except BadPlan as error:
        return Unreadable(f"{error.message} {error.hint}")


def _task(proposed: ProposedTask) -> Task:
    """Convert a proposed task to a task of the plan; raise BadPlan for a bad id or an empty title."""
    if not _ID.fullmatch(proposed.id):
        raise BadPlan(f"{proposed.id!r} is no id.", hint="An id is made of letters, digits, `-`, `_` and `.`.")
    title = " ".join(proposed.title.split())
    if not title:
        raise BadPlan(f"Task {proposed.id!r} has no title.", hint="Say in one line what is to be done.")
    return Task(
        id=TaskId(proposed.id),
        title=title,
        description=proposed.description.strip(),
        depends_on=tuple(map(TaskId, proposed.depends_on)),
        expected_failures=proposed.expected_failures,
    )


def done_tasks(state: WorkflowState) -> tuple[Task, ...]:
    """Return the finished tasks in the plan's order, which a new plan begins with; none without a plan."""
    tasks = state.plan.tasks if state.plan else ()
    return tuple(task for task in tasks if state.tasks[task.id] is TaskStatus.COMPLETED)


def after_what_is_done(state: WorkflowState, plan: Plan) -> Plan:
    """Return a person's own plan with the finished tasks in front; those are not changed any more."""
    done = done_tasks(state)
    names = {task.id for task in done}
    return Plan(tasks=(*done, *(task for task in plan.tasks if task.id not in names)))


def makes_no_plan(agent: str, instead: str) -> e.Warned:
    """Build the warning that the agent makes no plans, and what happens `instead`."""
    return e.Warned(code="not_planned", message=f"{agent} makes no plans, so {instead}.")


def adopt_without_planning(t: Transaction, state: WorkflowState, agent: str) -> WorkflowState:
    """Adopt the earlier plan if it has a next task, else the issue as one task, with a warning; return the state
    after it."""
    assert state.issue is not None, "every journal begins with its workflow's issue"
    stands = state.plan is not None and state.next_task is not None
    plan = state.plan if stands and state.plan else after_what_is_done(state, read_plan(state.issue, None))
    t.append(makes_no_plan(agent, KEPT if stands else ONE_TASK))
    t.tasks.adopt_plan(e.PlanAdopted(plan=plan, by="policy"))
    return t.catch_up(state)


def blocked_by(plan: Plan, state: WorkflowState) -> End:
    """Return the end of a run that leaves the workflow blocked until a person approves the plan."""
    return End(WorkflowStatus.BLOCKED, f"{described(plan, state)} waits for approval", Trigger.PAUSE)


def described(plan: Plan, state: WorkflowState) -> str:
    """Describe a plan by the number of its tasks, as in an error or a reason."""
    return f"a plan of {counted(plan.tasks, state.tasks)}"


# ── the turn ────────────────────────────────────────────────────────────────────────────────────────


class Planner:
    """Asks the writer's agent for a plan, in turns in which it may only read; one repair."""

    def __init__(self, lease: Lease, turns: Turns, recorder: Recorder) -> None:
        self._lease = lease
        self._turns = turns
        self._recorder = recorder
        self._most = lease.services.rules.plan_tasks

    def ask(self, t: Transaction, state: WorkflowState, occasion: PromptOccasion | None) -> e.PromptQueued:
        """Store the prompt that asks for a plan, put the session to work, and return the prompt."""
        assert state.issue is not None and state.planning is not None, "there is something to plan"
        return self._queue(t, planning_prompt(state.issue, state.planning, state.marks, occasion, self._most))

    def _queue(self, t: Transaction, text: str) -> e.PromptQueued:
        """Store a prompt of the planning, and move the session to running unless it is."""
        prompt = e.PromptQueued(prompt_id=new_prompt_id(), text=text, task_id=PLANNING)
        t.prompts.queue(prompt, self._lease.session_id, self._lease.number)
        if t.sessions.current().status is not SessionStatus.RUNNING:
            self._lease.move(t, SessionStatus.RUNNING)
        return prompt

    async def make(self, prompt: e.PromptQueued, text: str) -> End | None:
        """Ask for a plan, once more if it is unusable, and store it; return the end of the run if there is no usable
        plan or a turn was broken off, else None."""
        read = await self._ask(prompt, text)
        if isinstance(read, Unreadable):
            self._lease.pay_for_a_turn()
            text_again = repair_plan(read.reason)
            prompt = await self._lease.write("plan.repaired", lambda t: self._queue(t, text_again))
            read = await self._ask(prompt, text_again)
        match read:
            case Plan():
                await self._propose(read, prompt.prompt_id)
                return None
            case Unreadable(reason=reason):
                why = f"the agent proposed no plan that can be used, even after one repair: {reason}"
                return End(WorkflowStatus.PAUSED, why, Trigger.CRASH)
            case End():
                return read

    async def _ask(self, prompt: e.PromptQueued, text: str) -> Plan | Unreadable | End:
        """Take a planning turn and return the plan, its problem, or the end of the run if the turn was broken off;
        warn if files changed."""
        before = await files_of(self._lease)
        turn = await self._turns.take(prompt, text, PLAN_TURN)
        if changes := await changes_since(self._lease, before):
            message = f"The agent was to plan only, and the worktree changed all the same: {changes}"
            await self._recorder.record(e.Warned(code="changed_while_planning", message=message))
        if turn.reason != "end_turn":
            return broken_off(self._lease.live, turn.reason)
        state = await self._lease.services.journal.state(self._lease.workflow_id)
        return read_proposal(turn.text, done_tasks(state), self._most)

    async def _propose(self, plan: Plan, prompt_id: PromptId) -> None:
        """Write the proposed plan and a checkpoint, and let the session wait; adopt the plan at once if the
        workflow's `approve_plan` is set."""
        session_id, number = self._lease.session_id, self._lease.number
        state, workspace = await self._lease.gather()
        done = tuple(task.id for task in done_tasks(state))
        occasion = Occasion(
            type=CheckpointType.PLAN,
            trigger=Trigger.PAUSE,
            reason="the plan is made",
            snapshot=False,
            clean_boundary=True,
        )

        def write(t: Transaction) -> None:
            t.append(e.PlanProposed(prompt_id=prompt_id, plan=plan, done=done), session_id=session_id, run=number)
            if decode(Choices, t.workflow.choices).approve_plan:
                t.tasks.adopt_plan(e.PlanAdopted(plan=plan, by="policy"))
                write_checkpoint(t, session_id, number, occasion, t.catch_up(state), workspace)
            self._lease.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)

        await self._lease.write("plan.proposed", write)

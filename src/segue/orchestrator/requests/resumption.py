"""Resuming of workflows: continue, take back to a snapshot, try again, or open a session."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from segue.journal import Transaction
from segue.journal.rows import WorkflowRow
from segue.model.errors import BadInput, SegueError, WrongState
from segue.model.events import RetryScheduled, Warned
from segue.model.ids import WorkflowId
from segue.model.requests import ResumeRequest, SuccessorRequest
from segue.model.status import Purpose, Role, Way, WorkflowStatus
from segue.model.views import Resumed, WorkspaceRestored
from segue.orchestrator.requests import forks, rewinds
from segue.orchestrator.requests.launches import (
    Ask,
    Launching,
    at_rest,
    means_of,
)
from segue.orchestrator.requests.rewinds import Target
from segue.orchestrator.requests.secrets import refuse_secrets
from segue.orchestrator.runtime import containers
from segue.orchestrator.runtime.agents import agent_named, choices_for, require
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.runtime.worktree_recovery import made_again
from segue.orchestrator.settling import retry_schedule
from segue.protocol.admission import (
    AtWork,
    Overtaken,
    admit_launch,
    refuse_unless_resumable,
    refuse_untimely,
    refuse_while_files_move,
)
from segue.resume.planner import plan_resume
from segue.workspace.worktrees import require_worktree

log = logging.getLogger("segue")

W = WorkflowStatus


class Resuming:
    """Service that continues workflows, for people and for scheduled retries."""

    def __init__(self, services: RuntimeServices) -> None:
        self.services = services
        self.launching = Launching(services)
        self._journal = services.journal

    async def resume(self, name: str, request: ResumeRequest) -> Resumed:
        """Continue the plan as the user asks: with the same agent or another, from here or from a snapshot."""
        row = await self._journal.workflows.get(name)
        environment, way = request.environment, request.way
        if request.context is not None:
            way = _way_of_own_context(request.context, way)
        as_it_is = way is None and request.agent is None
        if request.snapshot is None and (waiting := await self._block_again(row, as_it_is=as_it_is)) is not None:
            return waiting
        as_it_is = as_it_is and request.snapshot is None
        if (
            request.wait_for_quota
            and as_it_is
            and (waiting := await self._wait_for_quota(row, environment)) is not None
        ):
            return waiting
        ask = replace(self.ask(row, Purpose.WORK, environment, way, request), context=request.context or "")
        if ask.choices is not None:
            refuse_secrets(ask.choices)
        await self._finish_fork(row, environment)
        if request.snapshot is not None:
            return await self._go_back(row, ask, request.snapshot)
        if way is not None or ask.agent.name != row.agent:
            await self.launching.put_away(row.id, "the work goes on another way")
            return await self.launching.launch(row, ask)
        return await self._go_on(row, ask)

    async def rejoin(self, workflows: Sequence[WorkflowId]) -> None:
        """Resume each of these workflows whose agent still runs in its container; start no new agent, and log a
        failure."""
        for workflow_id in workflows:
            state = await self._journal.state(workflow_id)
            if await containers.closed(self.services, state, workflow_id) == "":
                try:
                    request = ResumeRequest(way=Way.REATTACH, environment=self.services.environment)
                    await self.resume(workflow_id, request)
                except SegueError as error:
                    log.warning("workflow %s could not be joined again: %s", workflow_id, error.message)

    async def try_again(self, row: WorkflowRow, due: datetime) -> None:
        """Make the retry that is due, with the variables kept for it; do nothing if another request came first."""
        await self.launching.until_still(row.id)
        environment = self.services.kept_environments.get(row.id, self.services.environment)
        ask = replace(self.ask(row, Purpose.WORK, environment), due=due)
        with suppress(Overtaken):
            await self._go_on(row, ask)

    async def _go_on(self, row: WorkflowRow, ask: Ask) -> Resumed:
        """Launch the work; if the scheduled retry requires a rewind, take the work back first."""
        retry = (await self._journal.state(row.id)).retry
        if retry is None or not retry.rewind:
            return await self.launching.launch(row, ask)
        return await self._start_over(row, ask, retry)

    async def _start_over(self, row: WorkflowRow, ask: Ask, retry: RetryScheduled) -> Resumed:
        """Take the work back to before the retry's step and plan the rest again; without a clean checkpoint from before
        it, only plan again, with a warning."""
        target = await rewinds.before_task(self.services, row, retry.step)
        if target is None:
            reopens = f"{retry.reason.rstrip('.')}. {rewinds.NOTHING_UNDONE}"
            warning = Warned(code="nothing_undone", message=rewinds.NOTHING_UNDONE)
            return await self.launching.launch(row, replace(ask, reopens=reopens, warning=warning))
        ask = replace(ask, reopens=retry.reason)
        await rewinds.require_worktree_of(row, target)
        return await self._take_back(row, ask, target, "the work is taken back")

    async def _take_back(self, row: WorkflowRow, ask: Ask, target: Target, reason: str) -> Resumed:
        """Restore the target's files and launch the run that goes on from them; if the launch fails, the files are put
        back."""
        await self.launching.refuse_spent(row)

        def admit(t: Transaction) -> None:
            standing, wanted = self.launching.standing(t), replace(ask.launch, goes_back=True, holds_files=True)
            refuse_untimely(standing, wanted)
            admit_launch(standing, wanted)

        with self.launching.alone_with(row.id):
            await self.launching.put_away(row.id, reason)
            async with rewinds.taken_back(self.services, row, target, admit) as back:
                launched = await self.launching.launch(row, replace(ask, back=back))
        return replace(launched, saved=back.event.saved, undone=back.event.undone, left_alone=back.left_alone)

    async def after_a_word(
        self,
        row: WorkflowRow,
        environment: Mapping[str, str],
        word: Callable[[Transaction], None],
        reason: str,
        *,
        alone: bool = False,
        changed: tuple[str, ...] | None = None,
    ) -> Resumed:
        """Launch work after a person's answer, which the given function writes in the same transaction.

        `alone`: the caller holds the workflow's files. `changed`: changes in the worktree from before the caller's own.
        """
        ask = self.ask(row, Purpose.WORK, environment)
        ask = replace(ask, word=word, reason=reason, alone=alone, changed=changed)
        return await self.launching.launch(row, ask)

    async def _block_again(self, row: WorkflowRow, *, as_it_is: bool) -> Resumed | None:
        """Block a paused workflow whose plan waits for approval, and return the answer; None if it is not paused or no
        plan waits. Raise WrongState if one waits and the request is not `as_it_is`."""
        state = await self._journal.state(row.id)

        def block(t: Transaction) -> Resumed | None:
            now = t.catch_up(state)
            if t.workflow.status is not W.PAUSED or now.planning is None or now.planning.proposed is None:
                return None
            if not as_it_is:
                hint = (
                    f"Bring it back first (segue resume {row.slug}), then approve or reject it; "
                    "`segue sessions fork` goes on from a snapshot in a workflow of its own."
                )
                raise WrongState("Its plan waits for a word before anything else.", hint=hint)
            t.move_workflow(W.BLOCKED, reason="its plan waits for approval, as it did before the pause")
            return at_rest(t, "blocked", "its plan waits for a word; no agent was started")

        return await self._journal.transact(row.id, block)

    async def _wait_for_quota(self, row: WorkflowRow, environment: Mapping[str, str]) -> Resumed | None:
        """Wait for the reset of a used-up quota, with a scheduled retry, and return the answer; None if the quota is
        not known as used up, the workflow is not paused, or a run is open."""
        state = await self._journal.state(row.id)
        ask = self.ask(row, Purpose.WORK, environment)

        def wait(t: Transaction) -> Resumed | None:
            refuse_while_files_move(self.launching.standing(t))
            now = t.catch_up(state)
            retry = retry_schedule.until_full(self.services, t.workflow, now)
            if retry is None or t.workflow.status is not W.PAUSED or t.runs.open() is not None:
                return None
            if now.retry is None:
                t.schedule_retry(retry, t.sessions.current().id, None)
            return at_rest(t, "waiting", retry.reason)

        waiting = await self.launching.decide(row.id, wait)
        if waiting is not None:
            self.services.kept_environments[row.id] = self.launching.variables(row, ask)
            self.services.retry_scheduled.set()
        return waiting

    async def open(self, session_id: str, environment: Mapping[str, str]) -> Resumed:
        """Start the session's agent again for a chat, without a prompt."""
        row = await self.workflow_of(session_id)
        return await self.launching.launch(row, self.ask(row, Purpose.TALK, environment))

    async def restore_workspace(self, name: str) -> WorkspaceRestored:
        """Make the worktree again if it is gone, and start no agent; the answer's note then names the source of its
        files."""
        row, note = await self._journal.workflows.get(name), ""
        await require_worktree(Path(row.repository), Path(row.worktree), row.branch, here=row.here)
        if not row.here:
            _, gone = await made_again(self.services, row)
            if gone is not None:
                await self._journal.transact(row.id, lambda t: t.append(gone))
                note = gone.message
        return WorkspaceRestored(workflow_id=row.id, worktree=row.worktree, branch=row.branch, note=note)

    async def workflow_of(self, session_id: str) -> WorkflowRow:
        """Return the workflow whose current session this is; raise WrongState for an older session or a helper's."""
        session = await self._journal.sessions.get(session_id)
        row = await self._journal.workflows.get(session.workflow_id)
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

    def ask(
        self,
        row: WorkflowRow,
        purpose: Purpose,
        environment: Mapping[str, str],
        way: Way | None = None,
        request: SuccessorRequest | None = None,
    ) -> Ask:
        """Build the request to start the workflow's agent, or the requested other one; raise if that cannot be
        started here."""
        agent = agent_named(self.services, request.agent if request and request.agent is not None else row.agent)
        require(agent, environment)
        choices = choices_for(request, row) if request else None
        return Ask(purpose=purpose, environment=environment, way=way, agent=agent, choices=choices)

    # ── going back ──────────────────────────────────────────────────────────────────────────────────

    async def _go_back(self, row: WorkflowRow, ask: Ask, name: str) -> Resumed:
        """Take the work back to the named snapshot and launch it; check all that could refuse that before a file is
        changed."""
        await self._refuse_while_at_work(row)
        target = await rewinds.target(self.services, row, name)
        await rewinds.require_worktree_of(row, target)
        foreseen = rewinds.foreseen(await self._journal.state(row.id), target)
        means = await means_of(self.services, foreseen, row.id, ask.agent)
        plan_resume(replace(means, goes_back=True), ask.way)
        return await self._take_back(row, ask, target, f"the work is taken back to {target.checkpoint.id}")

    async def _refuse_while_at_work(self, row: WorkflowRow) -> None:
        """Raise AtWork if a run of work is open, and WrongState if none is open and the status allows no rewind; else
        do nothing."""
        runs = await self._journal.runs.open(row.id)
        if any(run.purpose is Purpose.WORK for run in runs):
            raise AtWork(f"{row.agent} is at work on it.")
        if not runs:
            refuse_unless_resumable(row.status, Purpose.WORK, goes_back=True)

    async def _finish_fork(self, row: WorkflowRow, environment: Mapping[str, str]) -> None:
        """Make the files of a fork that is still pending because its server died; do nothing for other workflows."""
        if row.status is W.PENDING and (await self._journal.state(row.id)).forked_from is not None:
            with self.launching.alone_with(row.id):
                await forks.prepare(self.services, row, environment)


def _way_of_own_context(context: str, way: Way | None) -> Way:
    """Return the way of a compiled context, which one's own context takes; raise BadInput if it is empty or another
    way is given."""
    if not context.strip():
        raise BadInput("The context is empty.", hint="`segue context` prints one to begin with.")
    if way not in (None, Way.CONTEXT):
        raise BadInput(f"A context of your own is no part of the way {way}.", hint="Leave one of the two out.")
    return Way.CONTEXT

"""The fixer: a second agent that is asked for advice on a step that keeps failing. It only reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from segue.model.errors import SegueError
from segue.model.events import FixerAdvised, Warned
from segue.model.ids import TaskId
from segue.model.status import Role
from segue.orchestrator.run.helpers import Help, ask_helper
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.runtime.agents import fixer_of
from segue.orchestrator.runtime.contexts import Present, compile_workflow
from segue.resume.advice import fixer_question
from segue.snapshot.extraction import Unreadable, read_object
from segue.state.fold import FailedAttempt
from segue.workspace.git import read_state


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Answer of the fixer."""

    verdict: Literal["fix", "rewind", "escalate"]
    advice: str


def read_advice(text: str) -> Advice | Unreadable:
    """Parse the fixer's answer; Unreadable if it is no advice."""
    return read_object(text, Advice, ("verdict",))


async def consult(lease: Lease, environment: Mapping[str, str], failures: Sequence[FailedAttempt]) -> FixerAdvised:
    """Ask the fixer about the step that failed last, and journal and return its advice; "escalate" if it gave no
    usable answer."""
    step = failures[-1].step
    tries = [each for each in failures if each.step == step]
    fixer = fixer_of(lease.services, lease.workflow)
    assert fixer is not None, "where there is none, none is asked"
    seconds = lease.services.rules.retries.fixer_time.total_seconds()
    wanted = Help(role=Role.FIXER, agent=fixer, task_id=TaskId(step), seconds=seconds)
    question = await _question(lease, tries)
    with lease.live.patient(lease.services.clock.now(), seconds):
        answer = await ask_helper(lease, environment, wanted, question, read_advice)
    answer = answer or Advice(verdict="escalate", advice="")
    advised = FixerAdvised(step=step, verdict=answer.verdict, advice=answer.advice)
    await lease.write("fixer.advised", lambda t: t.append(advised, session_id=lease.session_id, run=lease.number))
    return advised


async def _question(lease: Lease, failures: Sequence[FailedAttempt]) -> str:
    """Build the fixer's question from the issue, the plan, the failures and a successor's context."""
    state = await lease.services.journal.state(lease.workflow_id)
    assert state.issue is not None, "every journal begins with its workflow's issue"
    return fixer_question(state.issue, state.plan, failures, await _context(lease))


async def _context(lease: Lease) -> str:
    """Compile the context of a successor; if that fails, journal a warning and return ""."""
    services, workflow = lease.services, lease.workflow
    try:
        git = await read_state(Path(workflow.worktree), workflow.base)
        present = Present(git=git, at=services.clock.now())
        return (await compile_workflow(services, workflow.id, present, services.rules.context_budget)).text
    except SegueError as error:
        warning = Warned(code="context_failed", message=f"The fixer gets no context: {error.message}")
        await lease.transact(lambda t: t.append(warning, session_id=lease.session_id, run=lease.number))
        return ""

"""The fixer: a second agent that is asked for advice on a step that keeps failing. It only reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from segue.model.errors import SegueError
from segue.model.events import FixerAdvised, Warned
from segue.model.ids import TaskId
from segue.model.status import Role
from segue.orchestrator.run.helping import Help, ask_helper
from segue.orchestrator.run.tenure import Tenure
from segue.orchestrator.runtime.agents import fixer_of
from segue.orchestrator.runtime.contexts import Present, compile_workflow
from segue.resume.advice import fixer_question
from segue.snapshot.extraction import Unreadable, read_object
from segue.state.fold import Failed
from segue.workspace.git import read_state


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What the fixer answers."""

    verdict: Literal["fix", "rewind", "escalate"]
    advice: str


def read_advice(text: str) -> Advice | Unreadable:
    return read_object(text, Advice, ("verdict",))


async def consult(tenure: Tenure, environment: Mapping[str, str], failures: Sequence[Failed]) -> FixerAdvised:
    """Ask about the step that failed, and write down what was said; no usable answer leaves it to a person."""
    step = failures[-1].step
    tries = [each for each in failures if each.step == step]
    fixer = fixer_of(tenure.house, tenure.workflow)
    assert fixer is not None, "where there is none, none is asked"
    seconds = tenure.house.rules.retries.fixer_time.total_seconds()
    wanted = Help(role=Role.FIXER, agent=fixer, task_id=TaskId(step), seconds=seconds)
    question = await _question(tenure, tries)
    with tenure.live.patient(tenure.house.clock.now(), seconds):
        answer = await ask_helper(tenure, environment, wanted, question, read_advice)
    answer = answer or Advice(verdict="escalate", advice="")
    told = FixerAdvised(step=step, verdict=answer.verdict, advice=answer.advice)
    await tenure.write("fixer.advised", lambda t: t.append(told, session_id=tenure.session_id, run=tenure.number))
    return told


async def _question(tenure: Tenure, failures: Sequence[Failed]) -> str:
    state = await tenure.house.journal.state(tenure.workflow_id)
    assert state.issue is not None, "every journal begins with its workflow's issue"
    return fixer_question(state.issue, state.plan, failures, await _context(tenure))


async def _context(tenure: Tenure) -> str:
    """What a successor would be told; without it the fixer still has the failures and the files."""
    house, workflow = tenure.house, tenure.workflow
    try:
        git = await read_state(Path(workflow.worktree), workflow.base)
        present = Present(git=git, at=house.clock.now())
        return (await compile_workflow(house, workflow.id, present, house.rules.context_budget)).text
    except SegueError as error:
        warning = Warned(code="context_failed", message=f"The fixer gets no context: {error.message}")
        await tenure.transact(lambda t: t.append(warning, session_id=tenure.session_id, run=tenure.number))
        return ""

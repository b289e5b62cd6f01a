"""What a second agent is asked about a step that keeps failing, and how its advice is told."""

from collections.abc import Sequence

from segue.model.events import FixerAdvised
from segue.model.plan import PLANNING, Issue, Plan
from segue.state.fold import FailedAttempt

_SHAPE = """Find out why it fails. Only read: change no file, and run nothing that changes one.
Answer with one JSON object and nothing else:

{"verdict": "fix", "rewind" or "escalate", "advice": "…"}

fix: the step will succeed if it is done as your advice says. rewind: what was done so far leads nowhere; it is undone,
and the rest is planned again with your advice in mind. escalate: a person has to look; your advice says at what."""

NO_ADVICE = "A second agent was asked and gave no advice that could be used."


def fixer_question(issue: Issue, plan: Plan | None, failures: Sequence[FailedAttempt], context: str) -> str:
    """Return the prompt that asks a second agent for advice; `failures` are those of one step, the oldest first."""
    tries = "\n".join(f"{number}. {each.reason}" for number, each in enumerate(failures, start=1))
    parts = [
        "A coding agent tries again and again to do one step of its work, and fails. You are asked for advice.",
        f"# {issue.title}\n\n{issue.description}".strip(),
        f"## The step\n\n{_named(plan, failures[-1].step)}",
        f"## How it failed\n\n{tries}",
        f"## What is known of the work\n\n{context}" if context else "",
        _SHAPE,
    ]
    return "\n\n".join(part for part in parts if part)


def _named(plan: Plan | None, step: str) -> str:
    """Return the title and description of a step, of a task or the planning; of an unknown one its id."""
    for task in plan.tasks if plan else ():
        if task.id == step:
            return f"{task.title}\n\n{task.description}".strip()
    return "Making a plan." if step == PLANNING else f"({step})"


def advised(advice: FixerAdvised | None, step: str) -> tuple[str, ...]:
    """Return the fixer's advice for the agent that tries this step; empty if there is none for it."""
    if advice is None or advice.step != step or not advice.advice:
        return ()
    return (f"This failed before, and somebody who looked at it advises:\n\n{advice.advice}",)

"""What an agent is told that is to propose a plan."""

from collections.abc import Sequence

from segue.model.checkpoint import TaskMark
from segue.model.plan import PLANNING, Issue, Planning, TaskStatus
from segue.resume.prompts import Occasion, beginning


def planning_prompt(
    issue: Issue, planning: Planning, tasks: Sequence[TaskMark], occasion: Occasion | None, most: int
) -> str:
    """Return the prompt that asks for a plan: what came before, why the last plan does not hold, and the form."""
    parts = beginning(issue, PLANNING, occasion) if occasion else []
    parts += [*_reopened(planning, tasks), *_refused(planning), _QUESTION.replace("MOST", str(most))]
    return "\n\n".join(parts)


def said_of_plans(planning: Planning) -> tuple[str, ...]:
    """Return what an agent that makes no plan has to know: why work was taken back, and rejected plans."""
    parts = [f"This was tried before, and taken back: {planning.reason}"] if planning.reason else []
    return (*parts, *_refused(planning))


def repair_plan(reason: str) -> str:
    """Return the prompt for a plan that cannot be used, with the reason."""
    return (
        f"That plan cannot be used: {reason} Propose it again, whole, as one fenced JSON document of the shape above. "
        "Change nothing yet."
    )


def _reopened(planning: Planning, tasks: Sequence[TaskMark]) -> list[str]:
    """Return why the rest is planned again, and which tasks stay done; empty if neither applies."""
    done = [task for task in tasks if task.status is TaskStatus.COMPLETED]
    parts = [f"What is left is to be planned again: {planning.reason}"] if planning.reason else []
    if done:
        listed = "\n".join(f"- {task.id}: {task.title}" for task in done)
        parts.append(f"These tasks are done, and stay in the plan; plan only what comes after them:\n{listed}")
    return parts


def _refused(planning: Planning) -> list[str]:
    """Return the reasons why earlier plans were rejected, the last one last; empty if none was."""
    if not planning.refusals:
        return []
    reasons = "\n".join(f"- {reason}" for reason in planning.refusals)
    return [f"What was proposed before was rejected; this is what was said, the last word last:\n{reasons}"]


_QUESTION = """\
## Make a plan

Do not begin with the work yet. Look at the repository as far as you need to, and change nothing: until the plan is
approved, what asks for permission to edit files or to run commands is refused.

Split the work into tasks that are done one after the other, each of them small enough to be finished and tested on its
own. Small work is one task; there may be MOST at most. Answer with one fenced JSON document of this shape:

```json
{"tasks": [
  {"id": "lexer", "title": "Write the lexer", "description": "…", "depends_on": [], "expected_failures": []},
  {"id": "parser", "title": "Write the parser", "description": "…", "depends_on": ["lexer"], "expected_failures": []}
]}
```

- id: a short name of its own, of letters, digits, `-`, `_` and `.`
- title: what is to be done, in one line
- description: what whoever does this task has to know, and how one sees that it is done
- depends_on: ids of the tasks that must be done before
- expected_failures: names of tests that may still fail when this task is done, because a later task makes them pass;
  mostly none"""

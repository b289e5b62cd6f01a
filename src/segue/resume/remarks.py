"""What is said of a task beside the task itself: what reviewers found, and where its tests stand."""

from collections.abc import Iterator, Sequence

from segue.model.events import ReviewGiven, TestsRan
from segue.model.plan import Issue, Task
from segue.state.fold import WorkflowState

MOST_NAMED = 20
LONGEST_COMMENT = 2_000


def remarks(state: WorkflowState, task: Task) -> tuple[str, ...]:
    """Return what an agent that begins or continues a task has to know: tests, expected failures and open reviews."""
    parts = (_standing(state.tests, task), _expected(task), feedback(state.reviews, task))
    return tuple(part for part in parts if part)


def tests_failed(ran: TestsRan, reason: str, tail: str) -> str:
    """Return the prompt for another turn at a task whose tests fail."""
    parts = [
        f"The task is not done yet: {reason}. Segue ran `{ran.command}` after your last turn.",
        _named("These tests fail and should not:", ran.unexpected),
        _named("These may fail at this point:", ran.tests.expected_failures),
        f"The end of what it printed:\n\n```\n{tail}\n```" if tail.strip() else "",
        "Find out why, and mend it. Do not weaken a test to make it pass. Stop when it is done.",
    ]
    return "\n\n".join(part for part in parts if part)


def not_approved(given: Sequence[ReviewGiven], task: Task) -> str:
    """Return the prompt for another turn at a task that a reviewer did not approve."""
    return "\n\n".join(
        [
            "The task is not done yet: it was reviewed, and not approved.",
            feedback(given, task),
            "See to each of these, or say why it should stay as it is. Stop when it is done.",
        ]
    )


def feedback(reviews: Sequence[ReviewGiven], task: Task) -> str:
    """Return the comments on a task that are not addressed yet; empty if there are none."""
    lines: list[str] = []
    for review in _open(reviews, task):
        said = review.feedback
        lines.append(f"From {said.reviewer_persona} ({said.severity}):")
        lines += [f"- {comment[:LONGEST_COMMENT]}" for comment in said.comments]
    return "\n".join(["What was said of your work on this task, and is not seen to yet:", *lines]) if lines else ""


def review_question(issue: Issue, task: Task, persona: str, state: WorkflowState, difference: str) -> str:
    """Return the prompt for a reviewer: issue, task, tests, earlier reviews and the difference."""
    parts = [
        f"You are asked for a review, as: {persona}. Only read: change no file and run nothing that changes one.",
        f"# {issue.title}\n\n{issue.description}".strip(),
        f"## The task that was done: {task.title}\n\n{task.description}".strip(),
        _tested(state.tests, task),
        feedback(state.reviews, task).replace("your work on this task", "it in earlier reviews", 1),
        f"## What was changed\n\n```diff\n{difference}\n```" if difference.strip() else "No file was changed.",
        _SHAPE,
    ]
    return "\n\n".join(part for part in parts if part)


_SHAPE = """Judge only whether this task is done, and done well; other tasks of the plan come later.
Answer with one JSON object and nothing else:

{"approved": true or false, "severity": "low", "medium", "high" or "critical", "comments": ["what is to be changed, \
where, and why", …], "wrong_approach": true only if this way cannot lead to the goal, so that it should be undone}

Approve what is good enough; a remark that need not be seen to may stand among the comments of an approval."""


def _open(reviews: Sequence[ReviewGiven], task: Task) -> Iterator[ReviewGiven]:
    """Yield the reviews of a task that have comments and are not addressed."""
    for review in reviews:
        if review.task_id == task.id and not review.feedback.addressed and review.feedback.comments:
            yield review


def _standing(ran: TestsRan | None, task: Task) -> str:
    """Return the failing tests of the last run if they matter to this task; empty otherwise."""
    if ran is None or ran.tests.phase == "green":
        return ""
    if ran.passed:
        return _named("These tests fail now, as it was planned:", ran.tests.failing_tests)
    if ran.task_id != task.id:
        return ""
    return _named(f"When `{ran.command}` was last run, these tests failed and should not have:", ran.unexpected)


def _expected(task: Task) -> str:
    """Return the tests that may fail when the task is done; empty if none may."""
    return _named("These tests may fail when this task is done; all others have to pass:", task.expected_failures)


def _tested(ran: TestsRan | None, task: Task) -> str:
    """Return the outcome of the task's last test run; empty if none was made."""
    if ran is None or ran.task_id != task.id:
        return ""
    told = f" ({ran.tests.last_test_output_summary})" if ran.tests.last_test_output_summary else ""
    outcome = "passed" if ran.tests.phase == "green" else "failed only where that was expected"
    return f"The tests (`{ran.command}`) {outcome}{told}."


def _named(heading: str, names: Sequence[str]) -> str:
    """Return names under a heading, at most some of them; empty without names."""
    if not names:
        return ""
    more = [f"- … and {len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return "\n".join([heading, *(f"- {name}" for name in names[:MOST_NAMED]), *more])

"""Summary of a workflow in eight sections. Pure."""

from collections.abc import Iterable, Mapping

from segue.journal.rows import WorkflowRow
from segue.model.checkpoint import Checkpoint
from segue.model.findings import Findings, TestState

MOST = 20
"""Maximum lines of one section."""
NOTHING = "Nothing is known."


def in_sections(workflow: WorkflowRow, checkpoint: Checkpoint | None, findings: Findings | None) -> str:
    """Return the summary of a workflow from a checkpoint and its findings; a section without content is marked as
    empty."""
    sections: Mapping[str, Iterable[str]] = {
        "Goal": (workflow.title,),
        "State": _state(workflow, checkpoint),
        "Decisions": _decisions(findings),
        "Errors": _errors(findings),
        "Changes": _changes(checkpoint),
        "Tests": _tests(findings.tests if findings else None),
        "Next steps": checkpoint.next_steps if checkpoint else (),
        "Sources": _sources(workflow, checkpoint),
    }
    return "\n\n".join(f"## {title}\n{_body(lines)}" for title, lines in sections.items())


def _body(lines: Iterable[str]) -> str:
    """Format the lines of a section as a list, up to a maximum; a placeholder if there are none."""
    known = [line for line in lines if line]
    more = [f"- and {len(known) - MOST} more"] if len(known) > MOST else []
    return "\n".join([*(f"- {line}" for line in known[:MOST]), *more]) or NOTHING


def _state(workflow: WorkflowRow, checkpoint: Checkpoint | None) -> Iterable[str]:
    """Yield the workflow's status, the checkpoint's summary and the tasks with their statuses."""
    yield f"The workflow is {workflow.status}."
    if checkpoint is not None:
        yield checkpoint.summary
        for task in checkpoint.tasks:
            yield f"{task.title}: {task.status}"


def _decisions(findings: Findings | None) -> Iterable[str]:
    """Yield the decisions that still hold, with their rationale."""
    for decision in findings.decisions if findings else ():
        if not decision.superseded_by:
            yield f"{decision.description}{f' ({decision.rationale})' if decision.rationale else ''}"


def _errors(findings: Findings | None) -> Iterable[str]:
    """Yield the errors with their resolution."""
    for error in findings.errors if findings else ():
        yield f"{error.error_message} ({error.resolution})"


def _changes(checkpoint: Checkpoint | None) -> Iterable[str]:
    """Yield the changed files."""
    for change in checkpoint.git.changes if checkpoint and checkpoint.git else ():
        yield f"{change.action} {change.path}"


def _tests(tests: TestState | None) -> Iterable[str]:
    """Yield the result of the last tests and the failing ones; nothing if no tests are known."""
    if tests is not None:
        yield f"{tests.phase}: {tests.last_test_command}"
        for name in tests.failing_tests:
            yield f"fails: {name}"


def _sources(workflow: WorkflowRow, checkpoint: Checkpoint | None) -> Iterable[str]:
    """Yield the workflow, the session and the checkpoint that the summary comes from."""
    yield f"workflow {workflow.slug} ({workflow.id})"
    if checkpoint is not None:
        yield f"session {checkpoint.session_number} ({checkpoint.session_id})"
        yield f"checkpoint {checkpoint.id}, events up to {checkpoint.after}"

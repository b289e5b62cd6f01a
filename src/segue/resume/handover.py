"""What Segue knows of a workflow besides what was said in it, as pieces of a resume context."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from segue.model.checkpoint import GitState, TaskMark
from segue.model.facts import Ask, ReviewFact
from segue.model.ids import CheckpointId, TaskId, WorkflowId
from segue.model.plan import Issue, TaskStatus
from segue.resume.budget import Item
from segue.resume.excerpt import HALF, shortened

MUST = 100.0
LONGEST_COMMENT = 300
NEXT_TASKS = 10
MOST_CHANGES = 12
DIVERGENCE, ISSUE, PLAN, LIVE_GIT, GO_ON, FEEDBACK, RETRIEVAL = (
    "divergence", "issue", "plan", "live git", "go on", "feedback", "retrieval",
)  # fmt: skip
TITLES = {
    DIVERGENCE: "Changed since the snapshot",
    ISSUE: "Original issue",
    PLAN: "Plan status",
    LIVE_GIT: "Git state",
    GO_ON: "What to do next",
    FEEDBACK: "Unaddressed reviewer feedback",
    RETRIEVAL: "NOTE",
}
ORDER = (
    DIVERGENCE, "state", ISSUE, "request", "rules", "said", "agreed", PLAN, "todo", "decisions", "errors", "story",
    LIVE_GIT, "files", "git", "tests", GO_ON, "next", FEEDBACK, RETRIEVAL,
)  # fmt: skip
PARTS = ("decisions", "errors", "git-changes", "reviewer-feedback", "tests", "messages")
"""Parts of a snapshot that can be asked for."""
DONE = (TaskStatus.COMPLETED, TaskStatus.SKIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """How much is told of what can be long."""

    issue: int = 0
    """Characters of its description; 0: all of it, up to half of the budget."""
    comments: int = 3
    """Of each review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """A workflow that goes from one session to the next."""

    workflow_id: WorkflowId
    session_number: int
    session_count: int
    issue: Issue
    tasks: tuple[TaskMark, ...] = ()
    current_task: TaskId | None = None
    next_task: TaskId | None = None
    pause_reason: str = ""
    git: GitState | None = None
    """What git says now, and not what it said at the snapshot."""
    git_read_at: str = ""
    divergence: tuple[str, ...] = ()
    """What changed in the worktree since the snapshot."""
    feedback: tuple[ReviewFact, ...] = ()
    snapshot_id: CheckpointId | None = None
    lengths: Lengths = Lengths()
    proposed: tuple[str, ...] = ()
    """Titles of the tasks of a plan that waits for approval."""
    retrieval: tuple[str, ...] = ()
    """Commands with which the agent can get more from where it runs; none where that is not known."""

    @property
    def heading(self) -> str:
        return f"You are resuming workflow {self.workflow_id} (session {self.session_number} of {self.session_count})."


def with_context(told: str, request: str) -> str:
    """Return the prompt that carries a compiled context before a request."""
    return (
        f"{told.rstrip()}\n\n---\n\n"
        "The context above is a record of work that was begun in another conversation. What is quoted in it was said "
        "then, and is no request to you now; files may have changed since, so look before you rely on it. Do not "
        f"repeat work that was already completed. This is what to do now:\n\n{request}"
    )


def items(handover: Handover, budget: int) -> Iterator[Item]:
    """Yield the items that the workflow knows beside the conversation: issue, plan, git, next step, reviews, past
    work."""
    yield from _lines(DIVERGENCE, [f"- {change}" for change in handover.divergence])
    yield from _lines(ISSUE, [_issue(handover.issue, handover.lengths.issue, budget)])
    yield from _plan(handover)
    yield from _lines(LIVE_GIT, _git(handover))
    yield from _lines(GO_ON, [_go_on(handover)])
    yield from _lines(FEEDBACK, _feedback(handover.feedback, handover.lengths.comments))
    yield from _lines(RETRIEVAL, handover.retrieval)


def known_better(item: Item, handover: Handover) -> bool:
    """Return True if the workflow knows an item of the record better: its issue, its plan, or the branch."""
    if item.section == "request":
        return handover.issue.title in item.text
    if item.section == "todo":
        return bool(handover.tasks)
    return item.section == "git" and handover.git is not None and item.text.startswith("- Branch:")


def _lines(section: str, lines: Sequence[str]) -> Iterator[Item]:
    """Yield one item of these lines that must stand; nothing if there are none."""
    if lines:
        yield Item(section=section, order=(0,), text="\n".join(lines), value=MUST, must=True)


def _issue(issue: Issue, longest: int, budget: int) -> str:
    """Return the issue cut to `longest` characters, or, if that is 0, shortened to a share of the budget."""
    if longest:
        return f"{issue.title}\n{_cut(issue.description.strip(), longest)}".strip()
    return shortened(Ask(number=1, text=f"{issue.title}\n{issue.description}"), budget * HALF)


def _cut(text: str, limit: int) -> str:
    """Return the text, cut and marked if it is longer than the limit."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def _plan(handover: Handover) -> Iterator[Item]:
    """Yield the plan's counts, the next tasks and the done ones; nothing without tasks."""
    if not handover.tasks:
        return
    completed = [task for task in handover.tasks if task.status in DONE]
    pending = [task for task in handover.tasks if task.status not in DONE]
    counts = [
        f"- Total tasks: {len(handover.tasks)}",
        f"- Completed: {len(completed)}",
        f"- Remaining: {len(pending)}",
    ]
    if handover.current_task:
        counts.append(f"- Current task: {handover.current_task}")
    waiting = _listed("pending_tasks", "○", pending, "(all complete)", NEXT_TASKS)
    yield Item(section=PLAN, order=(0,), text="\n".join(counts), value=MUST, must=True)
    yield Item(section=PLAN, order=(2,), text="\n".join(waiting), value=MUST)
    done = _listed("completed_tasks", "✓", completed, "(none yet)", len(completed))
    yield Item(section=PLAN, order=(1,), text="\n".join(done), value=MUST / 4)


def _listed(tag: str, mark: str, tasks: Sequence[TaskMark], none: str, most: int) -> list[str]:
    """Return tasks as lines in a tag, at most `most` of them, or the text for none."""
    lines = [f"  {mark} [{task.id}] {task.title}" for task in tasks[:most]] or [f"  {none}"]
    if (more := len(tasks) - most) > 0:
        lines.append(f"  … and {more} more")
    return [f"<{tag}>", *lines, f"</{tag}>"]


def _git(handover: Handover) -> list[str]:
    """Return branch, commit and changed files as lines; empty without git state."""
    git = handover.git
    if git is None:
        return []
    read = f" (read at {handover.git_read_at})" if handover.git_read_at else ""
    return [
        f"- Branch: {git.branch}{read}",
        f"- Commit: {git.head[:12]}",
        f"- Files modified: {len({change.path for change in (*git.committed, *git.changes)})}",
        f"- Uncommitted changes: {'yes' if git.dirty else 'no'}",
        *(f"  {change.action} {change.path}" for change in git.changes[:MOST_CHANGES]),
        *([f"  … and {more} more"] if (more := len(git.changes) - MOST_CHANGES) > 0 else []),
    ]


def _go_on(handover: Handover) -> str:
    """Return the next step, and why the previous session ended."""
    apart = "\n" if handover.proposed else " "
    return apart.join(part for part in (_next_step(handover), _ended(handover)) if part)


def _ended(handover: Handover) -> str:
    """Return why the previous session ended, or an empty text if none has ended."""
    reason = handover.pause_reason.rstrip(".")
    return f"The previous session ended because: {reason}." if reason else ""


def _next_step(handover: Handover) -> str:
    """Return what to do next: nothing more, the proposed plan, to make a plan, or the next task."""
    if handover.tasks and all(task.status in DONE for task in handover.tasks):
        return "All tasks are done."
    if handover.proposed:
        listed = "\n".join(f"- {title}" for title in handover.proposed)
        return f"This plan was proposed, and waits for approval:\n{listed}"
    if not handover.tasks:
        return "There is no plan yet; it is the first thing to be made."
    titles = {task.id: task.title for task in handover.tasks}
    title = titles.get(handover.next_task, "Unknown") if handover.next_task else "Unknown"
    return f'Continue from task "{title}".'


def _feedback(feedback: Sequence[ReviewFact], most: int) -> list[str]:
    """Return the comments of open reviews, those neither approved nor addressed, at most `most` of each."""
    lines: list[str] = []
    for review in feedback:
        if review.addressed or review.approved:
            continue
        lines.append(f"From {review.reviewer} ({review.severity}):")
        lines += [f"  - {_cut(comment, LONGEST_COMMENT)}" for comment in review.comments[:most]]
        if (more := len(review.comments) - most) > 0:
            lines.append(f"  … and {more} more")
    return lines

"""What an agent is told: a task, and after an interruption also what is known and what is not."""

from collections.abc import Sequence
from dataclasses import dataclass

from segue.model.checkpoint import Checkpoint, CheckpointType, GitState
from segue.model.events import WorkflowRewound
from segue.model.ids import TaskId
from segue.model.plan import Issue, Plan, Task, TaskStatus
from segue.model.status import SAME_CONVERSATION, Trigger, Way

MOST_FILES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """Why this prompt is written now."""

    way: Way
    """How the conversation was opened; a later task of the same run has no occasion."""
    checkpoint: Checkpoint | None
    """The last one before this run, if there was a run before it."""
    git: GitState | None
    divergence: tuple[str, ...] = ()
    taken_back: WorkflowRewound | None = None
    """The work was taken back to the checkpoint, and nothing was finished since."""
    directory: str = ""
    """Where the agent stands now."""
    copied_from: str | None = None
    """Where the conversation stood that this one is a copy of."""
    knows_issue: bool = True
    """Whether the conversation was ever given a task; one that only talked was not."""


def task_prompt(issue: Issue, plan: Plan, task: Task, occasion: Occasion | None, remarks: Sequence[str] = ()) -> str:
    """Return the prompt for one task: what came before, if there is an occasion, the task, and remarks on it."""
    parts: list[str] = []
    if occasion is None:
        parts.append(_task(plan, task))
    else:
        parts += [*beginning(issue, task.id, occasion), _task(plan, task)]
    return "\n\n".join([*parts, *remarks])


def beginning(issue: Issue, step: TaskId, occasion: Occasion) -> list[str]:
    """Return what the first prompt of a run has before its task: the issue, or what happened since the last run."""
    if occasion.checkpoint is None:
        return [_issue(issue)]
    if occasion.way is Way.CONTEXT:
        # The context that stands before it says all the rest.
        return _torn(step, occasion.checkpoint)
    return _continuation(issue, step, occasion, occasion.checkpoint)


def after_a_word(request: str) -> str:
    """Return the prompt that continues a request which was interrupted for a person's message."""
    return (
        "You were interrupted in the middle of your work, because somebody had something to say. You have heard it; "
        "go on with the work now, and mind what was said. Parts of it may be done already: look at the files before "
        f"you repeat anything. This was the request:\n\n{request}"
    )


def introduction(issue: Issue, occasion: Occasion) -> str:
    """Return what a conversation that begins with a chat gets before the first message."""
    checkpoint = occasion.checkpoint
    known = [*_elsewhere(occasion), _issue(issue), _progress(checkpoint) if checkpoint else "", _files(occasion.git)]
    about = "\n\n".join(part for part in known if part)
    return f"This is what is being worked on. Do nothing about it yet: somebody wants to talk to you.\n\n{about}"


def _issue(issue: Issue) -> str:
    """Return the issue's title as a heading, and its description."""
    return f"# {issue.title}\n\n{issue.description}".strip()


def _task(plan: Plan, task: Task) -> str:
    """Return a task with its position in the plan, and the order to do only this one."""
    position = plan.tasks.index(task) + 1
    lines = [f"## Task {position} of {len(plan.tasks)}: {task.title}"]
    if task.description:
        lines.append(task.description)
    lines.append("Do this task only, and stop when it is done. The other tasks of the plan come later.")
    return "\n\n".join(lines)


def _continuation(issue: Issue, step: TaskId, occasion: Occasion, checkpoint: Checkpoint) -> list[str]:
    """Return what an agent has to know that continues after a stop; one that remembers it gets less."""
    parts = [*(_elsewhere(occasion) or [_opening(occasion.way, checkpoint)])]
    if occasion.way not in SAME_CONVERSATION or not occasion.knows_issue:
        parts += [*taken_back(occasion.taken_back), _issue(issue), _progress(checkpoint), _files(occasion.git)]
    if occasion.divergence:
        changes = "\n".join(f"- {sentence}" for sentence in occasion.divergence)
        parts.append(f"While the work stood still, the worktree changed:\n{changes}")
    return [part for part in [*parts, *_torn(step, checkpoint)] if part]


def taken_back(event: WorkflowRewound | None) -> tuple[str, ...]:
    """Return what was undone when the work was taken back to a snapshot; empty if it was not."""
    if event is None:
        return ()
    undone = " ".join(event.undone) or "nothing."
    return (f"The work was taken back to snapshot {event.checkpoint_id}; what came after it was undone: {undone}",)


def _elsewhere(occasion: Occasion) -> list[str]:
    """Return the new paths for a copied conversation, which remembers the original's; empty for other ways."""
    if occasion.way is not Way.FORK:
        return []
    there = f" Leave {occasion.copied_from} alone: it belongs to the original." if occasion.copied_from else ""
    return [
        "This conversation is a copy: the work goes on in a fork, with files of its own, as they were at the snapshot. "
        f"You are in {occasion.directory} now; use that path in place of the ones you remember.{there}"
    ]


def _opening(way: Way, checkpoint: Checkpoint) -> str:
    """Return why the work was stopped, and whether it goes on in the same conversation or a new one."""
    stopped = f"The work was stopped {_why(checkpoint)}"
    if checkpoint.type is CheckpointType.PLAN:
        stopped = "The work stood still until somebody had looked at the plan"
    elif checkpoint.snapshot and checkpoint.type in (CheckpointType.REVIEW, CheckpointType.TASK_COMPLETE):
        stopped = f"The work stood still for a person's word: {checkpoint.reason}"
    if way in SAME_CONVERSATION:
        return f"{stopped.rstrip('.')}. It goes on now in the same conversation."
    return f"{stopped.rstrip('.')}. You take it over in a new conversation; this is what is known."


def _why(checkpoint: Checkpoint) -> str:
    """Return the trigger and the reason of a stop; only the reason if it is a failure after which the run ended in
    order."""
    if nobody_died(checkpoint):
        return f"because: {checkpoint.reason}"
    return f"({checkpoint.trigger})" + (f": {checkpoint.reason}" if checkpoint.reason else "")


def nobody_died(checkpoint: Checkpoint) -> bool:
    """Return True if a stop counted as crash is a failure after which the run ended in order."""
    ended = checkpoint.type is not CheckpointType.INTERRUPTED
    return bool(checkpoint.reason) and checkpoint.trigger is Trigger.CRASH and ended


def _progress(checkpoint: Checkpoint) -> str:
    """Return the plan with its done tasks ticked; empty without tasks."""
    if not checkpoint.tasks:
        return ""
    ticks = {TaskStatus.COMPLETED: "x"}
    lines = [f"- [{ticks.get(task.status, ' ')}] {task.title}" for task in checkpoint.tasks]
    return "The plan, with what is done:\n" + "\n".join(lines)


def _files(git: GitState | None) -> str:
    """Return the uncommitted files, at most some of them; empty if there are none."""
    if git is None or not git.changes:
        return ""
    lines = [f"- {change.action} {change.path}" for change in git.changes[:MOST_FILES]]
    if (more := len(git.changes) - MOST_FILES) > 0:
        lines.append(f"- … and {more} more (`git status` lists them)")
    return "Files changed and not committed, as git shows them now:\n" + "\n".join(lines)


def _torn(step: TaskId, checkpoint: Checkpoint) -> list[str]:
    """Return the warning about an interruption; empty if the checkpoint is between two turns."""
    return [] if checkpoint.clean_boundary else [_interruption(step, checkpoint)]


def _interruption(step: TaskId, checkpoint: Checkpoint) -> str:
    """Return what may be half done: the task, open tool calls and the last prompt."""
    lines: list[str] = []
    if checkpoint.current_task == step:
        lines.append("The task below was interrupted in the middle; parts of it may be done already.")
    if checkpoint.open_calls:
        lines.append("These tool calls were begun, and nobody saw them end, so their effect is unknown:")
        lines += [f"- {call.title} ({call.tool})" for call in checkpoint.open_calls]
    if checkpoint.in_flight_prompt is not None:
        lines.append("The last request before this one may or may not have reached you.")
    lines.append("Look at the files and at `git status` before you repeat anything.")
    return "\n".join(lines)

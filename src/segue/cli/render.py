"""One line for each kind of event: the only place where events become words. Unknown kinds are passed over."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from segue.cli import words
from segue.cli.output import counted, moment, plain, reason

Fields = Mapping[str, Any]


class Names(NamedTuple):
    """What an event does not say itself."""

    slug: str
    tasks: Mapping[str, str]

    def task(self, event: Fields) -> str:
        """Return the title of an event's task, or its id if it is unknown."""
        return plain(self.tasks.get(event["task_id"], event["task_id"]))


Writer = Callable[[Fields, Names], str | None]


def names_of(view: Fields) -> Names:
    """Return the slug and the task titles of a workflow, which its events refer to."""
    return Names(view["slug"], {task["id"]: task["title"] for task in view["tasks"]})


def line(record: Fields, names: Names, writers: Mapping[str, Writer] | None = None) -> str | None:
    """Return the text of one event, or None if it has none to show or has fields of a newer server."""
    write = (TABLE if writers is None else writers).get(record["kind"])
    try:
        return write(record["event"], names) if write else None
    except (KeyError, TypeError, ValueError):
        # An event of a newer server, with other fields: not worth ending a command for.
        return None


def _because(event: Fields) -> str:
    """Return the event's reason after a colon, or an empty text."""
    why = reason(event.get("reason") or "")
    return f": {why}" if why else ""


def _limits_changed(event: Fields, _names: Names) -> str:
    """Return the new limits of a workflow."""
    waits = "; a used-up quota is waited for" if event["wait_for_quota"] else ""
    return f"Limits: {words.limits(event['limits']) or 'none'}{waits}"


def _capacity_reached(event: Fields, _names: Names) -> str:
    """Return how full the context is, and what happens because of it."""
    what = {
        "fork": "; a new session goes on at the end of the task",
        "pause": "; the work pauses at the end of the task",
        "force": "; the work pauses now",
    }
    share, about = f"{event['context_tokens'] / event['window']:.0%}", words.about(event["estimated"])
    full = f"The context holds {about}{event['context_tokens']:,} of {event['window']:,} tokens ({share})"
    return f"! {full}{what.get(event['rung'], '')}"


def _context_carried(event: Fields, _names: Names) -> str:
    """Return the kind of context that a new conversation begins with, and its size."""
    exam = event.get("exam")
    if exam is None:
        return f"It is told what was said before ({len(event['text']):,} characters)"
    return f"It begins with a compiled context ({exam['tokens']:,} tokens, {exam['score']:.0%} in the exam)"


def _snapshot_studied(event: Fields, _names: Names) -> str:
    """Return the counts of decisions and open errors found in a snapshot, and the exam's score."""
    found = event["findings"]
    open_errors = sum(error["resolution"] == "unresolved" for error in found["errors"])
    exam = f", {found['exam']['score']:.0%} in the exam" if found["exam"] else ""
    return f"Studied {found['checkpoint_id']}: decisions {len(found['decisions'])}, open errors {open_errors}{exam}"


def _workflow_moved(event: Fields, _names: Names) -> str | None:
    """Return the workflow's new status with the reason, or None for a status that needs no line."""
    words = {
        "blocked": "Blocked",
        "review": "Needs a look",
        "paused": "Paused",
        "completed": "Completed",
        "failed": "Failed",
        "cancelled": "Cancelled",
    }
    if event["after"] == "review" and event["trigger"] == "pause":
        # The question stands before this, and says why.
        return words["review"]
    return words[event["after"]] + _because(event) if event["after"] in words else None


def _rewound(event: Fields, _names: Names) -> str:
    """Return the snapshot that the work was reset to, and each thing undone."""
    undone = [f"  - Undone: {plain(sentence)}" for sentence in event["undone"]]
    return "\n".join([f"Taken back to {event['checkpoint_id']}; what was there before is {event['saved']}", *undone])


def _run_queued(event: Fields, _names: Names) -> str | None:
    """Return how the agent is started or brought back, or None at the first start for work."""
    talks = event["purpose"] == "talk"
    if event["way"] == "first":
        return "The agent is started, to talk" if talks else None
    begins = "The agent is brought back to talk," if talks else "Goes on"
    return f"{begins} in {words.way(event['way'])}{_price(event)}{_because(event)}"


def _way_changed(event: Fields, _names: Names) -> str:
    """Return the other way back that is taken instead, with the reason."""
    return f"! Goes on in {words.way(event['after'])} instead{_because(event)}"


def _price(event: Fields) -> str:
    """Return the tokens of the way that was taken in brackets, or an empty text if unknown."""
    tokens = next((price["tokens"] for price in event["prices"] if price["way"] == event["way"]), None)
    return "" if tokens is None else f" ({tokens:,} tokens)"


def _turn_failed(event: Fields, _names: Names) -> str:
    """Return the failure of a turn, and when a quota is full again."""
    again = f"; full again at {moment(event['reset_at'])}" if event["reset_at"] else ""
    return f"! The agent could not go on ({event['failure'].replace('_', ' ')}): {reason(event['message'])}{again}"


def _permission_requested(event: Fields, names: Names) -> str:
    """Return a permission request, and how to answer it."""
    return f"? {plain(event['title'])}\n  Answer with: segue approve {names.slug}, or: segue reject {names.slug}"


def _pause_requested(event: Fields, _names: Names) -> str:
    """Return that a pause was requested, with the time at which it is forced."""
    return f"Pause requested{_because(event)} (at the end of the task, at the latest {moment(event['force_at'])})"


def _agent_exited(event: Fields, _names: Names) -> str | None:
    """Return how the agent's process ended, or None for exit code 0."""
    if event["code"] == 0:
        return None
    how = "was ended" if event["code"] is None else f"ended with code {event['code']}"
    detail = reason(event.get("detail") or "")
    return f"The agent's process {how}" + (f": {detail}" if detail else "")


def _usage(event: Fields, _names: Names) -> str | None:
    """Return the size of the context, or None if unknown."""
    if event["context_tokens"] is None:
        return None
    window = f" of {event['window']:,}" if event["window"] else ""
    return f"Context: {words.about(event['estimated'])}{event['context_tokens']:,}{window} tokens"


def _todo(event: Fields, _names: Names) -> str:
    """Return how many entries of the agent's to-do list are done."""
    entries = event["entries"]
    done = sum(entry["status"] == "completed" for entry in entries)
    return f"To do: {done}/{len(entries)} done"


def _tool_called(event: Fields, _names: Names) -> str:
    """Return a call's title with its command, path or pattern, since some agents' titles name only the tool."""
    title, given = event["title"], event["input"]
    keys = ("command", "cmd", "file_path", "path", "pattern")
    about = next((given[key] for key in keys if isinstance(given.get(key), str)), "")
    return f"→ {plain(title if about in title else f'{title}: {about}')}"


def _tool_finished(event: Fields, _names: Names) -> str:
    """Return the status and the beginning of the output of a call."""
    output = plain(event.get("output") or "", 120)
    return f"  {event['status']}" + (f": {output}" if output else "")


def _imported(event: Fields, _names: Names) -> str:
    """Return the source of an imported session, its size, dates and unread lines."""
    held = f", held {plain(event['began'])} to {plain(event['ended'])}" if event["began"] else ""
    left = f"; lines that could not be read: {event['unread_lines']}" if event["unread_lines"] else ""
    return f"Imported from {plain(event['file'])} ({event['lines']:,} things said or done{held}){left}"


def _files_changed(event: Fields, _names: Names) -> str:
    """Return the changed files of an event."""
    return "  " + plain(", ".join(f"{action} {path}" for path, action in event["changes"]))


def _compacted(event: Fields, _names: Names) -> str:
    """Return that the agent compacted its conversation, with the tokens if they are known."""
    before, after = event["tokens_before"], event["tokens_after"]
    sizes = f" ({before:,} → {after:,} tokens)" if before and after else ""
    return f"The agent summarised its own conversation{sizes}"


def _session_created(event: Fields, _names: Names) -> str:
    """Return the new session's number, or a helper's role, with its agent."""
    if event["role"] == "writer":
        return f"Session {event['number']} with {event['agent']}"
    return f"{event['agent']} helps as {event['role']}"


def _plan(event: Fields, _names: Names) -> str:
    """Return a proposed plan, task by task."""
    tasks, done = event["plan"]["tasks"], event.get("done", ())
    new = counted(len(tasks) - len(done), "new task" if done else "task")
    return "\n".join([f"Plan of {new}:", *(f"  {task}" for task in words.tasks(tasks, done))])


def _plan_adopted(event: Fields, _names: Names) -> str:
    """Return how a plan was adopted, and if it was edited."""
    how = {"user": "approved", "policy": "taken without asking"}[event["by"]]
    return f"The plan was {'changed and ' if event['edited'] else ''}{how}"


def _tests_ran(event: Fields, _names: Names) -> str:
    """Return the outcome of a test run, with the failing tests."""
    if event["exit_code"] is None:
        return f"✗ Tests took too long: {plain(event['command'])}"
    names = plain(", ".join(event["unexpected"] or event["tests"]["failing_tests"]))
    if event["passed"]:
        return f"✓ Only tests fail that were expected to: {names}" if names else "✓ Tests pass"
    return f"✗ Tests fail ({names})" if names else "✗ Tests fail"


def _review_given(event: Fields, _names: Names) -> str:
    """Return the verdict of a review with its comments."""
    said = event["feedback"]
    verdict = "approves" if said["approved"] else f"has something to say ({said['severity']})"
    comments = "".join(f"\n  - {plain(comment, 300)}" for comment in said["comments"])
    return f"Review {event['round']}: the {_reviewer(plain(said['reviewer_persona']))} {verdict}{comments}"


def _reviewer(persona: str) -> str:
    """Return a persona as the name of a reviewer; `user` and names that end in `reviewer` stay as they are."""
    return persona if persona == "user" or persona.endswith("reviewer") else f"{persona} reviewer"


def _retry_scheduled(event: Fields, names: Names) -> str:
    """Return when the next attempt comes, and how to cancel it."""
    back = ", from the last checkpoint and with a new plan" if event["rewind"] else ""
    helped = ", after a second agent was asked" if event["fixer"] else ""
    when = f"{words.attempt(event)} at {moment(event['at'])}{back}{helped}"
    return f"↻ {plain(event['reason'], 300).rstrip('.')}: {when}. Call it off with: segue pause {names.slug}"


def _fixer_advised(event: Fields, _names: Names) -> str:
    """Return the advice of the second agent, or that it gave none."""
    if not event["advice"]:
        return "A second agent was asked and gave no advice that could be used"
    return f"The fixer says ({event['verdict']}): {plain(event['advice'], 400)}"


MILESTONES: Mapping[str, Writer] = {
    "workflow.created": lambda e, n: f"Workflow {n.slug}: {plain(e['issue']['title'])}",
    "workflow.rewound": _rewound,
    "workflow.moved": _workflow_moved,
    "worktree.ready": lambda e, n: f"Worktree {e['path']} on branch {e['branch']}",
    "worktree.discarded": lambda e, n: f"Worktree {e['path']} was taken away again",
    "session.created": _session_created,
    "session.imported": _imported,
    "token.refused": lambda e, n: f"! The agent does not go on with its conversation{_because(e)}",
    "agent.started": lambda e, n: f"Agent {plain(e['name'])} {plain(e['version'])} is up",
    "agent.exited": _agent_exited,
    "context.carried": _context_carried,
    "turn.joined": lambda e, n: "The agent went on meanwhile, and is listened to again",
    "turn.failed": _turn_failed,
    "agent.compacted": _compacted,
    "task.started": lambda e, n: f"▶ {n.task(e)}",
    "task.completed": lambda e, n: f"✓ {n.task(e)}",
    "task.failed": lambda e, n: f"✗ {n.task(e)}{_because(e)}",
    "task.interrupted": lambda e, n: f"↯ {n.task(e)} was interrupted{_because(e)}",
    "permission.requested": _permission_requested,
    "permission.answered": lambda e, n: f"  {e['outcome']} by {e['by']}{_because(e)}",
    "pause.requested": _pause_requested,
    "way.changed": _way_changed,
    "pause.withdrawn": lambda e, n: "The pause was withdrawn",
    "checkpoint.created": lambda e, n: f"Snapshot {e['checkpoint_id']}" if e["snapshot"] else None,
    "plan.proposed": _plan,
    "plan.adopted": _plan_adopted,
    "plan.rejected": lambda e, n: f"The plan was rejected{_because(e)}",
    "plan.reopened": lambda e, n: f"What is left is planned again{_because(e)}",
    "tests.ran": _tests_ran,
    "review.given": _review_given,
    "work.committed": lambda e, n: f"Committed {e['commit'][:10]} ({counted(e['files'], 'file')})",
    "person.asked": lambda e, n: f"? {plain(e['question'], 400)}",
    "person.answered": lambda e, n: f"  {'taken as done' if e['approved'] else 'given back'}{_because(e)}",
    "step.failed": lambda e, n: f"! {plain(n.tasks.get(e['step'], e['step']))} failed{_because(e)}",
    "retry.scheduled": _retry_scheduled,
    "retry.cancelled": lambda e, n: f"It is not tried again{_because(e)}",
    "fixer.advised": _fixer_advised,
    "approval.awaited": lambda e, n: f"? {plain(e['question'], 400)}",
    "limits.changed": _limits_changed,
    "capacity.reached": _capacity_reached,
    "warning": lambda e, n: f"! {plain(e['message'])}",
    "incident": lambda e, n: f"! {plain(e['what'])}" + (f": {reason(e['detail'])}" if e["detail"] else ""),
}
"""What `run` and `resume` show while they follow."""

TABLE: Mapping[str, Writer] = {
    **MILESTONES,
    # In a log the question may be answered long since.
    "permission.requested": lambda e, n: f"? {plain(e['title'])}",
    # A workflow can be taken back to each of them.
    "checkpoint.created": lambda e, n: f"{'Snapshot' if e['snapshot'] else 'Checkpoint'} {e['checkpoint_id']}",
    # Whoever follows was told by the command that queued it.
    "run.queued": _run_queued,
    "plan.proposed": lambda e, n: f"Plan: {'; '.join(words.tasks(e['plan']['tasks'], e.get('done', ())))}",
    "session.moved": lambda e, n: f"Session: {e['before']} → {e['after']}{_because(e)}",
    "run.ended": lambda e, n: f"Run {e['outcome']}{_because(e)}",
    "user.spoke": lambda e, n: f"User: {plain(e['text'], 400)}",
    "agent.summarised": lambda e, n: f"The agent summarised its own conversation: {plain(e['text'], 400)}",
    "agent.message": lambda e, n: plain(e["text"], 400),
    "agent.thought": lambda e, n: f"({plain(e['text'], 400)})",
    "tool.called": _tool_called,
    "tool.progressed": lambda e, n: f"  … {plain(e['output'], 120)}",
    "tool.finished": _tool_finished,
    "files.changed": _files_changed,
    "todo.updated": _todo,
    "usage.reported": _usage,
    "agent.heard": lambda e, n: None,
    "turn.ended": lambda e, n: f"Turn ended: {e['reason']}",
    "prompt.queued": lambda e, n: f"Prompt: {plain(e['text'], 120)}",
    "agent.reported": lambda e, n: f"Report: {plain(e['text'], 120)}",
    "prompt.not_sent": lambda e, n: f"The prompt was not sent{_because(e)}",
    "snapshot.studied": _snapshot_studied,
    "context.refreshed": lambda e, n: f"Kept what was new in the conversation ({e['new_tokens']:,} tokens)",
    "feedback.addressed": lambda e, n: f"What reviewers said of {n.task(e)} is seen to",
}
"""What `logs` shows."""

RETURN: Mapping[str, Writer] = {
    kind: TABLE[kind] for kind in ("run.queued", "token.refused", "context.carried", "warning")
}
"""What `prompt` shows of the agent's return, before it has the words."""

ANSWER: Mapping[str, Writer] = {
    **RETURN,
    **{kind: TABLE[kind] for kind in ("tool.called", "tool.finished", "turn.failed")},
    **{kind: MILESTONES[kind] for kind in ("permission.requested", "permission.answered")},
    **{kind: MILESTONES[kind] for kind in ("agent.compacted", "agent.exited", "incident")},
}
"""What `prompt` shows of the agent's answer, beside its own words."""

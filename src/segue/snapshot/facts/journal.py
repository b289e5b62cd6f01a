"""The journal of a workflow as a transcript, so that what Segue recorded itself gives the same facts."""

from collections.abc import Iterable, Iterator

from segue.model import events as e
from segue.model.events import AgentMessage
from segue.model.transcript import Line, Said, Summarised, UserSaid
from segue.snapshot.facts.text import joined


def lines_of(records: Iterable[e.Record], offset: int = 0) -> Iterator[Line]:
    """Yield lines numbered as the events are; `offset` lines of another journal stand before them.

    The pieces in which a message of the agent was stored are one message again.
    """
    held: Line | None = None
    for record in records:
        for said in _told(record.event):
            if isinstance(said, AgentMessage) and held is not None and isinstance(held.said, AgentMessage):
                held = Line(held.number, AgentMessage(text=joined(held.said.text, said.text)), held.at)
                continue
            if held is not None:
                yield held
            held = Line(offset + record.seq, said, record.at.isoformat())
    if held is not None:
        yield held


def _told(event: e.Event) -> Iterator[Said]:
    """Yield an event as a line of a session; nothing for kinds that no session has."""
    match event:
        case (
            e.AgentMessage()
            | e.AgentThought()
            | e.ToolCalled()
            | e.ToolProgressed()
            | e.ToolFinished()
            | e.FilesChanged()
            | e.TodoUpdated()
            | e.UsageReported()
            | e.WorkLocation()
        ):
            yield event
        case e.WorkflowCreated(issue=issue, imported=False, forked_from=None):
            yield UserSaid(text=f"{issue.title}\n{issue.description}".strip())
        case e.WorktreeReady(path=path, branch=branch, commit=commit):
            yield e.WorkLocation(directory=path, branch=branch, commit=commit)
        case e.UserSpoke(text=text):
            yield UserSaid(text=text)
        case e.AgentSummarised(text=text):
            yield Summarised(text=text)
        case e.PromptQueued(task_id=None, text=text):
            # The prompts for tasks are Segue's own; these are what a person typed.
            yield UserSaid(text=text)
        case e.PlanRejected(reason=reason):
            yield UserSaid(text=reason)
        case e.PermissionAnswered(by="user", outcome="denied", reason=reason) if reason:
            yield UserSaid(text=reason)
        case _:
            return

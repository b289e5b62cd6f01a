"""Lost and duplicated effects: the journal compared with the diaries of agent and client.

A journal cannot witness its own losses. *Lost* is what was acknowledged in a diary, the agent's or the client's, and is
absent from the journal. *Duplicated* is what Segue does once and did twice.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from segue.model import events as e
from segue.model.views import RecordView
from segue.testing.rehearsal.diary import DiaryEntry

Fact = tuple[str, ...]
"""Entry of the journal, in a form that a diary can name too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Findings of the comparison, one sentence each."""

    lost: tuple[str, ...] = ()
    duplicated: tuple[str, ...] = ()


def count(journal: Sequence[RecordView], agent: Sequence[DiaryEntry], client: Sequence[DiaryEntry]) -> Count:
    """Compare a workflow's journal with both diaries: acknowledged facts that it lacks, and facts that occur more than
    once."""
    done = list(_done(journal))
    written = {fact_of(record) for record in journal} | {line_of(record) for record in journal} | set(done)
    claims = [*_claims_of_client(client), *_claims_of_agent(journal, agent)]
    # By fact: a loss that two diaries show counts once.
    missing = dict.fromkeys(fact for fact, proof in claims if proof not in written)
    repeated = Counter([*done, *_received(agent)])
    return Count(
        lost=tuple(f"{' '.join(fact)} was acknowledged and is not in the journal" for fact in missing),
        duplicated=tuple(
            f"{' '.join(fact)} {times} times" for fact, times in repeated.items() for _ in range(times - 1)
        ),
    )


# ── facts of the journal ───────────────────────────────────────────────────────────────────────────


def fact_of(record: RecordView) -> Fact:
    """Return the fact that a journal event proves; for an event that only followers see, the event itself."""
    match record.event:
        case e.WorkflowCreated(slug=slug):
            return ("workflow", slug)
        case e.RunQueued():
            return ("run", str(record.session_id), str(record.run))
        case e.PauseRequested():
            return ("pause",)
        case e.CheckpointCreated(checkpoint_id=checkpoint_id):
            return ("checkpoint", checkpoint_id)
        case e.WorkflowMoved(after=after) if after == "cancelled":
            return ("cancel",)
        case e.PromptSent(prompt_id=prompt_id):
            return ("prompt", prompt_id)
        case e.PermissionAnswered(request_id=request_id, outcome=outcome):
            return ("answer", request_id, outcome)
        case e.PromptQueued(prompt_id=prompt_id, task_id=None):
            return ("message", prompt_id)
        case e.PlanAdopted(by="user"):
            return ("plan", "approved")
        case e.PlanRejected():
            return ("plan", "rejected")
        case _:
            return line_of(record)


def line_of(record: RecordView) -> Fact:
    """Return the journal event itself as a fact: its number and hash."""
    return ("event", str(record.seq), record.hash)


def _done(journal: Sequence[RecordView]) -> Iterator[Fact]:
    """Yield the facts that may occur once at most."""
    for record in journal:
        match record.event:
            case e.TaskCompleted(task_id=task_id):
                yield ("task", task_id, "was completed")
            case e.PermissionAnswered(request_id=request_id):
                yield ("request", request_id, "was answered")
            case e.RunStarted():
                yield ("run", str(record.session_id), str(record.run), "was started")
            case e.WorkflowCreated() | e.RunQueued() | e.CheckpointCreated() | e.PromptSent():
                yield (*fact_of(record), "was written")
            case _:
                pass


# ── claims of the diaries ────────────────────────────────────────────────────────────────────────────

Claim = tuple[Fact, Fact]
"""Acknowledged fact, and the fact of the journal that proves it."""


def _claims_of_client(client: Sequence[DiaryEntry]) -> Iterator[Claim]:
    """Yield the facts that the client's diary claims, each with the fact that would prove it."""
    for entry in client:
        if entry.kind == "delivered":
            for fact, line in entry["events"]:
                yield tuple(fact), tuple(line)
        elif fact := _acknowledged(entry):
            yield fact, fact


def _acknowledged(entry: DiaryEntry) -> Fact | None:
    """Return the fact that an acknowledgement in the client's diary claims, or None."""
    match entry.kind:
        case "created":
            return ("workflow", entry["slug"])
        case "pause_requested":
            return ("pause",)
        case "paused" if entry["snapshot_id"]:
            return ("checkpoint", entry["snapshot_id"])
        case "resumed":
            return ("run", entry["session"], str(entry["run"]))
        case "approved" | "rejected" if entry["request_id"] is None:
            return ("plan", entry.kind)
        case "approved" | "rejected":
            return ("answer", entry["request_id"], "allowed" if entry.kind == "approved" else "denied")
        case "cancelled":
            return ("cancel",)
        case "said":
            return ("message", entry["prompt_id"])
        case _:
            return None


def _claims_of_agent(journal: Sequence[RecordView], agent: Sequence[DiaryEntry]) -> Iterator[Claim]:
    """Yield the facts that the agent's diary claims, each with the fact that would prove it."""
    requests = {r.event.call_id: r.event.request_id for r in journal if isinstance(r.event, e.PermissionRequested)}
    for entry in agent:
        if entry.kind == "prompt" and entry["prompt_id"]:
            fact = ("prompt", entry["prompt_id"])
            yield fact, fact
        elif entry.kind == "answer":
            request = requests.get(entry["call_id"], f"to call {entry['call_id']}")
            fact = ("answer", request, _OUTCOMES.get(entry["option"], "interrupted"))
            # A request that Segue withdrew was answered too; the agent does not know how.
            yield fact, fact if entry["option"] else ("request", request, "was answered")


_OUTCOMES = {"allow": "allowed", "reject": "denied"}


def _received(agent: Sequence[DiaryEntry]) -> Iterator[Fact]:
    """Yield the facts that may reach the agent once at most."""
    for entry in agent:
        if entry.kind == "prompt" and entry["prompt_id"]:
            yield ("prompt", entry["prompt_id"], "reached the agent")
        elif entry.kind == "answer":
            yield ("call", entry["call_id"], "was answered to the agent")

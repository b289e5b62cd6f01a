"""Audit of a workflow: diaries, process table and journal compared."""

from collections.abc import Sequence
from dataclasses import dataclass

from segue.model.events import Record, RunStarted
from segue.model.views import RecordView
from segue.state.fold import fold
from segue.testing.losses import count
from segue.testing.stage import Stage
from segue.testing.work import Work
from segue.workspace.processes import marked


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoning:
    """Result of an audit; all fields but `events` should be empty."""

    events: int
    lost: tuple[str, ...]
    duplicated: tuple[str, ...]
    orphans: tuple[int, ...]
    disagreements: tuple[str, ...]
    """Differences between rows and journal."""
    problem: str | None
    """Fault of the journal's hash chain."""

    @property
    def faults(self) -> list[str]:
        """All faults, one sentence each."""
        left = [f"process {pid} was left running" for pid in self.orphans]
        broken = [self.problem] if self.problem else []
        return [*self.lost, *self.duplicated, *left, *self.disagreements, *broken]


def reckon(stage: Stage, work: Work) -> Reckoning:
    """Examine a workflow that is not running: losses, duplicates, leftover processes, and rows against the journal."""
    journal, verification = work.journal(), work.verify()
    counted = count(journal, work.agent_diary(), work.client_diary())
    attempts = [record.event.attempt for record in journal if isinstance(record.event, RunStarted)]
    alive = work.processes().union(*(marked(attempt) for attempt in attempts))
    return Reckoning(
        events=len(journal),
        lost=counted.lost,
        duplicated=counted.duplicated,
        orphans=tuple(sorted(stage.orphans | alive)),
        disagreements=tuple(_disagreements(work, journal)),
        problem=verification.problem,
    )


def _disagreements(work: Work, journal: Sequence[RecordView]) -> list[str]:
    """Return each row that differs from the state folded from the journal, as a sentence."""
    view = work.view
    # The study of the last snapshot may have added an event since the journal was read.
    state = fold(_records(work, journal if len(journal) == view.head else work.journal()[: view.head]))
    told: dict[str, tuple[object, object]] = {
        "workflow": (view.status, state.status),
        "pause requested": (view.pause_requested, state.pause_requested),
        "head": (view.head, state.seq),
    }
    for session_id, session in state.sessions.items():
        row = work.session(session_id)
        told[session_id] = (
            (row.status, row.waiting_for, row.runs),
            (session.status, session.waiting_for, session.runs),
        )
    return [f"{what}: the row has {row}, the journal {folded}" for what, (row, folded) in told.items() if row != folded]


def _records(work: Work, journal: Sequence[RecordView]) -> list[Record]:
    """Convert events as followers get them to records of the journal."""
    return [
        Record(
            workflow_id=work.id,
            seq=line.seq,
            at=line.at,
            session_id=line.session_id,
            run=line.run,
            event=line.event,
            hash=line.hash,
        )
        for line in journal
    ]

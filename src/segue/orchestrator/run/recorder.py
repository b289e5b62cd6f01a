"""The recorder of a run: the agent's events in order, and streamed text in whole pieces."""

import re
from dataclasses import dataclass, field

import anyio

from segue.journal import Journal
from segue.model.events import AgentMessage, AgentThought, Event, OutputRecorded, TextDelta
from segue.model.ids import AttemptId, SessionId, WorkflowId

LONGEST_PIECE = 64 * 1024
LONGEST_WORD = 4 * 1024
LONGEST_LEAD = 64

_KINDS: dict[str, type[AgentMessage | AgentThought]] = {"message": AgentMessage, "thought": AgentThought}
_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|\Z)", re.DOTALL)
# The beginning of a secret that has more than one word, such as a header or an assignment.
_LEAD = re.compile(r"(?:authorization|bearer|basic|token|secret|passw|key|credential)[^\n]{0,24}\Z", re.IGNORECASE)


@dataclass(slots=True)
class _Place:
    """Position in the stream of an agent that may go on while no server is connected."""

    written: OutputRecorded
    """As far as it is written down, or is being written."""
    last: int
    """Its last mark."""
    since: int = 0
    """Characters that came after that."""

    def write(self, characters: int, waiting: int) -> OutputRecorded:
        """Advance the position by the characters that are written, while others wait, and return its event."""
        before = self.written
        if waiting or self.since:
            self.written = OutputRecorded(updates=before.updates, characters=before.characters + characters)
        else:
            self.written = OutputRecorded(updates=self.last)
        return self.written


@dataclass(slots=True, kw_only=True)
class Recorder:
    """Writer of one session's events. An event is written after the text that was streamed before it.

    For an agent that may go on while no server is connected, events of one mark are written together, with the position
    in the stream: a later connection begins there, so that no event is written twice.
    """

    journal: Journal
    workflow_id: WorkflowId
    session_id: SessionId
    run: int | None
    """None for a session that helps inside another's run."""
    attempt: AttemptId
    """The try at the run; when it does not own it any more, what is written here is dropped."""
    _role: str = ""
    _pieces: list[str] = field(default_factory=list[str])
    _size: int = 0
    _held: list[Event] = field(default_factory=list[Event])
    _place: _Place | None = None
    """None as long as no mark has come, which is for ever with most agents."""
    _pen: anyio.Lock = field(default_factory=anyio.Lock)

    async def add_text(self, delta: TextDelta) -> None:
        """Buffer a piece of streamed text; write the buffer when the role changes or it grows too long, cut at
        whitespace."""
        async with self._pen:
            if delta.role != self._role:
                await self._write(self._take())
                self._role = delta.role
            self._pieces.append(delta.text)
            self._size += len(delta.text)
            if self._place is not None:
                self._place.since += len(delta.text)
            if self._size >= LONGEST_PIECE:
                await self._write(self._take_whole_words())

    async def record(self, *events: Event) -> None:
        """Write the buffered text and held events, then these events."""
        async with self._pen:
            await self._write([*self._take(), *events])

    async def hold(self, event: Event) -> None:
        """Write an event after the buffered text; in a stream with marks, keep it until the next mark instead."""
        async with self._pen:
            if self._place is None:
                await self._write([*self._take(), event])
            else:
                self._held.append(event)

    async def mark(self, position: OutputRecorded) -> None:
        """Write the held events before this position; at the first mark, write the position itself."""
        async with self._pen:
            if self._place is None:
                self._place = _Place(written=position, last=position.updates)
                await self._write([position])
                return
            self._place.last, self._place.since = position.updates, 0
            if self._held:
                await self._write(self._take())
            elif not self._size:
                self._place.write(0, 0)

    async def flush(self) -> None:
        """Write all text that came in so far, even on the way out."""
        with anyio.CancelScope(shield=True):
            async with self._pen:
                await self._write(self._take())

    async def flush_whole_words(self) -> None:
        """Write the complete part; an unfinished word waits, since half a secret is not recognised."""
        async with self._pen:
            await self._write(self._take_whole_words())

    def _take(self) -> list[Event]:
        """Empty the buffer and the held events, and return all of them as events to write."""
        text = "".join(self._pieces)
        self._pieces, self._size = [], 0
        held, self._held = self._held, []
        return self._marked([*self._text_events(text), *held], len(text))

    def _take_whole_words(self) -> list[Event]:
        """Cut the complete part from the buffer, and return it as events to write; the rest stays."""
        text = "".join(self._pieces)
        cut = _last_boundary(text)
        self._pieces, self._size = [text[cut:]], len(text) - cut
        return self._marked(self._text_events(text[:cut]), cut)

    def _text_events(self, text: str) -> list[Event]:
        """Build the event of a text in the buffer's role; none for an empty text."""
        return [_KINDS[self._role](text=text)] if text else []

    def _marked(self, events: list[Event], characters: int) -> list[Event]:
        """Add the new stream position to the events, if there are any and the stream has marks."""
        if self._place is None or not events:
            return events
        return [*events, self._place.write(characters, self._size)]

    async def _write(self, events: list[Event]) -> None:
        """Append the events to the journal even during cancellation; do nothing without events."""
        if events:
            # The agent has acted on this already: losing it would make the journal lie.
            with anyio.CancelScope(shield=True):
                await self.journal.append(
                    self.workflow_id, *events, session_id=self.session_id, run=self.run, attempt=self.attempt
                )


def _last_boundary(text: str) -> int:
    """Return a position at which the text can be cut without splitting a word or a private key."""
    word = len(text) - len(re.split(r"\s", text)[-1])
    cut = word if len(text) - word < LONGEST_WORD else len(text)
    if lead := _LEAD.search(text, max(0, cut - LONGEST_LEAD), cut):
        cut = text.rfind("\n", max(0, cut - LONGEST_WORD), cut) + 1 or lead.start()
    for key in _KEY.finditer(text):
        unfinished = key.end() == len(text) and not key[0].endswith("-----")
        if (unfinished or key.end() > cut) and len(text) - key.start() < LONGEST_PIECE:
            return min(cut, key.start())
    return cut

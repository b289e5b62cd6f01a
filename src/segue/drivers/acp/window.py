"""Use of the context window, and its compactions.

Agents report a compaction in pieces: claude counts the tokens after the end of the compaction, codex reports the new
window before that. With other agents only the window shows it: it is suddenly half empty.
"""

from collections.abc import Iterator

from segue.model.events import AgentEvent, Compacted


class Window:
    """Context window that makes one event of each compaction, in whatever pieces it is reported."""

    def __init__(self) -> None:
        self._used: int | None = None
        self._before: int | None = None
        self._compacting = False
        self._uncounted = False
        """True if the agent reported a compaction, and not how much it removed."""
        self._explained = False
        """True if the next drop of the window was reported already."""

    def report(self, used: int) -> Iterator[AgentEvent]:
        # Zero is what agents report that do not know.
        """Take the tokens in use, and yield a compaction that they show; 0 means that the agent does not know."""
        if used <= 0:
            return
        if self._uncounted:
            yield self._told(self._before, used)
        elif not self._compacting and not self._explained and _dropped(self._used, used):
            yield Compacted(tokens_before=self._used, tokens_after=used)
        if not self._compacting:
            self._explained = False
        self._used = used

    def begin(self) -> None:
        """Note the begin of a compaction, and the tokens before it."""
        if not self._compacting and not self._uncounted:
            self._compacting, self._before = True, self._used

    def done(self, before: int | None, after: int | None) -> Iterator[AgentEvent]:
        """Take the end of a compaction, and yield it if its tokens are known; else they may come later."""
        self._compacting = False
        if after is not None:
            yield self._told(before or self._before, after)
        elif _dropped(self._before, self._used):
            yield self._told(self._before, self._used)
        else:
            self._uncounted = True

    def counted(self, before: int | None, after: int | None) -> Iterator[AgentEvent]:
        """Take the tokens of a compaction that has ended, and yield it unless it was reported."""
        if self._uncounted:
            yield self._told(before or self._before, after)

    def failed(self) -> None:
        """Note that the compaction failed; nothing is reported."""
        self._compacting = False

    def forget(self) -> None:
        """Discard a compaction that was only replayed."""
        self._compacting = self._uncounted = False

    def settle(self) -> Iterator[AgentEvent]:
        """Yield a compaction that ended and whose tokens were never reported; nothing otherwise."""
        if self._uncounted:
            yield self._told(self._before, None)

    def _told(self, before: int | None, after: int | None) -> Compacted:
        """Return the event of a compaction, and note that it is reported."""
        self._uncounted, self._explained = False, True
        return Compacted(tokens_before=before, tokens_after=after)


def _dropped(before: int | None, after: int | None) -> bool:
    """Return True if the tokens fell to less than half; False if one figure is unknown."""
    return before is not None and after is not None and after < before / 2

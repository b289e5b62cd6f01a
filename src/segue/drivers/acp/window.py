"""How full an agent's conversation is, and when it was replaced by a summary.

Agents that say so say it in pieces: claude counts the tokens after it has said that it is done, codex reports the new
window before that. Of agents that say nothing only the window tells: it is suddenly half empty.
"""

from collections.abc import Iterator

from segue.model.events import AgentEvent, Compacted


class Window:
    """Makes one event of each compaction, whatever the agent says of it."""

    def __init__(self) -> None:
        self._used: int | None = None
        self._before: int | None = None
        self._compacting = False
        self._uncounted = False
        """The agent has said that it compacted, and not how much."""
        self._explained = False
        """The next drop of the window was told already."""

    def report(self, used: int) -> Iterator[AgentEvent]:
        # Zero is what agents report that do not know.
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
        if not self._compacting and not self._uncounted:
            self._compacting, self._before = True, self._used

    def done(self, before: int | None, after: int | None) -> Iterator[AgentEvent]:
        """The agent says that it compacted; how much, it may say later."""
        self._compacting = False
        if after is not None:
            yield self._told(before or self._before, after)
        elif _dropped(self._before, self._used):
            yield self._told(self._before, self._used)
        else:
            self._uncounted = True

    def counted(self, before: int | None, after: int | None) -> Iterator[AgentEvent]:
        """The agent says how much it was, after it has said that it is done."""
        if self._uncounted:
            yield self._told(before or self._before, after)

    def failed(self) -> None:
        self._compacting = False

    def forget(self) -> None:
        """Whatever was heard of compactions is an old story."""
        self._compacting = self._uncounted = False

    def settle(self) -> Iterator[AgentEvent]:
        """The agent goes on, and has not said how much it was."""
        if self._uncounted:
            yield self._told(self._before, None)

    def _told(self, before: int | None, after: int | None) -> Compacted:
        self._uncounted, self._explained = False, True
        return Compacted(tokens_before=before, tokens_after=after)


def _dropped(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after < before / 2

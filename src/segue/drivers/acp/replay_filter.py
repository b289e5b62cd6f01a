"""Filter that drops the replay of old updates.

Updates that an agent sends while it opens an old conversation are a replay: they were recorded when they happened.
Some agents answer first and replay afterwards, so messages and tool calls are a replay until the first prompt.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from segue.drivers.acp.updates import UpdateTranslation, is_object
from segue.model.events import AgentEvent, JsonObject, TextDelta

_MEMORIES = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update")

_log = logging.getLogger(__name__)


class Give(Protocol):
    """Passes events on; never waits."""

    def __call__(self, *events: AgentEvent) -> None: ...


class ReplayFilter:
    """Filter for the updates of one conversation."""

    def __init__(self, give: Give, translation: UpdateTranslation) -> None:
        self._give = give
        self._translation = translation
        self.updates = 0
        """Updates received of this conversation so far, replayed and new."""
        self._known = 0
        self._known_characters = 0
        self._early: list[JsonObject] = []
        self._replayed: Counter[str] = Counter()
        self._token = ""
        self._remembering = False
        self._opened = False

    def expect(self, token: str) -> None:
        """Begin to open an old conversation; until it is open, all its updates are a replay."""
        self._token = token
        self._remembering = True

    def open(self, token: str, *, copied: bool = False) -> None:
        """Set the token; updates received under it so far are new, unless it is a copy of an older conversation."""
        self._token = token
        self._opened = True
        self._remembering = self._remembering or copied
        _log.debug("%d updates of an old conversation are left out", self._replayed.total())
        while self._early:
            self.take(self._early.pop(0))

    def go_on(self, token: str, updates: int, characters: int) -> None:
        """Continue after a reconnection: the agent sends all updates again, and those after this position are new."""
        self._token = token
        self._opened = True
        self._known, self._known_characters = updates, characters

    @property
    def catching_up(self) -> bool:
        return self.updates < self._known

    def prompted(self) -> None:
        """Take all further updates as new, since a prompt was sent."""
        self._remembering = False

    def others(self) -> set[str]:
        """Return the tokens whose replay came in place of that of the requested conversation."""
        return set() if self._replayed[self._token] else set(self._replayed)

    def take(self, parameters: object) -> None:
        """Take an update: emit it if it is new, only remember a replayed one, hold it back before the opening."""
        if not is_object(parameters):
            return
        session, update = parameters.get("sessionId"), parameters.get("update")
        if not isinstance(session, str) or not is_object(update):
            return
        if self._opened:
            if session == self._token:
                self._take_update(update)
        elif self._remembering:
            self._replayed[session] += 1
            if session == self._token:
                self.updates += 1
                self._translation.recall(update)
        else:
            self._early.append(parameters)

    def _take_update(self, update: JsonObject) -> None:
        """Emit an update of the open conversation if it is new; only remember a known or replayed one."""
        self.updates += 1
        if self.updates <= self._known:
            for _ in self._translation.translate(update):
                pass
        elif self._remembering and update.get("sessionUpdate") in _MEMORIES:
            self._translation.recall(update)
        else:
            self._give(*self._unrecorded(self._translation.translate(update)))

    def _unrecorded(self, events: Iterable[AgentEvent]) -> Iterator[AgentEvent]:
        """Remove the beginning of a text that was recorded before."""
        for event in events:
            if self._known_characters and isinstance(event, TextDelta):
                known = min(self._known_characters, len(event.text))
                self._known_characters -= known
                event = replace(event, text=event.text[known:])
                if not event.text:
                    continue
            yield event

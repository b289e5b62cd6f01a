"""Which of the agent's updates are news.

What an agent says while it opens an old conversation is its memory: it was told when it happened. Some agents answer
first and remember aloud afterwards, so words and tool calls are memory until the first prompt.
"""

import logging
from collections import Counter

from segue.drivers.acp.updates import Translation, is_object
from segue.drivers.stream import Events
from segue.model.events import JsonObject

_MEMORIES = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update")

_log = logging.getLogger(__name__)


class Hearing:
    """Listens to one conversation, and tells memory from news."""

    def __init__(self, events: Events, translation: Translation) -> None:
        self._events = events
        self._translation = translation
        self._early: list[JsonObject] = []
        self._replayed: Counter[str] = Counter()
        self._token = ""
        self._remembering = False
        self._opened = False

    def expect(self, token: str) -> None:
        """This conversation is being opened again; until it is open, all that is heard is memory."""
        self._token = token
        self._remembering = True

    def open(self, token: str, *, copied: bool = False) -> None:
        """The conversation has a name; what was heard under it so far is news, unless it is a copy of an older one."""
        self._token = token
        self._opened = True
        self._remembering = self._remembering or copied
        _log.debug("%d updates of an old conversation are left out", self._replayed.total())
        while self._early:
            self.hear(self._early.pop(0))

    def prompted(self) -> None:
        """From now on everything is news."""
        self._remembering = False

    def others(self) -> set[str]:
        """The conversations whose memory was heard in place of the one that was asked for."""
        return set() if self._replayed[self._token] else set(self._replayed)

    def hear(self, parameters: object) -> None:
        if not is_object(parameters):
            return
        session, update = parameters.get("sessionId"), parameters.get("update")
        if not isinstance(session, str) or not is_object(update):
            return
        if self._opened:
            if session == self._token:
                self._take(update)
        elif self._remembering:
            self._replayed[session] += 1
            if session == self._token:
                self._translation.recall(update)
        else:
            self._early.append(parameters)

    def _take(self, update: JsonObject) -> None:
        if self._remembering and update.get("sessionUpdate") in _MEMORIES:
            self._translation.recall(update)
        else:
            self._events.give(*self._translation.hear(update))

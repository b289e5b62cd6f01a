"""Ids of requests to a process that outlives its connections."""

from segue.model.events import JsonObject
from segue.model.ids import PromptId


class RequestIds:
    """Ids that differ between connections; the id of a prompt's request is the prompt's own.

    So a late answer to an earlier connection is not taken for another's, and the next connection recognizes the end of
    a turn that was begun before.
    """

    def __init__(self, connection: str, joined: PromptId | None = None) -> None:
        self._connection = connection
        self._joined = joined
        """A prompt that the process has already; it is waited for, and not sent again."""
        self._asked: dict[str, int] = {}

    def outgoing(self, message: JsonObject) -> JsonObject | None:
        """Return the message as it is sent; None for one that was sent before."""
        if "method" not in message or "id" not in message:
            return message
        prompt = _prompt(message)
        name = prompt or f"{self._connection}-{message['id']}"
        self._asked[name] = message["id"]
        return None if prompt is not None and prompt == self._joined else {**message, "id": name}

    def incoming(self, message: JsonObject) -> JsonObject | None:
        """Return the message with the id of its request; None for an answer that is not awaited."""
        if "method" in message:
            return message
        number = self._asked.pop(str(message.get("id")), None)
        return None if number is None else {**message, "id": number}


def _prompt(message: JsonObject) -> str | None:
    """Return the prompt's id in a request for a turn, else None."""
    match message:
        case {"method": "session/prompt", "params": {"_meta": {"segue": {"promptId": str(prompt_id)}}}}:
            return prompt_id
        case _:
            return None

"""Errors and parameters of JSON-RPC 2.0 requests.

Nothing here imports asyncio: a program answers its first request before that is loaded.
"""

from dataclasses import dataclass
from typing import Any, TypeGuard

Message = dict[str, Any]

LOGIN_REQUIRED = -32000
NOT_FOUND = -32002
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class RequestError(Exception):
    """The request was refused with an error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    def as_message(self) -> Message:
        """Return the error as the protocol writes it."""
        return {"code": self.code, "message": str(self), "data": self.data}


def method_not_found(method: str) -> RequestError:
    return RequestError(METHOD_NOT_FOUND, "Method not found", {"method": method})


def invalid_params(details: str) -> RequestError:
    return RequestError(INVALID_PARAMS, "Invalid params", {"details": details})


def internal_error(details: str) -> RequestError:
    return RequestError(INTERNAL_ERROR, "Internal error", {"details": details})


def session_not_found(token: str) -> RequestError:
    return RequestError(NOT_FOUND, f"Session not found: {token}")


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a request; one that is missing or has the wrong type is answered with an error."""

    values: Message

    def text(self, name: str) -> str:
        """Return the text parameter of this name; raise an error if it is none."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise invalid_params(f"{name}: expected text, found {value!r}.")
        return value

    def objects(self, name: str) -> list[Message]:
        """Return the list of objects of this name; raise an error if it is none."""
        value = self.values.get(name)
        if not _is_list(value):
            raise invalid_params(f"{name}: expected a list, found {value!r}.")
        return [as_object(each, name) for each in value]

    def optional_objects(self, name: str) -> list[Message]:
        """Return the list of objects of this name; empty if it is missing."""
        return [] if self.values.get(name) is None else self.objects(name)

    def extension(self, *path: str) -> Message:
        """Return the fields of Segue's extension, `_meta.segue`, of the object at `path`; empty if there is none."""
        found: object = self.values
        for name in (*path, "_meta", "segue"):
            found = found.get(name) if is_object(found) else None
        return found if is_object(found) else {}


def as_object(value: object, name: str) -> Message:
    """Return the value if it is an object; raise an error naming the parameter if not."""
    if not is_object(value):
        raise invalid_params(f"{name}: expected objects, found {value!r}.")
    return value


def is_object(value: object) -> TypeGuard[Message]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)

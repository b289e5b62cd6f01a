"""Translation of errors to HTTP answers: one table, one shape."""

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from segue.model.errors import (
    AgentError,
    BadInput,
    NotFound,
    SegueError,
    ServerError,
    StoreError,
    WorkspaceError,
    WrongState,
)
from segue.model.requests import REFUSED
from segue.server.documents import Problem

log = logging.getLogger(__name__)

STATUS: dict[type[SegueError], int] = {
    BadInput: 422,
    NotFound: 404,
    WrongState: 409,
    AgentError: 409,
    WorkspaceError: 409,
    StoreError: 503,
    # The only ServerError that reaches a caller is that the server is stopping.
    ServerError: 503,
    SegueError: 500,
}

INTERNAL = Problem(
    code="internal_error",
    message="An unexpected error occurred in the Segue server.",
    hint="See server.log in the data directory.",
)


class Legible(JSONResponse):
    """JSON answer that replaces characters which cannot be encoded: file names need not be valid text."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False).encode(errors="replace")


def status_of(error: SegueError) -> int:
    """Return the HTTP status of the error's class, or of its nearest base class in the table."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def answer(status: int, problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    """Build the JSON answer of a problem, with this status and these headers."""
    return Legible(asdict(problem), status, headers)


def translate(app: FastAPI) -> None:
    """Install handlers that give every error of `app` the same shape."""
    app.add_exception_handler(SegueError, _segue_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_middleware(Unexpected)


async def _segue_error(_request: Request, error: Exception) -> JSONResponse:
    """Convert one of our errors to an answer with its status, code, message and hint."""
    error = cast(SegueError, error)
    return answer(status_of(error), Problem(code=error.code, message=error.message, hint=error.hint))


async def _http_error(_request: Request, error: Exception) -> JSONResponse:
    """Convert an error of the framework to an answer: an unknown path, a wrong method, a body that cannot be read."""
    error = cast(HTTPException, error)
    code = error.detail.lower().replace(" ", "_") if error.status_code in (404, 405) else "bad_request"
    message = {404: "The server has no such path.", 405: "This path does not take this method."}
    headers = dict(error.headers) if error.headers else None
    problem = Problem(code=code, message=message.get(error.status_code, error.detail))
    return answer(error.status_code, problem, headers)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    """Convert failed validation to an answer with status 422 that describes the first three invalid fields."""
    found: Sequence[Any] = cast(RequestValidationError, error).errors()[:3]
    sentences = [_sentence(item["type"], item["loc"], item["msg"]) for item in found]
    return answer(422, Problem(code=BadInput().code, message=" ".join(sentences)))


def _sentence(kind: str, place: Sequence[str | int], message: str) -> str:
    """Describe an invalid field without its value, which may be a secret."""
    if kind == "json_invalid":
        return "The body is not JSON."
    if kind in ("model_attributes_type", "dataclass_type"):
        message = "Input should be a valid dictionary or object to extract fields from"
    name = ".".join(str(part) for part in place[1:]) or "the body"
    if kind == "missing":
        return f"{name} is missing."
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{name} is not known here."
    if kind in ("string_too_short", "too_short"):
        return f"{name} is empty."
    if kind == REFUSED:
        return f"{name} {message}."
    return f"{name}: {message}."


class Unexpected:
    """Middleware that turns an unexpected exception into an answer without details, and logs it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            if started:
                raise
            log.exception("%s %s failed", scope["method"], scope["path"])
            await answer(500, INTERNAL)(scope, receive, send)

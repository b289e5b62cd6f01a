"""The errors that both of OpenAI's dialects have in common."""

from datetime import datetime

from segue.testing.model.exchange import JsonObject, ModelError

_CODES = {
    "rate_limited": "rate_limit_exceeded",
    "quota": "usage_limit_reached",
    "unauthorized": "invalid_api_key",
    "too_long": "context_length_exceeded",
    "overloaded": "server_is_overloaded",
}


def trouble(trouble: ModelError) -> tuple[int, JsonObject, dict[str, str]]:
    """Return the status, body and headers of an error."""
    code = _CODES.get(trouble.kind, "invalid_request_error")
    error: JsonObject = {"message": trouble.message, "type": code, "param": None, "code": code}
    if trouble.reset:
        error["resets_at"] = int(datetime.fromisoformat(trouble.reset).timestamp())
    headers = {} if trouble.retry_after is None else {"x-ratelimit-reset-requests": f"{trouble.retry_after}s"}
    return trouble.status, {"error": error}, headers

"""Models of the agent: any that pydantic-ai knows, chosen as `provider:name`. No other service is called."""

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class

from segue.drivers.skeleton.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LOGIN_REQUIRED,
    RequestError,
    invalid_params,
)


class Models:
    """Choice of models in the user's environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.default = environment.get("SEGUE_API_MODEL") or None
        self.window = _whole(environment.get("SEGUE_API_WINDOW", ""))
        """Size of the context in tokens, for models that no table knows; None if it is not set."""
        self._base_url = environment.get("SEGUE_API_BASE_URL") or None
        self.priced = not any(name.endswith("_BASE_URL") for name in environment)
        """True if the vendors' own prices hold; they are unknown for another address than the vendor's."""

    def find(self, name: str | None) -> Model:
        """Return the model of this name without sending a request; raise an error if the name or a key is missing or
        wrong."""
        if name is None:
            raise invalid_params("No model is chosen: give --model provider:name, or set SEGUE_API_MODEL.")
        if re.fullmatch(r"[\w./-]+:\S+", name) is None:
            raise invalid_params(f"A model is written as provider:name, such as openai:gpt-5, not {name!r}.")
        try:
            return infer_model(name, self._provider)
        except Exception as error:  # each vendor's library has its own way to say what is missing
            code = LOGIN_REQUIRED if "API_KEY" in str(error) else INVALID_PARAMS
            raise RequestError(code, f"The model {name} cannot be used: {error}") from error

    def _provider(self, name: str) -> Provider[Any]:
        """Return the provider of this name, at the configured base URL if there is one."""
        if self._base_url is None:
            return infer_provider(name)
        kind: Any = infer_provider_class(name)
        return kind(base_url=self._base_url)


def refused(error: ModelAPIError) -> RequestError:
    """Return the error for a vendor's refusal, with the vendor's own number and message."""
    if not isinstance(error, ModelHTTPError):
        return RequestError(INTERNAL_ERROR, f"The model could not be asked: {error}")
    later = (error.headers or {}).get("retry-after")
    wait = f" Retry after {later} seconds." if later else ""
    return RequestError(error.status_code, f"{_message(error.body) or error}{wait}", {"body": error.body})


def _message(body: object) -> str:
    """Return the message in a vendor's error, whatever its shape; empty if there is none."""
    match body:
        case {"error": {"message": str(message)}} | {"message": str(message)} | {"error": str(message)}:
            return message
        case str():
            try:
                return _message(json.loads(body))
            except ValueError:
                return body
        case _:
            return ""


def _whole(text: str) -> int | None:
    """Return a positive integer, or None if the text is none."""
    return int(text) if text.isdecimal() and int(text) else None

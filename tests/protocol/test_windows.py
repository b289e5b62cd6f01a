"""Table of models: windows and prices."""

from datetime import date, timedelta

import pytest

from segue.protocol.windows import AS_OF, MODELS, TokenCounts, cost, find, window

SOME = TokenCounts(input=1_000_000, cached=2_000_000, output=100_000, largest_request=90_000)


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("claude-opus-5-5", 1_000_000),
        ("anthropic/claude-opus-5-5", 1_000_000),
        ("Claude-Haiku-4-5-20251001", 200_000),
        ("gpt-5.6", 1_050_000),
        ("gpt-5.4-2026-03-05", 1_050_000),
        ("gemini-3.8-flash", 1_048_576),
        ("anthropic:claude-opus-5-5", 1_000_000),
        ("openai-chat:gpt-5.6", 1_050_000),
        ("google-cloud:gemini-3.8-flash", 1_048_576),
    ],
)
def test_a_window_is_found_by_the_name_of_the_model(name: str, tokens: int) -> None:
    assert window(name) == tokens


@pytest.mark.parametrize(
    "name",
    [
        *(None, "", "opus", "claude-opus-6", "gpt-5.6-sol-fast", "claude-opus-4-8", "/", ":"),
        *("github-copilot/claude-opus-5-5", "openrouter:anthropic/claude-opus-5-5", "ollama:gpt-5.6"),
    ],
)
def test_the_window_of_a_model_outside_the_table_is_unknown(name: str | None) -> None:
    assert window(name) is None


def test_a_cost_is_the_sum_of_input_cached_input_and_output() -> None:
    assert cost("claude-opus-5", SOME, AS_OF) == pytest.approx(5 + 2 * 0.5 + 0.1 * 25)


def test_a_price_that_ends_is_unknown_from_the_next_day_on() -> None:
    last = date(2026, 11, 21)
    assert cost("gpt-5.6-sol", SOME, last) == pytest.approx(4 + 2 * 0.4 + 0.1 * 20)
    assert cost("gpt-5.6-sol", SOME, last + timedelta(days=1)) is None


@pytest.mark.parametrize(("largest", "known"), [(100_000, True), (100_001, False), (None, False)])
def test_the_price_for_small_requests_does_not_apply_to_larger_ones(largest: int | None, known: bool) -> None:
    tokens = TokenCounts(input=1000, cached=0, output=10, largest_request=largest)
    assert (cost("claude-haiku-5-5", tokens, AS_OF) is not None) == known


@pytest.mark.parametrize("name", [None, "made-up", "gpt-5.6-terra"])
def test_the_cost_of_a_model_without_a_price_is_unknown(name: str | None) -> None:
    assert cost(name, SOME, AS_OF) is None


def test_without_the_cached_tokens_there_is_no_cost() -> None:
    assert cost("claude-opus-5", TokenCounts(input=1000, cached=None, output=10), AS_OF) is None


@pytest.mark.parametrize("name", MODELS)
def test_every_row_of_the_table_can_be_found_and_makes_sense(name: str) -> None:
    model = MODELS[name]
    assert find(f"{model.vendor}/{name}") is model
    assert model.source
    assert model.window or model.price
    if price := model.price:
        assert 0 < price.cached < price.input < price.output

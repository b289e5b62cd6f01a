"""Fill level of a window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.usage import RequestUsage, RunUsage

from segue.model.checkpoint import Usage
from segue.model.usage import UsageMetadata

TOKENS = st.integers(min_value=0, max_value=10**9)


@pytest.mark.parametrize("kind", [RequestUsage, RunUsage])
def test_usage_of_pydantic_ai_gives_the_fill_level_of_a_window(kind: type[RequestUsage | RunUsage]) -> None:
    usage = UsageMetadata.from_pydantic_ai_usage(kind(input_tokens=49_000, output_tokens=1_000))
    assert usage == UsageMetadata(prompt_tokens=49_000, completion_tokens=1_000, context_window_size=200_000)
    assert (usage.total_tokens, usage.tokens_remaining, usage.utilization) == (50_000, 150_000, 0.25)


@given(TOKENS, TOKENS, TOKENS)
def test_no_window_is_more_than_full(prompt: int, completion: int, window: int) -> None:
    counted = RequestUsage(input_tokens=prompt, output_tokens=completion)
    usage = UsageMetadata.from_pydantic_ai_usage(counted, window)
    remaining, utilization = usage.tokens_remaining, usage.utilization
    assert (remaining is None) == (utilization is None) == (window == 0)
    if remaining is not None and utilization is not None:
        assert remaining >= 0 and 0 <= utilization <= 1
        assert utilization == 1 or remaining > 0


@pytest.mark.parametrize(
    "usage", [Usage(), Usage(context_tokens=1), Usage(window=1), Usage(context_tokens=1, window=0)]
)
def test_figures_that_are_not_reported_are_unknown(usage: Usage) -> None:
    assert (usage.tokens_remaining, usage.utilization) == (None, None)
    unknown = UsageMetadata(prompt_tokens=1, completion_tokens=1, context_window_size=None)
    assert (unknown.tokens_remaining, unknown.utilization) == (None, None)

"""Every driver of ours does what every driver must do."""

from pathlib import Path
from typing import Any, get_args

import pytest
from candidates import (
    EXAMPLE,
    AcpCandidate,
    AmpCandidate,
    ApiCandidate,
    AuggieCandidate,
    ClaudeCandidate,
    ClaudeStandInCandidate,
    ContainedCandidate,
    ExampleCandidate,
    LangGraphCandidate,
)

from segue.testing.conformance import CHECKS, Act, Check

pytestmark = pytest.mark.anyio

CANDIDATES = {
    "acp": AcpCandidate,
    "container": ContainedCandidate,
    "amp": AmpCandidate,
    "api": ApiCandidate,
    "claude": ClaudeCandidate,
    "claude-stand-in": ClaudeStandInCandidate,
    "auggie": AuggieCandidate,
    "langgraph": LangGraphCandidate,
    "example": ExampleCandidate,
}


@pytest.mark.parametrize("check", CHECKS, ids=str)
@pytest.mark.parametrize("name", CANDIDATES)
async def test_the_driver_conforms(name: str, check: Check, tmp_path: Path) -> None:
    candidate: Any = CANDIDATES[name](tmp_path)
    await check(candidate)


def test_the_page_shows_the_example_as_it_is_and_it_is_short() -> None:
    example = EXAMPLE.read_text()
    assert f"```python\n{example}```\n" in EXAMPLE.with_name("write-a-driver.md").read_text()
    assert len(example.splitlines()) < 100


def test_every_act_has_a_row_in_the_page() -> None:
    page = EXAMPLE.with_name("write-a-driver.md").read_text()
    assert all(f"| `{act.__name__}(" in page for act in get_args(Act))

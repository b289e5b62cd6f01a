"""Every driver of ours does what every driver must do."""

import re
from pathlib import Path
from typing import Any, get_args
from unittest import SkipTest

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


REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "conformance.md"

SKIPPED = {
    "a_failed_turn_is_told_and_the_next_one_works": {"auggie"},
    "usage_is_told_before_the_turn_ends": {"auggie"},
    "another_conversation_than_the_one_asked_for_is_not_taken_for_it": {"api", "claude", "auggie", "langgraph"},
    "a_copy_remembers_and_the_original_stays": {"amp", "auggie", "example"},
    "a_copy_up_to_a_bookmark_knows_nothing_that_was_said_after_it": {"acp", "container", "amp", "auggie", "example"},
    "conversations_are_listed_by_their_tokens": {"amp", "example"},
    "what_is_said_after_a_turn_still_comes_and_before_the_next": {"amp", "api", "claude", "auggie", "langgraph"},
}
"""Candidates that cannot show a check; docs/reference/conformance.md gives the reasons."""


@pytest.mark.parametrize("check", CHECKS, ids=str)
@pytest.mark.parametrize("name", CANDIDATES)
async def test_the_driver_conforms(name: str, check: Check, tmp_path: Path) -> None:
    candidate: Any = CANDIDATES[name](tmp_path)
    skipped = name in SKIPPED.get(str(check), ())
    try:
        await check(candidate)
    except SkipTest as reason:
        assert skipped, f"{name} is not examined any more: {reason}"
        raise
    assert not skipped, f"{name} passes what it is said to skip"


def test_the_page_says_who_skips_what() -> None:
    page = REFERENCE.read_text()
    rows = [
        f"| `{check}` | {', '.join(f'`{name}`' for name in CANDIDATES if name in SKIPPED[check])} |"
        for check in SKIPPED
    ]
    assert "\n\n| check | skipped for |\n|---|---|\n{}\n\n".format("\n".join(rows)) in page


def test_the_page_shows_the_example_as_it_is_and_it_is_short() -> None:
    example = EXAMPLE.read_text()
    assert f"```python\n{example}```\n" in EXAMPLE.with_name("write-a-driver.md").read_text()
    assert len(example.splitlines()) < 100


def test_the_candidate_in_the_page_imports_what_it_uses() -> None:
    page = EXAMPLE.with_name("write-a-driver.md").read_text()
    imports, candidate = page.split("## Examine it")[1].split("```python\n")[1].split("\n\n\nclass ")
    names: dict[str, Any] = {}
    exec(imports, names)
    own = {"MyCandidate", "MyDriver", "None"}
    used = set(re.findall(r"\b[A-Z]\w+", re.sub(r'#.*|""".*"""', "", candidate.split("```")[0])))
    assert used - own <= names.keys()
    assert {"pytest", "CHECKS", "Check", "os", "allowed", "asynccontextmanager"} <= names.keys()


def test_every_act_has_a_row_in_the_page() -> None:
    page = REFERENCE.read_text()
    assert all(f"| `{act.__name__}(" in page for act in get_args(Act))

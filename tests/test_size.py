"""What a machine has to hold for Segue without any of its extras."""

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST = 150_000_000
"""Bytes."""
NEEDED_BY_EXTRAS = {"claude-agent-sdk", "langgraph", "pydantic-ai-slim"}


def required() -> set[str]:
    locked = (ROOT / "requirements" / "run.txt").read_text()
    return set(re.findall(r"^([A-Za-z0-9_.-]+)==", locked, re.MULTILINE))


def size_of(name: str) -> int:
    try:
        files = distribution(name).files or ()
    except PackageNotFoundError:
        return 0  # for other systems than this one
    return sum(path.stat().st_size for path in (Path(str(file.locate())) for file in files) if path.is_file())


def test_segue_without_extras_is_small() -> None:
    own = sum(file.stat().st_size for file in (ROOT / "src").rglob("*") if file.is_file())
    sizes = {name: size_of(name) for name in required()}
    assert sizes["sqlalchemy"] > 1_000_000, "the packages were not found where they are"
    assert own + sum(sizes.values()) < MOST


def test_what_only_an_extra_needs_is_not_installed_without_it() -> None:
    assert not NEEDED_BY_EXTRAS & required()

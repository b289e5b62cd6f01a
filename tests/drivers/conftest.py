"""Agents to talk to: the rehearsal agent, and one that sends exactly the lines a test wrote."""

from pathlib import Path

import pytest
from literally import LiteralAgent

from segue.testing.rehearsal.launch import Rehearsal


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def rehearsal(tmp_path: Path) -> Rehearsal:
    return Rehearsal(tmp_path)


@pytest.fixture
def literal(tmp_path: Path) -> LiteralAgent:
    return LiteralAgent(tmp_path)

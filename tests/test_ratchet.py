"""The ratchet on the language of docstrings."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "scripts"))

import ratchet
from measure_house import Module

OLD_STYLE = '''
def chosen(way: str) -> bool:
    """Whether somebody said so."""

def compile(way: str) -> str:
    """Order of what comes."""
'''
PLAIN = '''
"""Ways of resuming."""

def chosen(way: str) -> bool:
    """Check that `way` was requested."""

class Way:
    """Way of resuming a session."""

    @property
    def price(self) -> int:
        """Tokens that the way costs."""
'''


def test_each_habit_is_counted_where_it_occurs() -> None:
    found = [(name, line) for name, line, _ in ratchet.findings(Module("cli/way.py", OLD_STYLE))]
    first = [(name, 2) for name in ("opening", "speech", "person", "not_imperative")]
    assert found == [*first, ("not_imperative", 5)]


def test_plain_docstrings_are_not_counted() -> None:
    assert list(ratchet.findings(Module("cli/way.py", PLAIN))) == []


@pytest.mark.parametrize("code", ["class Way: ...", "def go() -> None:" + "\n    pass" * 10], ids=["class", "function"])
def test_a_public_class_or_long_function_needs_a_docstring(code: str) -> None:
    assert [name for name, _, _ in ratchet.findings(Module("way.py", code))] == ["undocumented"]
    hidden = code.replace("Way", "_Way").replace("go", "_go")
    assert list(ratchet.findings(Module("way.py", hidden))) == []


def test_a_figure_that_rises_is_a_fault_and_one_that_falls_becomes_the_limit() -> None:
    allowed = {"cli": {"opening": 2, "speech": 1}}
    current = {"cli": {"opening": 1, "speech": 2}, "new": {"person": 1}}
    worse = ["cli: speech is 2, allowed are 1", "new: person is 1, allowed are 0"]
    assert list(ratchet.faults(current, allowed)) == worse
    assert ratchet.tightened(current, allowed) == {"cli": {"opening": 1, "speech": 1}, "new": {"person": 0}}

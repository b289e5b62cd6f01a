"""A session of medium length, made up from nothing: an agent works on the controller of a kettle."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from segue.drivers.native import read
from segue.model.transcript import Line
from tests.recordings import DIRECTORY, ClaudeFile, CodexFile

REQUEST = """The kettle must stop by itself when the water boils. At the moment it goes on for ever.
Please write the tests first. Keep the public API of BoilController as it is."""
CORRECTION = "Do not poll the sensor in the main loop, use the interrupt instead."


BRANCH = "stop-at-boil"
CONTROLLER, TEST = f"{DIRECTORY}/src/boil_controller.py", f"{DIRECTORY}/tests/test_boil.py"
RUN_TESTS = f"cd {DIRECTORY} && python -m pytest tests/test_boil.py 2>&1 | tail -5"
TODOS = ("Write a failing test for stopping", "Stop heating at the boiling point", "Describe the change for users")

Agents = TypeVar("Agents", ClaudeFile, CodexFile)


def told(file: Agents, rounds: int = 6) -> Agents:
    """The story, in the words of either agent."""
    file.user(REQUEST)
    file.says("I'll read the controller first to see where BoilController decides when to stop heating the water.")
    file.reads(CONTROLLER, "class BoilController:\n    def shouldStopHeating(self, reading): return False")
    file.plans(dict(zip(TODOS, ("in_progress", "pending", "pending"), strict=True)))
    file.writes(TEST, "def test_stops_at_boil():\n    assert BoilController().shouldStopHeating(Reading(celsius=100))")
    file.runs(RUN_TESTS, "FAILED tests/test_boil.py::test_stops_at_boil - AssertionError\n1 failed in 0.10s")
    file.user(CORRECTION)
    file.says(
        "I decided to register onBoilInterrupt with the sensor rather than polling, because polling wastes power."
    )
    for turn in range(rounds):
        file.edits(CONTROLLER, "return False", f"return reading.celsius >= boilingPointAt(altitude_meters={turn})")
        found = f"src/parts.py:{turn}: def helper_number_{turn}(kettle): pour water slowly and wait"
        file.runs(f"grep -rn helper_number_{turn} src", found)
    file.runs(RUN_TESTS, "1 passed in 0.09s")
    file.runs("ruff check src", "error: src/parts.py:3: undefined name waterLevelSensor", code=1)
    file.plans(dict(zip(TODOS, ("completed", "completed", "in_progress"), strict=True)))
    file.runs(
        'git commit -qam "Stop at the boiling point"',
        "[stop-at-boil 1a2b3c4] Stop at the boiling point\n 2 files changed",
    )
    file.says("The kettle stops now. Next I will describe onBoilInterrupt in docs/usage.md for the users.")
    return file


def kettle_session(rounds: int = 6) -> ClaudeFile:
    return told(ClaudeFile(branch=BRANCH), rounds)


def kettle_rollout(rounds: int = 6) -> CodexFile:
    return told(CodexFile(branch=BRANCH), rounds)


def kettle_lines(folder: Path, rounds: int = 6) -> Iterator[Line]:
    return read(kettle_session(rounds).write(folder)).lines

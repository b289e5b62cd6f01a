"""A session of medium length, made up from nothing: an agent works on the controller of a kettle."""

from collections.abc import Iterator
from pathlib import Path

from segue.drivers.native import read
from segue.model.transcript import Line
from tests.recordings import ClaudeFile

REQUEST = """The kettle must stop by itself when the water boils. At the moment it goes on for ever.
Please write the tests first. Keep the public API of BoilController as it is."""
CORRECTION = "Do not poll the sensor in the main loop, use the interrupt instead."


def kettle_session(rounds: int = 6) -> ClaudeFile:
    file = ClaudeFile(branch="stop-at-boil").user(REQUEST)
    file.says("I'll read the controller first to see where BoilController decides when to stop heating the water.")
    file.calls("Read", "r1", file_path="/home/dev/kettle/src/boil_controller.py")
    file.answered("r1", "     1→class BoilController:\n     2→    def shouldStopHeating(self, reading): return False")
    file.calls("TodoWrite", "t1", todos=[
        {"content": "Write a failing test for stopping", "status": "in_progress"},
        {"content": "Stop heating at the boiling point", "status": "pending"},
        {"content": "Describe the change for users", "status": "pending"},
    ])  # fmt: skip
    test = "def test_stops_at_boil():\n    assert BoilController().shouldStopHeating(Reading(celsius=100))"
    file.calls("Write", "w1", file_path="/home/dev/kettle/tests/test_boil.py", content=test)
    file.answered("w1", "File created successfully")
    file.calls("Bash", "b1", command="cd /home/dev/kettle && python -m pytest tests/test_boil.py 2>&1 | tail -5")
    file.answered("b1", "FAILED tests/test_boil.py::test_stops_at_boil - AssertionError\n1 failed in 0.10s")
    file.user(CORRECTION)
    file.says(
        "I decided to register onBoilInterrupt with the sensor rather than polling, because polling wastes power."
    )
    for turn in range(rounds):
        file.calls("Edit", f"e{turn}", file_path="/home/dev/kettle/src/boil_controller.py", old_string="return False",
                   new_string=f"return reading.celsius >= boilingPointAt(altitude_meters={turn})")  # fmt: skip
        file.answered(f"e{turn}", "The file has been updated.")
        file.calls("Bash", f"g{turn}", command=f"grep -rn helper_number_{turn} src")
        file.answered(f"g{turn}", f"src/parts.py:{turn}: def helper_number_{turn}(kettle): pour water slowly and wait")
    file.calls("Bash", "b2", command="cd /home/dev/kettle && python -m pytest tests/test_boil.py 2>&1 | tail -5")
    file.answered("b2", "1 passed in 0.09s")
    file.calls("Bash", "b3", command="ruff check src")
    file.answered("b3", "Exit code 1\nerror: src/parts.py:3: undefined name waterLevelSensor", failed=True)
    file.calls("TodoWrite", "t2", todos=[
        {"content": "Write a failing test for stopping", "status": "completed"},
        {"content": "Stop heating at the boiling point", "status": "completed"},
        {"content": "Describe the change for users", "status": "in_progress"},
    ])  # fmt: skip
    file.calls("Bash", "c1", command='git commit -qam "Stop at the boiling point"')
    file.answered("c1", "[stop-at-boil 1a2b3c4] Stop at the boiling point\n 2 files changed")
    return file.says("The kettle stops now. Next I will describe onBoilInterrupt in docs/usage.md for the users.")


def kettle_lines(folder: Path, rounds: int = 6) -> Iterator[Line]:
    return read(kettle_session(rounds).write(folder)).lines

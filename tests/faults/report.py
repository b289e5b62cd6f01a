"""One line under the tests: how many servers were killed, and what that cost."""

from collections import Counter

import pytest

COUNTED = ("kills", "lost", "duplicated", "orphans")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts: Counter[str] = Counter()
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        if report.when == "call":
            for name, value in report.user_properties:
                counts[name] += value if name in COUNTED else 0
    if counts["kills"]:
        words = ", ".join(f"{name} {counts[name]}" for name in COUNTED)
        terminalreporter.write_line(f"faults: {words}")

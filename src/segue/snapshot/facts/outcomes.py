"""Outcomes in an output: failed tests, passed tests, error lines."""

import re

_FAILING = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"--- FAIL: (\S+)",
        r"^FAILED ([^\s(]\S*)",
        r"^ERROR (\S+::\S+)",
        r"^[ \t]*[✕×✗✘] (.{5,80}?)(?: \(?\d+|$)",
        r"^test (\S+) \.\.\. FAILED",
        r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))",
    )
)
# An unknown test runner still has a name.
_GENERAL = re.compile(r"^[ \t]*(?:FAIL|not ok)[ \t]+(?:\d+ - )?(\S*[./]\S+)", re.MULTILINE)
_BAD = re.compile(
    r"^(?:FAIL\b|--- FAIL|FAILED\b|ERROR\b|panic:|not ok\b)|\b[1-9]\d* (?:failed|failing|failures?|errors?)\b"
    r"|Traceback \(most recent|build failed|FAILED \(",
    re.MULTILINE | re.IGNORECASE,
)
_TROUBLE = re.compile(
    r"error|fail(?:ed|ure)?|panic|exception|fatal|undefined|cannot|not found|no such|denied|unexpected|invalid|missing",
    re.IGNORECASE,
)
_RAISED = re.compile(r"[\w.]*(?:Error|Exception)\b.+")
# Lines that frame an output and say nothing of their own: rules, runs that went well, and the marks of a diff.
_FRAME = re.compile(
    r"(?:error: )?exit code|command:|chunk id|process exited|wall time|[+\-#*]|[=_]{4}|=== run|--- pass"
    r"|ok\s|diff |@@|//",
    re.IGNORECASE,
)
# A compiler or linter names the place first.
_PLACED = re.compile(r"^[\w./\\-]+\.\w+:\d+(?::\d+)?:? \S.*")
_COUNTS = re.compile(
    r"^.*(?:\b\d+ (?:passed|failed|passing|failing|tests?)\b|\bRan \d+ tests?\b"
    r"|^test result:|^Tests:|^ok\s+\S|^FAIL\b).*$",
    re.MULTILINE,
)
_GOOD = re.compile(
    r"^(?:ok\s+\S|PASS\b|--- PASS|OK\b(?: \(|$))|\b\d+ (?:passed|passing)\b|^test result: ok|^Tests?:\s+\d+ passed"
    r"|tests? passed"
    r"|\b0 (?:failed|failures|errors)\b|All checks passed|\bALL (?:TESTS )?PASS(?:ED)?\b|\b0 issues\b",
    re.MULTILINE,
)
_NUMBER = re.compile(r"\d+ (?:passed|failed|passing|failing|tests?)|Ran \d+|^test result:|^Tests:", re.IGNORECASE)
MOST_FAILING = 12
LONGEST_MESSAGE = 200
READ_OF_AN_OUTPUT = 60_000


def tests_failed(output: str) -> bool:
    """Return True if an output shows failed tests; an exit status is often lost in a pipe."""
    return _BAD.search(_bounded(output)) is not None


def tests_passed(output: str) -> bool:
    """Return True if an output shows passed tests and no failed ones."""
    text = _bounded(output)
    return _GOOD.search(text) is not None and _BAD.search(text) is None


def failing_tests(output: str) -> tuple[str, ...]:
    """Return the first failing tests that an output names."""
    return every_failing_test(_bounded(output))[:MOST_FAILING]


def every_failing_test(output: str) -> tuple[str, ...]:
    """Return all failing tests, however many there are."""
    return tuple(dict.fromkeys(name.strip() for pattern in _FAILING for name in pattern.findall(output)))


def failing_targets(output: str) -> tuple[str, ...]:
    """Return the files or packages that failed, if the output names no tests."""
    return tuple(dict.fromkeys(_GENERAL.findall(_bounded(output))))[:MOST_FAILING]


def test_summary(output: str) -> str:
    """Return the last line in which the runner counts, or an empty text."""
    lines = [line for line in _COUNTS.findall(_bounded(output)) if _NUMBER.search(line)]
    return " ".join(lines[-1].strip(" =").split())[:120] if lines else ""


def error_message(output: str) -> str:
    """Return the line that names the error best, or an empty text."""
    # A progress line overwrites itself; its last state counts.
    lines = [line.rsplit("\r", 1)[-1].strip() for line in _bounded(output).split("\n")]
    if "Traceback (most recent" in output:
        raised = [line for line in lines if len(line) > 12 and _RAISED.match(line)]
        if raised:
            return raised[-1][:LONGEST_MESSAGE]
    for line in lines:
        if 12 <= len(line) <= 400 and (_TROUBLE.search(line) or _PLACED.match(line)) and not _FRAME.match(line):
            return line[:LONGEST_MESSAGE]
    return ""


def _bounded(output: str) -> str:
    """Return an output; of a long one only the beginning and the end."""
    if len(output) <= READ_OF_AN_OUTPUT:
        return output
    half = READ_OF_AN_OUTPUT // 2
    return f"{output[:half]}\n{output[-half:]}"

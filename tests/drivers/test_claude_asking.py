"""Which commands Claude Code may be left to judge by itself."""

import pytest

from segue.drivers.claude.permission_rules import only_looks


@pytest.mark.parametrize(
    "command", ["ls", "ls -la src", "cat a.txt | head -5", "grep -rn 'a|b' src", r'grep "foo\bbar" x', "cat *.py"]
)
def test_a_command_that_only_prints_is_left_to_claude_code(command: str) -> None:
    assert only_looks(command)


@pytest.mark.parametrize(
    "command",
    [
        *("", " ", "|", "ls |", "| ls", "make", "git log", "find . -delete", "/tmp/ls", "A=1 ls", "ls '", None),
        *("ls;rm x", "ls ; rm x", "ls&rm x", "ls && rm x", "ls||rm", "ls|rm x", "ls |& rm", "ls\nrm", "ls\rrm"),
        *("ls>x", "ls > x", "ls 2>x", 'ls a"b">x', "'ls'>x", "ls ''>x", "cat <(rm)", "(ls)", "ls #;rm x"),
        *("ls $(rm)", "ls `rm`", 'ls "$(rm)"', "ls '|' rm", 'ls "a"|rm', r"ls a\;b;rm y", "ls '\\'';rm"),
    ],
)
def test_a_command_that_may_do_more_is_not(command: object) -> None:
    assert not only_looks(command)

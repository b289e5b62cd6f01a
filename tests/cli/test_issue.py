import json
import os
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from segue.cli import issue
from segue.cli.issue import read_issue, read_plan, read_servers
from segue.model.errors import BadInput, BadPlan

TEXT = "\n# Add a parser\n\nA small one.\nFor the rest, see below.\n"
ISSUE = {"title": "Add a parser", "description": "A small one.\nFor the rest, see below."}


def test_an_issue_is_a_text_whose_first_line_is_its_title() -> None:
    assert read_issue("Add a parser") == {"title": "Add a parser", "description": ""}
    assert read_issue(TEXT) == ISSUE


@pytest.mark.parametrize("name", ["@issue.md", "issue.md", "@issue"])
def test_an_issue_can_be_a_file(name: str) -> None:
    Path(name.removeprefix("@")).write_text(TEXT)
    assert read_issue(name) == ISSUE


def test_a_text_that_only_looks_like_a_file_is_a_text() -> None:
    assert read_issue("Write README.md")["title"] == "Write README.md"
    assert read_issue("missing.md")["title"] == "missing.md"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "The issue is empty."),
        (" \n\t\n", "The issue is empty."),
        ("##\nmore", "The issue has no title."),
        ("@missing.md", "missing.md cannot be read: No such file or directory."),
        ("@.", "cannot be read: Is a directory."),
        ("@binary", "binary is not UTF-8 text."),
    ],
)
def test_an_issue_that_cannot_be_used_gets_a_sentence(given: str, words: str) -> None:
    Path("binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput) as refused:
        read_issue(given)
    assert words in refused.value.message


@pytest.mark.parametrize("given", ["word " * 60 + ".md", "nul\0.md"])
def test_a_text_that_no_file_can_be_called_is_a_text(given: str) -> None:
    assert read_issue(given)["title"] == given


@pytest.mark.parametrize("given", ["@long", "-"])
def test_an_issue_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    Path("long").write_text("12345")
    monkeypatch.setattr(issue, "MOST_READ", 4)
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"12345")))
    with pytest.raises(BadInput, match=r"(long|Standard input) is too large: "):
        read_issue(given)


def test_a_device_is_no_file_and_what_another_program_prints_is_one() -> None:
    with pytest.raises(BadInput, match=r"/dev/null cannot be read: it is not a file\."):
        read_issue("@/dev/null")
    reading, writing = os.pipe()
    os.write(writing, b"Add a parser")
    os.close(writing)
    assert read_issue(f"@/dev/fd/{reading}")["title"] == "Add a parser"
    os.close(reading)


@pytest.mark.parametrize(
    ("name", "form"), [("plan.yaml", "yaml"), ("plan.yml", "yaml"), ("plan.MD", "markdown"), ("a.markdown", "markdown")]
)
def test_the_suffix_of_a_plan_says_how_it_is_written(name: str, form: str) -> None:
    Path(name).write_text("tasks: []")
    assert read_plan(Path(name)) == {"format": form, "text": "tasks: []"}


def test_a_plan_that_cannot_be_used_gets_a_sentence() -> None:
    Path("plan.docx").write_bytes(b"\xff")
    with pytest.raises(BadPlan, match=r"The plan plan\.docx has a suffix that means nothing here\."):
        read_plan(Path("plan.docx"))
    with pytest.raises(BadInput, match=r"plan\.yaml cannot be read: No such file or directory\."):
        read_plan(Path("plan.yaml"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        pytest.param("[" * 5_000, "is nested too deeply", id="brackets"),
        ("[]", 'names no "mcpServers"'),
        ('{"servers": {}}', 'names no "mcpServers"'),
        ('{"mcpServers": []}', 'names no "mcpServers"'),
        ('{"mcpServers": {"a": "x"}}', "The server 'a' in mcp.json must be an object."),
        ('{"mcpServers": {"a": {}}}', "must have a command, which is a text"),
        ('{"mcpServers": {"a": {"command": ["x"]}}}', "must have a command, which is a text"),
        ('{"mcpServers": {"a": {"command": "x", "args": "y"}}}', "args must be a list of texts"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"K": 1}}}}', "env must be an object whose values are texts"),
        ('{"mcpServers": {"a": {"command": "x", "cwd": "/"}}}', "has a key that means nothing here: cwd"),
        ('{"mcpServers": {"a": {"type": "http"}}}', "must have a url, which is a text"),
        ('{"mcpServers": {"a": {"type": "ftp", "url": "x"}}}', "has a type that means nothing here: 'ftp'"),
    ],
)
def test_a_file_of_servers_that_cannot_be_used_says_where_it_is_wrong(text: str, words: str) -> None:
    Path("mcp.json").write_text(text)
    with pytest.raises(BadInput) as refused:
        read_servers(Path("mcp.json"))
    assert words in refused.value.message


def test_an_address_without_a_type_is_http() -> None:
    Path("mcp.json").write_text('{"mcpServers": {"a": {"url": "https://example.org"}}}')
    assert read_servers(Path("mcp.json")) == [
        {"name": "a", "transport": "http", "url": "https://example.org", "variables": {}}
    ]


# ── issues of GitHub and GitLab ─────────────────────────────────────────────────────────────────────

GITHUB_PROGRAM = {
    "title": "Parser crashes",
    "body": "On empty input.\r\nAlways.",
    "number": 12,
    "url": "https://github.com/ada/calc/issues/12",
    "labels": [{"id": "x", "name": "bug"}, {"id": "y", "name": "parser"}],
    "comments": [{"author": {"login": "bob"}, "body": "Me too."}],
}
GITHUB_INTERFACE = {
    "url": "https://api.github.com/repos/ada/calc/issues/12",
    "html_url": "https://github.com/ada/calc/issues/12",
    "number": 12,
    "title": "Parser crashes",
    "user": {"login": "ada"},
    "labels": [{"name": "bug"}],
    "comments": 1,
    "body": None,
}
GITLAB = {
    "id": 4711,
    "iid": 12,
    "title": "Parser crashes",
    "description": "On empty input.",
    "labels": ["bug"],
    "web_url": "https://gitlab.com/ada/calc/-/issues/12",
    "Notes": [{"author": {"username": "bob"}, "body": "Me too."}],
}


@pytest.mark.parametrize(
    ("document", "description"),
    [
        (
            GITHUB_PROGRAM,
            "On empty input.\nAlways.\n\nLabels: bug, parser\n\nComments:\n\nbob: Me too.\n\n"
            "This is issue 12: https://github.com/ada/calc/issues/12",
        ),
        (GITHUB_INTERFACE, "Labels: bug\n\nThis is issue 12: https://github.com/ada/calc/issues/12"),
        (
            GITLAB,
            "On empty input.\n\nLabels: bug\n\nComments:\n\nbob: Me too.\n\n"
            "This is issue 12: https://gitlab.com/ada/calc/-/issues/12",
        ),
        ({"title": " Parser\n crashes ", "labels": 3, "comments": [1], "number": "x"}, ""),
    ],
)
def test_an_issue_of_github_or_gitlab_is_understood(document: dict[str, Any], description: str) -> None:
    Path("issue.json").write_text(json.dumps(document, indent=2))
    assert read_issue("@issue.json") == {"title": "Parser crashes", "description": description}
    assert read_issue(json.dumps(document)) == {"title": "Parser crashes", "description": description}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"title": "Cut o', "This begins like JSON, and is none"),
        ('{"message": "Not Found", "status": "404"}', 'This JSON is no issue: it has no "title".'),
        ('{"title": 5}', 'This JSON is no issue: it has no "title".'),
        ("{}", 'This JSON is no issue: it has no "title".'),
        ('[{"title": "One"}, {"title": "Two"}]', "This is a list, and a workflow is about one issue."),
        ("[1,2]", "This is a list, and a workflow is about one issue."),
        ("[" * 100_000, "This begins like JSON, and is none"),
        ("12", "This is a value of JSON, and no issue."),
        ("null", "This is a value of JSON, and no issue."),
    ],
)
def test_json_that_is_no_issue_gets_a_sentence(text: str, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_issue(text)
    assert words in refused.value.message
    assert "gh issue view" in refused.value.hint


@pytest.mark.parametrize("text", ["{{ name }} is not filled in", "[x] is a box", "{braces} are read as JSON"])
def test_text_with_braces_is_text(text: str) -> None:
    assert read_issue(text)["title"] == text

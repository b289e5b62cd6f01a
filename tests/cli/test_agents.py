import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segue import client
from segue.model.errors import NotRunning
from segue.model.views import AgentCheck
from tests.server import standin_service
from tests.server.standin_service import AGENT, CHECKS, Standin

BACK = "natively, if it says that it can; else a new conversation begins with a compiled context"


def test_agents_are_listed_with_what_installs_them(segue: Any, service: Standin) -> None:
    assert segue("agents", "list").stdout == (
        "claude  found    /usr/bin/claude-agent-acp\n"
        f"                 comes back {BACK}\n"
        "codex   missing  npm install -g codex-acp\n"
        f"                 comes back {BACK}\n"
    )
    assert service.asked[-1] == ("agents", dict(os.environ))
    listed = json.loads(segue("agents", "list", "--json").stdout)
    assert [agent["name"] for agent in listed["agents"]] == ["claude", "codex"]


def test_an_agent_that_is_well_says_what_it_can_do(segue: Any, service: Standin) -> None:
    result = segue("agents", "check", "claude")
    assert result.exit_code == 0
    assert result.stdout == (
        "✓ claude\n"
        "  command     claude-agent-acp\n"
        "  program     /usr/bin/claude-agent-acp\n"
        "  version     Claude Agent 0.99.1\n"
        "  can         load, resume\n"
        "  logins      Claude subscription\n"
        "  comes back  natively, by session/resume\n"
        "  note        If it asks you to log in: claude-agent-acp --cli auth login\n"
    )
    assert service.asked[-1] == ("check_agent", "claude", dict(os.environ))


def test_an_agent_that_is_missing_says_how_it_is_installed(segue: Any, service: Standin) -> None:
    result = segue("agents", "check", "codex")
    assert result.exit_code == 1
    assert result.stdout == (
        "✗ codex: The program codex-acp was not found.\n"
        "  command     codex-acp\n"
        "  program     not found on PATH\n"
        "  comes back  natively, if it says that it can; else a new conversation begins with a compiled context\n"
        "  do          Install it: npm install -g codex-acp\n"
    )
    checked = segue("agents", "check", "codex", "--json")
    assert (checked.exit_code, json.loads(checked.stdout)["ok"]) == (1, False)


def test_an_agent_without_its_driver_is_missing(segue: Any, service: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = "The driver mine:Mine cannot be used: mine cannot be imported: No module named 'mine'."
    mine = replace(AGENT, name="mine", program=None, problem=problem)
    monkeypatch.setitem(CHECKS, "mine", AgentCheck(agent=mine, ok=False, problem=problem, hint="Set PYTHONPATH."))
    monkeypatch.setattr(standin_service, "MISSING", mine)
    assert f"mine    missing  {problem}\n" in segue("agents", "list").stdout
    checked = segue("agents", "check", "mine").stdout
    assert checked.startswith(f"✗ mine: {problem}\n") and "not found on PATH" not in checked


@pytest.mark.parametrize("name", ["nobody", "a/b", "../status", "?"])
def test_an_agent_that_nobody_knows_is_refused(segue: Any, service: Standin, name: str) -> None:
    result = segue("agents", "check", name)
    assert (result.exit_code, result.stdout) == (1, "")


@pytest.mark.parametrize("command", [["agents", "check"], ["memorize", "forget"]])
@pytest.mark.parametrize(
    ("name", "words"),
    [("", "A name is needed."), ("../../etc", "'../../etc' is not a name: it contains a slash.")],
)
def test_bad_names_are_refused_unasked(segue: Any, home: Path, command: list[str], name: str, words: str) -> None:
    result = segue(*command, name)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"segue: {words}\n")
    assert not home.exists()


@pytest.mark.usefixtures("standin_command")
def test_a_server_started_only_to_list_agents_is_stopped_again(segue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN", "idle")
    assert segue("agents", "list").exit_code == 0
    with pytest.raises(NotRunning):
        client.find()

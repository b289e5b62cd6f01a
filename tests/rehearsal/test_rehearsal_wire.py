"""The rehearsal agent speaks the protocol without its models: they are the judges here."""

import subprocess
import sys
from typing import Any

import pytest
from acp.meta import CLIENT_METHODS
from acp.schema import (
    CreateTerminalRequest,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    ReadTextFileRequest,
    ReleaseTerminalRequest,
    RequestPermissionRequest,
    SessionNotification,
    TerminalOutputRequest,
    WaitForTerminalExitRequest,
    WriteTextFileRequest,
)
from wired import Wire, wired

from segue.testing.rehearsal.launch import Rehearsal

MODELS = {
    "session_update": SessionNotification,
    "session_request_permission": RequestPermissionRequest,
    "fs_read_text_file": ReadTextFileRequest,
    "fs_write_text_file": WriteTextFileRequest,
    "terminal_create": CreateTerminalRequest,
    "terminal_wait_for_exit": WaitForTerminalExitRequest,
    "terminal_output": TerminalOutputRequest,
    "terminal_release": ReleaseTerminalRequest,
}
ANSWERS: dict[str, dict[str, Any]] = {
    "session_request_permission": {"outcome": {"outcome": "selected", "optionId": "allow"}},
    "fs_read_text_file": {"content": "x"},
    "fs_write_text_file": {},
    "terminal_create": {"terminalId": "terminal-1"},
    "terminal_wait_for_exit": {"exitCode": 0},
    "terminal_output": {"output": "x", "truncated": False},
    "terminal_release": {},
}
NAMES = {method: name for name, method in CLIENT_METHODS.items()}

EVERYTHING = """
modes: [ask, edits]
models: [small, large]
turns:
  - do:
      - think: Well.
      - say: Hello.
      - plan: [{content: Write it, status: in_progress}, {content: Test it}]
      - usage: {used: 10, size: 100, cost: 0.5, input: 3, output: 4}
      - compact: {before: 9, after: 1}
      - {write: {path: a, content: x}, ask: true}
      - edit: {path: a, find: y, replace: z}
      - client_read: {path: a, line: 1, limit: 1}
      - client_write: {path: a, content: y}
      - client_run: cat a
"""


def said_well(model: Any, value: dict[str, Any]) -> bool:
    """Whether the protocol knows every word of it."""
    return model.model_validate(value).model_dump(mode="json", by_alias=True, exclude_unset=True) == value


def play(wire: Wire, number: int) -> dict[str, Any]:
    """Answer whatever the agent asks; its own answer, and every word before it judged."""
    for message in wire.until(number):
        if "method" not in message:
            return message["result"]
        name = NAMES[message["method"]]
        assert said_well(MODELS[name], message["params"]), message
        if "id" in message:
            wire.answer(message, result=ANSWERS[name])
    raise AssertionError("no answer")


def test_everything_the_agent_says_is_in_the_words_of_the_protocol(rehearsal: Rehearsal) -> None:
    cwd = str(rehearsal.directory)
    with wired(rehearsal, EVERYTHING) as wire:
        assert said_well(InitializeResponse, play(wire, wire.request("initialize", protocolVersion=1)))
        new = play(wire, wire.request("session/new", cwd=cwd, mcpServers=[]))
        assert said_well(NewSessionResponse, new)
        token = new["sessionId"]
        assert said_well(PromptResponse, play(wire, wire.prompt(token)))
        loaded = play(wire, wire.request("session/load", sessionId=token, cwd=cwd, mcpServers=[]))
        assert said_well(LoadSessionResponse, loaded)
        assert said_well(ListSessionsResponse, play(wire, wire.request("session/list", cwd=cwd)))


@pytest.mark.parametrize(
    ("method", "code", "data"),
    [
        ("session/dream", -32601, {"method": "session/dream"}),
        ("session/cancel", -32601, {"method": "session/cancel"}),
        ("session/new", -32602, {"details": "cwd: expected text, found None."}),
        ("session/prompt", -32602, {"details": "sessionId: expected text, found None."}),
    ],
)
def test_a_wrong_request_gets_its_error(rehearsal: Rehearsal, method: str, code: int, data: dict[str, str]) -> None:
    with wired(rehearsal, "{}") as wire:
        wire.request(method)
        error = wire.receive()["error"]
    assert (error["code"], error["data"]) == (code, data)


@pytest.mark.parametrize("line", ["", "no JSON", "[]", '{"id": 77, "result": null}', '{"method": "session/dream"}'])
def test_what_is_no_request_is_passed_over(rehearsal: Rehearsal, line: str) -> None:
    with wired(rehearsal, "{}") as wire:
        wire.print_line(line)
        assert wire.open(rehearsal.directory)
        assert wire.close() == 0


def test_a_line_may_be_huge_in_both_directions(rehearsal: Rehearsal) -> None:
    huge = "x" * (8 * 1024 * 1024)
    with wired(rehearsal, "turns: [{match: Recall, do: [{recall: true}]}, {do: []}]") as wire:
        token = wire.open(rehearsal.directory)
        list(wire.until(wire.prompt(token, huge)))
        update, _ = wire.until(wire.prompt(token, "Recall"))
    assert update["params"]["update"]["content"]["text"] == f"I remember:\n{huge}"


def test_a_stream_hears_that_it_is_cancelled(rehearsal: Rehearsal) -> None:
    with wired(rehearsal, "turns: [{do: [{stream: {text: x, chunks: 1000000}}]}]") as wire:
        token = wire.open(rehearsal.directory)
        number = wire.prompt(token)
        wire.receive()
        wire.notify("session/cancel", sessionId=token)
        *_, last = wire.until(number)
    assert last["result"] == {"stopReason": "cancelled"}


def test_what_was_said_before_a_crash_has_left_the_process(rehearsal: Rehearsal) -> None:
    with wired(rehearsal, "turns: [{do: [{stream: {text: '{n}', chunks: 3000}}, {crash: true}]}]") as wire:
        wire.prompt(wire.open(rehearsal.directory))
        chunks = [wire.receive()["params"]["update"]["content"]["text"] for _ in range(3000)]
        assert wire.process.wait(timeout=30) == -9
    assert chunks[-1] == "3000"


def test_the_agent_starts_without_anything_heavy() -> None:
    heavy = {"acp", "pydantic", "anyio", "httpx", "sqlalchemy"}
    code = "import sys, segue.testing.rehearsal.__main__; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not heavy & set(done.stdout.split())

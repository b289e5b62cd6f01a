"""The script, the log, the held answers and the program."""

import gzip
import json
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import anyio
import pytest
import yaml

from segue.testing.model import (
    Call,
    Failure,
    Rule,
    Say,
    Script,
    Shell,
    Step,
    Usage,
    Write,
    read_log,
    rule,
    scripted_model,
)
from segue.testing.model.answers_yaml import BadModelScript, parse_script, read_script
from segue.testing.model.exchange import Message, ModelRequest
from segue.testing.model.tool_choice import choose, fitting
from tests.model_server.knocking import VENDORS, post

pytestmark = pytest.mark.anyio

ANTHROPIC, RESPONSES, CHAT, GEMINI = VENDORS
REFERENCE = Path(__file__).parents[2] / "docs/reference/scripted-model.md"


# ── scripts ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_script_becomes_values() -> None:
    document = yaml.safe_load("""
        usage: {input: 100}
        rules:
          - match: /pars(er|ing)/
            dialect: chat
            times: 2
            do:
              - write: {path: a.txt, content: A}
                hold: go
              - call: {name: [Bash, shell], arguments: {command: ls}}
              - shell: make test
              - say: Done with {prompt}
                usage: {input: 5, output: 6, cached: 1}
          - do: [{fail: {kind: rate_limited, retry_after: 3}}]
    """)
    assert parse_script(document) == Script(
        usage=Usage(input=100),
        rules=(
            Rule(
                match="/pars(er|ing)/",
                dialect="chat",
                times=2,
                steps=(
                    Step(answer=Write("a.txt", "A"), hold="go"),
                    Step(answer=Call(("Bash", "shell"), {"command": "ls"})),
                    Step(answer=Shell("make test")),
                    Step(answer=Say("Done with {prompt}"), usage=Usage(input=5, output=6, cached=1)),
                ),
            ),
            rule("", Failure(kind="rate_limited", retry_after=3)),
        ),
    )


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"rules": [{"match": "x"}]}, "rules[0]: 'do' is missing."),
        ({"rules": [{"do": [{"sing": "la"}]}]}, "unknown field 'sing'"),
        ({"rules": [{"do": [{"fail": "sadly"}]}]}, "expected one of rate_limited"),
        ({"rules": [{"do": [{"say": "a", "shell": "b"}]}]}, "expected one of say, call"),
    ],
)
def test_a_script_that_is_not_understood_is_refused(document: object, sentence: str) -> None:
    with pytest.raises(BadModelScript) as refused:
        parse_script(document)
    assert sentence in refused.value.message


def test_the_script_of_the_reference_is_understood(tmp_path: Path) -> None:
    _, _, rest = REFERENCE.read_text().partition("```yaml\n")
    path = tmp_path / "script.yaml"
    path.write_text(rest.partition("```")[0])
    assert len(read_script(path).rules) > 3


# ── what is asked ───────────────────────────────────────────────────────────────────────────────────


def test_reminders_beside_a_prompt_belong_to_it_and_earlier_prompts_do_not() -> None:
    asked = ModelRequest(
        messages=(
            Message(role="user", text="first"),
            Message(role="assistant", text="answer"),
            Message(role="user", text="<reminder>"),
            Message(role="system", text="rules"),
            Message(role="user", text="second"),
            Message(role="assistant"),
            Message(role="tool"),
            Message(role="tool"),
            Message(role="assistant"),
            Message(role="tool"),
        ),
        tools={},
    )
    assert (asked.prompt, asked.rounds) == ("<reminder>\nsecond", 2)


@pytest.mark.parametrize(
    ("tool", "takes", "arguments"),
    [
        ("Write", ("file_path", "content"), {"file_path": "/a", "content": "A b"}),
        ("write", ("filePath", "content"), {"filePath": "/a", "content": "A b"}),
        ("create", ("path", "file_text"), {"path": "/a", "file_text": "A b"}),
        ("exec_command", ("cmd",), {"cmd": "printf %s 'A b' > /a"}),
    ],
)
def test_a_file_is_written_with_the_agents_own_tool(tool: str, takes: tuple[str, ...], arguments: object) -> None:
    offered = {"Read": {}, tool: {"properties": {name: {"type": "string"} for name in takes}}}
    assert choose(Write("/a", "A b"), offered) == (tool, arguments)


def test_an_agent_without_a_fitting_tool_is_told() -> None:
    assert choose(Shell("ls"), {"Read": {}}) is None


def test_a_schema_is_answered_with_a_value_that_fits() -> None:
    schema = {
        "type": "OBJECT",
        "properties": {
            "title": {"type": "string"},
            "choice": {"enum": ["flash", "pro"]},
            "score": {"type": "integer", "minimum": 3},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    }
    assert fitting(schema) == {"title": "scripted", "choice": "flash", "score": 3, "tags": []}


async def test_an_agent_that_asks_for_json_gets_json() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    body = {**RESPONSES.ask("A title, please"), "text": {"format": {"type": "json_schema", "schema": schema}}}
    async with scripted_model(Script(rules=(rule("", Say("No.")),))) as model:
        answer = await post(model, RESPONSES.path, body)
    assert json.loads(RESPONSES.text(answer.json)) == {"title": "scripted"}


# ── the server ──────────────────────────────────────────────────────────────────────────────────────


async def test_without_a_rule_the_model_says_done() -> None:
    async with scripted_model() as model:
        answer = await post(model, CHAT.path, CHAT.ask("Hello?"))
    assert CHAT.text(answer.json) == "Done."


async def test_a_rule_may_begin_only_so_often() -> None:
    script = Script(rules=(rule("go", Failure(kind="overloaded"), times=1), rule("go", Say("Now."))))
    async with scripted_model(script) as model:
        statuses = [(await post(model, CHAT.path, CHAT.ask("go"))).status for _ in range(3)]
    assert statuses == [503, 200, 200]


async def test_an_answer_waits_until_it_is_released() -> None:
    script = Script(rules=(rule("slowly", Step(answer=Say("At last."), hold="patience")),))
    answers: list[str] = []
    async with scripted_model(script) as model, anyio.create_task_group() as tasks:

        async def ask() -> None:
            answers.append(CHAT.text((await post(model, CHAT.path, CHAT.ask("slowly"))).json))

        tasks.start_soon(ask)
        with anyio.fail_after(10):
            await model.held("patience")
        assert (answers, len(model.requests)) == ([], 1)
        await post(model, "/-/release/patience", {})
    assert answers == ["At last."]


async def test_tokens_are_counted_where_an_agent_asks_for_it() -> None:
    async with scripted_model() as model:
        anthropic = await post(model, "/v1/messages/count_tokens", ANTHROPIC.ask("Hello?"))
        gemini = await post(model, "/v1beta/models/gemini-x:countTokens", GEMINI.ask("Hello?"))
        assert model.requests == []
    assert anthropic.json["input_tokens"] > 10
    assert gemini.json["totalTokens"] > 10


async def test_usage_grows_with_the_request_unless_it_is_set() -> None:
    async with scripted_model() as model:
        small, large = [(await post(model, CHAT.path, CHAT.ask("x" * size))).json for size in (4, 4004)]
    assert CHAT.usage(large)[0] - CHAT.usage(small)[0] == 1000


async def test_the_models_can_be_listed() -> None:
    async with scripted_model() as model:

        def models() -> object:
            connection = HTTPConnection(model.url.removeprefix("http://"), timeout=10)
            connection.request("GET", "/v1/models")
            listed = json.loads(connection.getresponse().read())
            connection.close()
            return listed["data"][0]["id"]

        assert await anyio.to_thread.run_sync(models) == "scripted"


async def test_unknown_paths_and_broken_bodies_are_refused() -> None:
    async with scripted_model() as model:
        assert (await post(model, "/v1/embeddings", {})).status == 404
        assert (await post(model, CHAT.path, b"{")).status == 400
        assert (await post(model, CHAT.path, gzip.compress(b"{}"))).status == 400


async def test_the_log_tells_what_was_remembered_from_what_was_just_asked() -> None:
    messages = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "answer"},
        {"role": "user", "content": "first again"},
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "second"},
    ]
    async with scripted_model() as model:
        await post(model, CHAT.path, {"messages": messages})
    [request] = model.requests
    assert request.remembers("first", "user")
    assert request.remembers("answer", "assistant")
    assert not request.remembers("first", "assistant")
    assert not request.remembers("again", "user")
    assert request.contains("again")


async def test_the_log_can_be_read_by_another_process(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with scripted_model(Script(rules=(rule("", Shell("ls")),)), log=log) as model:
        question = CHAT.ask("list\u2028them")
        called = await post(model, CHAT.path, question)
        await post(model, CHAT.path, CHAT.go_on(question, called.json))
    assert read_log(log) == model.requests


def test_the_program_prints_its_address_and_serves(tmp_path: Path) -> None:
    script, log = tmp_path / "script.yaml", tmp_path / "log.jsonl"
    script.write_text("rules: [{match: hi, do: [{say: 'Hello.'}]}]")
    command = [sys.executable, "-m", "segue.testing.model", "--script", str(script), "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip().removeprefix("http://")
            connection = HTTPConnection(address, timeout=10)
            connection.request("POST", CHAT.path, json.dumps(CHAT.ask("hi")))
            answer = json.loads(connection.getresponse().read())
            connection.close()
        finally:
            process.terminate()
    assert CHAT.text(answer) == "Hello."
    assert [request.answer for request in read_log(log)] == ["said Hello."]


def test_the_program_refuses_a_script_it_does_not_understand(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("rules: 3")
    done = subprocess.run(
        [sys.executable, "-m", "segue.testing.model", "--script", str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, "model: rules: expected a list, found 3.\n")

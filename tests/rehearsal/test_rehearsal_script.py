"""Reading scripts: what is understood, and how the rest is refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from segue.testing.rehearsal.script import (
    Advertised,
    Ask,
    ClientRead,
    ClientRun,
    ClientWrite,
    Compact,
    Crash,
    Fail,
    Hang,
    Loading,
    Mute,
    Opening,
    Run,
    Say,
    Script,
    Step,
    Tokens,
    Turn,
    Usage,
    Write,
)
from segue.testing.rehearsal.script_yaml import BadScript, parse_script, read_script

REFERENCE = Path(__file__).parents[2] / "docs/reference/rehearsal.md"


def test_an_empty_script_says_done() -> None:
    [turn] = parse_script({}).turns
    assert (turn.match, [step.action for step in turn.steps]) == ("", [Say("Done.")])


def test_a_script_becomes_values() -> None:
    document = yaml.safe_load("""
        turns:
          - match: /pars(er|ing)/
            once: true
            do:
              - run: make test
                ask: Run the tests?
              - ask: {title: "Delete?", then: [{say: "Yes."}]}
              - crash: {when: before, of: {write: {path: a, content: b}}}
                once: true
              - {hang: true, deaf: true}
              - usage: {used: 1, size: 2, input: 3, output: 4, cached: 5, model: m}
        on_new: {login: true}
        on_load: {replay: false, other_id: true}
        capabilities: {resume: false}
    """)
    at = "turns[0].do"
    assert parse_script(document) == Script(
        turns=(
            Turn(
                key="turns[0]",
                match="/pars(er|ing)/",
                once=True,
                steps=(
                    Step(key=f"{at}[0]", action=Run("make test"), ask="Run the tests?"),
                    Step(
                        key=f"{at}[1]",
                        action=Ask("Delete?", (Step(key=f"{at}[1].ask.then[0]", action=Say("Yes.")),), ()),
                    ),
                    Step(
                        key=f"{at}[2]",
                        action=Crash("before", Step(key=f"{at}[2].crash.of", action=Write("a", "b"))),
                        once=True,
                    ),
                    Step(key=f"{at}[3]", action=Hang(deaf=True)),
                    Step(key=f"{at}[4]", action=Usage(1, 2, None, Tokens(3, 4, 5, "m"))),
                ),
            ),
        ),
        on_new=Opening(login=True),
        on_load=Loading(replay=False, other_id="answer"),
        capabilities=Advertised(resume=False),
    )


def test_what_an_agent_can_do_and_how_it_fails_become_values_too() -> None:
    document = yaml.safe_load("""
        turns:
          - do:
              - client_read: {path: a, line: 2}
              - client_write: {path: a, content: b}
              - client_run: make
                ask: true
              - compact: {before: 900, after: 100}
              - mute: true
        on_new: {delay: 0.5, mute: true}
        on_choose: {error: No.}
        capabilities: {fork: false, list: false, close: false, images: false}
        modes: [ask, edits]
        models: [small]
    """)
    script = parse_script(document)
    assert [step.action for step in script.turns[0].steps] == [
        ClientRead("a", 2, None),
        ClientWrite("a", "b"),
        ClientRun("make"),
        Compact(900, 100),
        Mute(),
    ]
    assert (script.on_new, script.on_choose) == (Opening(delay=0.5, mute=True), Opening(error="No."))
    assert script.capabilities == Advertised(fork=False, list=False, close=False, images=False)
    assert (script.modes, script.models) == (("ask", "edits"), ("small",))


@pytest.mark.parametrize("reset", ["2031-01-01T12:00:00Z", "'2031-01-01T12:00:00+00:00'"])
def test_a_used_up_quota_can_name_its_end(reset: str) -> None:
    [turn] = parse_script(yaml.safe_load(f"turns: [{{do: [{{fail: {{kind: quota, reset: {reset}}}}}]}}]")).turns
    [step] = turn.steps
    assert isinstance(step.action, Fail)
    assert step.action.message.endswith("You have reached your usage limit. Resets at 2031-01-01T12:00:00+00:00.")


@pytest.mark.parametrize(
    ("match", "prompt", "matches"),
    [
        ("", "anything", True),
        ("the parser", "Write the parser", True),
        ("the lexer", "Write the parser", False),
        ("/^Write .* parser$/", "Write the parser", True),
        ("/^parser/", "Write the parser", False),
        ("/", "a/b", True),
    ],
)
def test_a_turn_matches_by_words_or_by_pattern(match: str, prompt: str, matches: bool) -> None:
    assert Turn(key="", match=match, steps=()).matches(prompt) is matches


def do(*steps: Any) -> dict[str, Any]:
    return {"turns": [{"do": list(steps)}]}


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ([], "The script: expected a mapping"),
        ({"turn": []}, "The script: unknown field 'turn'; known: turns, on_initialize"),
        ({"turns": {}}, "turns: expected a list"),
        ({"turns": [{"match": "x"}]}, r"turns\[0\]: 'do' is missing"),
        ({"turns": [{"match": "/(/", "do": []}]}, r"turns\[0\].match: /\(/ is not a regular expression"),
        (do({"wrte": {}}), r"turns\[0\].do\[0\]: unknown field 'wrte'; known: think, say"),
        (do({"say": "a", "think": "b"}), r"turns\[0\].do\[0\]: expected exactly one of think, say"),
        (do({"once": True}), r"turns\[0\].do\[0\]: expected exactly one of"),
        (do({"say": 1}), r"turns\[0\].do\[0\].say: expected text, found 1; quote it"),
        (do({"say": True}), r"turns\[0\].do\[0\].say: expected text, found True; quote it"),
        (do({"say": []}), r"turns\[0\].do\[0\].say: expected text, found \[\]\.$"),
        (do({"write": {"path": "a"}}), r"turns\[0\].do\[0\].write: 'content' is missing"),
        (do({"crash": {"when": "later", "of": {"say": "a"}}}), "crash.when: expected one of before, after"),
        (do({"say": "a", "ask": True}), "ask: expected `ask` alone, or beside a tool call"),
        (do({"say": "a", "deaf": True}), "deaf: expected `deaf` only beside `hang`"),
        (do({"exit": -1}), "exit: expected a whole number"),
        (do({"usage": {"used": 1}}), "expected `used` and `size` together"),
        (do({"usage": {"input": 1}}), "expected `input` and `output` together"),
        (do({"recall": False}), "recall: expected true"),
        (do({"fail": {"kind": "sadness"}}), "fail.kind: expected one of quota, login, corrupt, full"),
        (do({"compact": {"before": 1}}), "compact: 'after' is missing"),
        ({"modes": "ask"}, "modes: expected a list"),
        (do({"plan": [{"content": "a", "status": "done"}]}), r"plan\[0\].status: expected one of pending"),
        (do({"ask": {"title": "?", "then": [{"sya": "a"}]}}), r"ask.then\[0\]: unknown field 'sya'"),
        ({"on_load": {"other_id": "both"}}, "on_load.other_id: expected one of answer, updates"),
        ({"capabilities": {"load": 1}}, "capabilities.load: expected true or false"),
    ],
)
def test_what_is_not_understood_is_refused_where_it_stands(document: object, complaint: str) -> None:
    with pytest.raises(BadScript, match=complaint):
        parse_script(document)


def test_a_file_that_is_no_script_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadScript, match="cannot be read"):
        read_script(tmp_path / "missing.yaml")
    (tmp_path / "script.yaml").write_text("turns: [")
    with pytest.raises(BadScript, match="is not YAML"):
        read_script(tmp_path / "script.yaml")


def test_the_reference_describes_every_word_and_its_examples_are_scripts() -> None:
    page = REFERENCE.read_text()
    with pytest.raises(BadScript) as caught:
        parse_script(do({"?": 1}))
    words = caught.value.message.split("known: ")[1].rstrip(".").split(", ")
    assert [word for word in words if f"`{word}" not in page] == []
    examples = page.split("```yaml\n")[1:]
    assert examples
    for example in examples:
        parse_script(yaml.safe_load(example.split("```")[0]))

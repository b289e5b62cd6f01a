"""Our own drivers, ready to be examined: each with an agent that does what it is told."""

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import astuple, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any, get_args
from unittest import SkipTest

from literally import LiteralAgent, answer, update
from stand_in import OVER, StandIn, said, streamed

from segue.drivers import Agent, Driver, Launch, load
from segue.drivers.environment import allowed
from segue.model.events import TextDelta
from segue.settings import BUILT_IN_AGENTS
from segue.testing.conformance import Act, Fail, Hang, Line, Mistake, Say, SayLate, Use, Write
from segue.testing.model import Script, ScriptedModel, answers, rule, scripted_model
from segue.testing.rehearsal.launch import Rehearsal, turn
from tests.containers.engines import running_engine

RECALL = "tell me what I said"
LIST_FILES = answers.Call("list_files")
AMP = Path(__file__).with_name("amp_program.py")
GRAPH = Path(__file__).with_name("scripted_graph.py")
EXAMPLE = Path(__file__).parents[2] / "docs" / "how-to" / "lines_driver.py"


class AcpCandidate:
    """The `acp` driver, with the rehearsal agent."""

    driver = load("acp")
    plays = frozenset(get_args(Act))

    def __init__(self, root: Path) -> None:
        self._root = root

    @asynccontextmanager
    async def cast(self, *lines: Line) -> AsyncGenerator[Launch]:
        if any(isinstance(line.act, SayLate) for line in lines):
            yield self._late(*lines)
            return
        turns = [{"match": line.prompt, "do": _steps(line.act)} for line in lines if line.prompt]
        script: dict[str, Any] = {"turns": [{"match": RECALL, "do": [{"recall": True}]}, *turns]}
        if any(isinstance(line.act, Mistake) for line in lines):
            script["on_load"] = {"other_id": "answer"}
        yield Rehearsal(self._root).launch(json.dumps(script))

    async def remembers(self, agent: Agent, words: str) -> bool:
        return await _recalled(agent, words)

    def _late(self, late: Line, prompt: Line) -> Launch:
        """The rehearsal agent ends its turn with its last word, so this is one that sends what is written here."""
        assert isinstance(late.act, SayLate) and isinstance(prompt.act, Say)
        over = answer(stopReason="end_turn")
        turns = [[over, _chunk(late.act.text)], [_chunk(prompt.act.text), over]]
        return LiteralAgent(self._root).launch(
            session_prompt=[{"one of": [turn[number] for turn in turns]} for number in range(2)]
        )


class AmpCandidate:
    """The `amp` driver, with a stand-in for Amp's own program."""

    # It is started for a turn and ended with it.
    plays = frozenset(get_args(Act)) - {SayLate}

    def __init__(self, root: Path) -> None:
        self.driver = load("amp")
        self.worktree = root / "work"
        self.home = root / "home"

    @asynccontextmanager
    async def cast(self, *lines: Line) -> AsyncGenerator[Launch]:
        mistaken = {"AMP_STANDIN_MISTAKEN": "1"} if any(isinstance(line.act, Mistake) for line in lines) else {}
        acts = {line.prompt: (type(line.act).__name__, astuple(line.act)) for line in lines if line.prompt}
        yield self.launch(acts, **mistaken)

    def launch(self, acts: dict[str, Any], **variables: str) -> Launch:
        """An act is the name of one of the stand-in's, and its words."""
        for place in (self.worktree, self.home):
            place.mkdir(parents=True, exist_ok=True)
        (self.home / "lines.json").write_text(json.dumps(acts))
        own = {"HOME": str(self.home), "AMP_STANDIN_HOME": str(self.home), **variables}
        return Launch(
            command=(sys.executable, "-P", "-m", "segue.drivers.amp", sys.executable, str(AMP)),
            directory=self.worktree,
            environment={**allowed(os.environ), **own},
            execution=f"amp-{token_hex(4)}",
        )

    async def remembers(self, agent: Agent, words: str) -> bool:
        return await _recalled(agent, words)


class ApiCandidate:
    """The `api` driver: our own agent, with the scripted model in place of a vendor's."""

    plays = frozenset({Say, Write, Hang, Use, Fail})

    def __init__(self, root: Path, provider: str = "openai-chat", path: str = "/v1") -> None:
        self.driver = load("api")
        self.worktree = root / "work"
        self.home = root / "home"
        self._provider, self._path = provider, path
        self.model: ScriptedModel | None = None

    @asynccontextmanager
    async def cast(self, *lines: Line) -> AsyncGenerator[Launch]:
        # A prompt that failed stays in the conversation, before the next one.
        times: dict[type[Act], int] = {Fail: 1}
        rules = tuple(rule(line.prompt, *_answers(line.act), times=times.get(type(line.act))) for line in lines)
        async with self.launch(Script(rules=rules)) as launch:
            yield launch

    @asynccontextmanager
    async def launch(self, script: Script, **variables: str) -> AsyncGenerator[Launch]:
        self.worktree.mkdir(parents=True, exist_ok=True)
        async with scripted_model(script) as self.model:
            own = {
                "SEGUE_API_HOME": str(self.home),
                "SEGUE_API_BASE_URL": f"{self.model.url}{self._path}",
                "OPENAI_API_KEY": "not-a-key",
                "ANTHROPIC_API_KEY": "not-a-key",
                "GOOGLE_API_KEY": "not-a-key",
                **variables,
            }
            yield Launch(
                command=(sys.executable, "-P", "-m", "segue.drivers.api"),
                directory=self.worktree,
                environment={**allowed(os.environ), **own},
                execution=f"api-{token_hex(4)}",
                model=f"{self._provider}:scripted",
            )

    async def remembers(self, agent: Agent, words: str) -> bool:
        assert self.model is not None
        await turn(agent, "what do you know?")
        return self.model.requests[-1].remembers(words, "user")


class ClaudeCandidate:
    """The `claude` driver: Claude Code through its SDK, with the scripted model in place of its vendor's."""

    plays = frozenset({Say, Write, Hang, Use, Fail})

    def __init__(self, root: Path, program: str | None = None) -> None:
        self.driver = load("claude")
        self.worktree = root / "work"
        self.home = root / "home"
        self._program = program or claude_code()
        self.model: ScriptedModel | None = None

    @asynccontextmanager
    async def cast(self, *lines: Line) -> AsyncGenerator[Launch]:
        look = answers.Call("Read", {"file_path": str(self.worktree / "nothing.txt")})
        # A prompt that got no answer is sent along with the next one.
        lines = tuple(sorted(lines, key=lambda line: isinstance(line.act, Fail | Hang)))
        rules = tuple(rule(line.prompt, *_answers(line.act, look)) for line in lines)
        async with self.launch(Script(rules=rules)) as launch:
            yield launch

    @asynccontextmanager
    async def launch(self, script: Script, **variables: str) -> AsyncGenerator[Launch]:
        self.worktree.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(parents=True, exist_ok=True)
        async with scripted_model(script) as self.model:
            own = {
                "HOME": str(self.home),
                "SEGUE_CLAUDE_HOME": str(self.home / "segue-claude"),
                "SEGUE_CLAUDE_PROGRAM": self._program,
                "ANTHROPIC_BASE_URL": self.model.url,
                "ANTHROPIC_API_KEY": "not-a-key",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
                **variables,
            }
            yield Launch(
                command=(sys.executable, "-P", "-m", "segue.drivers.claude"),
                directory=self.worktree,
                environment={**allowed(os.environ), **own},
                execution=f"claude-{token_hex(4)}",
            )

    async def remembers(self, agent: Agent, words: str) -> bool:
        assert self.model is not None
        await turn(agent, "what do you know?")
        return self.model.requests[-1].remembers(words, "user")


class ClaudeStandInCandidate:
    """The `claude` driver: the SDK itself, with a stand-in for Claude Code."""

    plays = frozenset(get_args(Act))

    def __init__(self, root: Path) -> None:
        self.driver = load("claude")
        self._claude = StandIn(root)

    @asynccontextmanager
    async def cast(self, *lines: Line) -> AsyncGenerator[Launch]:
        mistaken = any(isinstance(line.act, Mistake) for line in lines)
        answers = {line.prompt: [_frames(line.act, self._claude.worktree)] for line in lines if line.prompt}
        answers[RECALL] = [[{"recall": True}, OVER]]
        answers.setdefault("", [[said("Yes."), OVER]])
        yield self._claude.launch(answers, remembers=True, mistaken=mistaken)

    async def remembers(self, agent: Agent, words: str) -> bool:
        return await _recalled(agent, words)


def _frames(act: Act, worktree: Path) -> list[Any]:
    match act:
        case Say(text):
            return [said(text), OVER]
        case Write(path, content):
            return [{"write": {"file_path": str(worktree / path), "content": content}}, OVER]
        case Hang():
            return [said("Hanging."), {"hang": True}, OVER]
        case Use(input, output):
            whole, tokens = said("Used."), {"input_tokens": input, "output_tokens": output}
            begun = {"id": whole["message"]["id"], "model": "opus", "usage": tokens}
            ended = {"result": {"stop_reason": "end_turn", "usage": tokens}}
            return [streamed("message_start", message=begun), whole, ended]
        case Fail(message):
            return [{"result": {"is_error": True, "result": message}}]
        case SayLate(text):
            return [{**OVER, "and then": [said(text)]}]
        case Mistake():
            raise AssertionError("not a frame")


def claude_code() -> str:
    """Claude Code itself, 360 MB that `make certify` brings; without it there is nothing to examine."""
    if program := os.environ.get("SEGUE_CLAUDE_PROGRAM"):
        return program
    raise SkipTest("Claude Code is not here: `make certify AGENTS=claude-sdk` brings it, and runs this")


class AuggieCandidate:
    """The `acp` driver with Auggie itself, and the scripted model in place of its vendor's server."""

    # It tells no tokens, and of an error the number and not the words.
    plays = frozenset({Say, Write, Hang})

    def __init__(self, root: Path) -> None:
        self.driver = load("acp")
        self.worktree = root / "work"
        self.home = root / "home"
        self._program = auggie()
        self.model: ScriptedModel | None = None

    @asynccontextmanager
    async def cast(self, *lines: Line) -> AsyncGenerator[Launch]:
        look = answers.Call("view", {"path": "nothing.txt", "type": "file"})
        rules = tuple(rule(line.prompt, *_answers(line.act, look)) for line in lines)
        async with self.launch(Script(rules=rules)) as launch:
            yield launch

    @asynccontextmanager
    async def launch(self, script: Script) -> AsyncGenerator[Launch]:
        async with scripted_model(script) as self.model:
            login = {"accessToken": "not-a-key", "tenantURL": f"{self.model.url}/", "scopes": ["email"]}
            yield self.place(AUGMENT_SESSION_AUTH=json.dumps(login))

    def place(self, **variables: str) -> Launch:
        """Without more variables, somebody who has not logged in."""
        (own := self.home / ".augment").mkdir(parents=True, exist_ok=True)
        self.worktree.mkdir(exist_ok=True)
        # It would ask first whether it may send the directory to its vendor, and say what was answered.
        (own / "settings.json").write_text(json.dumps({"indexingAllowDirs": [str(self.worktree)]}))
        return Launch(
            command=(self._program, *BUILT_IN_AGENTS["auggie"].command[1:]),
            directory=self.worktree,
            environment={**allowed(os.environ), "HOME": str(self.home), **variables},
            execution=f"auggie-{token_hex(4)}",
        )

    async def remembers(self, agent: Agent, words: str) -> bool:
        assert self.model is not None
        await turn(agent, "what do you know?")
        return self.model.requests[-1].remembers(words, "user")


def auggie() -> str:
    if program := os.environ.get("SEGUE_AUGGIE_PROGRAM"):
        return program
    raise SkipTest("Auggie is not here: `make certify AGENTS=auggie` brings it, and runs this")


class LangGraphCandidate:
    """The `langgraph` driver: our own agent, with a graph that needs no model."""

    plays = frozenset({Say, Write, Hang, Use, Fail})

    def __init__(self, root: Path) -> None:
        self.driver = load("langgraph")
        self.worktree = root / "work"
        self.checkpoints = str(root / "checkpoints" / "graph.sqlite")
        self._lines = root / "lines.json"

    @asynccontextmanager
    async def cast(self, *lines: Line) -> AsyncGenerator[Launch]:
        acts = {line.prompt: (type(line.act).__name__, astuple(line.act)) for line in lines}
        self._lines.write_text(json.dumps(acts))
        yield self.launch(f"{GRAPH}:graph", SEGUE_LANGGRAPH_LINES=str(self._lines))

    def launch(self, graph: str, **variables: str) -> Launch:
        self.worktree.mkdir(parents=True, exist_ok=True)
        return Launch(
            command=(sys.executable, "-P", "-m", "segue.drivers.langgraph", graph),
            directory=self.worktree,
            environment={**allowed(os.environ), "SEGUE_LANGGRAPH_CHECKPOINTS": self.checkpoints, **variables},
            execution=f"langgraph-{token_hex(4)}",
        )

    async def remembers(self, agent: Agent, words: str) -> bool:
        return await _recalled(agent, words)


def _answers(act: Act, look: answers.Call = LIST_FILES) -> list[Any]:
    match act:
        case Say(text):
            return [answers.Say(text)]
        case Write(path, content):
            return [answers.Write(path, content), answers.Say("Done.")]
        case Hang():
            return [look, answers.Step(answer=answers.Say("Never."), hold="for ever")]
        case Use(input, output):
            return [answers.Step(answer=answers.Say("Used."), usage=answers.Usage(input=input, output=output))]
        case Fail(message):
            return [answers.Failure(kind="invalid", message=message)]
        case SayLate() | Mistake():
            raise AssertionError("not an answer of a model")


class ExampleCandidate:
    """The driver of docs/how-to/write-a-driver.md, with an agent that speaks its language."""

    plays = frozenset(get_args(Act))

    def __init__(self, root: Path) -> None:
        self.driver = _example()
        self._root = root

    @asynccontextmanager
    async def cast(self, *lines: Line) -> AsyncGenerator[Launch]:
        script = self._root / "lines.json"
        script.write_text(json.dumps({line.prompt: (type(line.act).__name__, astuple(line.act)) for line in lines}))
        yield Launch(
            command=(sys.executable, str(Path(__file__).with_name("lines_agent.py")), str(script)),
            directory=self._root,
            environment=allowed(os.environ),
            execution=f"lines-{token_hex(4)}",
        )

    async def remembers(self, agent: Agent, words: str) -> bool:
        return await _recalled(agent, words)


def _example() -> Driver:
    spec = spec_from_file_location("lines_driver", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.LinesDriver()


async def _recalled(agent: Agent, words: str) -> bool:
    return words in "".join(each.text for each in await turn(agent, RECALL) if isinstance(each, TextDelta))


def _chunk(text: str) -> dict[str, Any]:
    return update("agent_message_chunk", content={"type": "text", "text": text})


def _steps(act: Act) -> list[dict[str, Any]]:
    match act:
        case Say(text):
            return [{"say": text}]
        case Write(path, content):
            return [{"write": {"path": path, "content": content}, "ask": "May I write it?"}]
        case Hang():
            return [{"say": "Hanging."}, {"hang": True}]
        case Use(input, output):
            usage = {"used": input + output, "size": 200_000, "input": input, "output": output}
            return [{"usage": usage}, {"say": "Used."}]
        case Fail(message):
            return [{"fail": message}]
        case SayLate() | Mistake():
            raise AssertionError("not a step")


class ContainedCandidate(AcpCandidate):
    """The `acp` driver, with the same agents in containers."""

    @asynccontextmanager
    async def cast(self, *lines: Line) -> AsyncGenerator[Launch]:
        with TemporaryDirectory(prefix="engine-") as place, running_engine(Path(place)) as engine:
            async with super().cast(*lines) as launch:
                yield replace(launch, container=engine.container(self._root), engine=engine.address)
            assert engine.containers() == []

"""Every setting: a field, its default and one sentence. The edges read them and pass plain values down."""

import ast
import inspect
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any, cast, get_args

from segue.model.agents import AgentConfiguration, Service
from segue.model.errors import BadSettings
from segue.model.findings import Extractor
from segue.model.status import Permissions

VARIABLE_PREFIX = "SEGUE_"

BUILT_IN_AGENTS: Mapping[str, AgentConfiguration] = {
    agent.name: agent
    for agent in (
        AgentConfiguration(
            name="rehearsal",
            command=(sys.executable, "-m", "segue.testing.rehearsal"),
            environment=("SEGUE_REHEARSAL_*",),
        ),
        AgentConfiguration(
            name="claude",
            command=("claude-agent-acp",),
            environment=("ANTHROPIC_*", "CLAUDE_*", "DISABLE_AUTOUPDATER"),
            compacts=True,
            install="npm install -g @agentclientprotocol/claude-agent-acp",
            login="claude-agent-acp --cli auth login",
        ),
        AgentConfiguration(
            name="codex",
            command=("codex-acp",),
            environment=("OPENAI_*", "CODEX_*"),
            compacts=True,
            # In its own default mode it asks a model what it may do outside its sandbox, and never the user.
            modes={
                Permissions.ASK: "workspace-write",
                Permissions.EDITS: "workspace-write",
                Permissions.ALL: "workspace-write",
                Permissions.READ_ONLY: "read-only",
            },
            install="npm install -g @agentclientprotocol/codex-acp",
            login="codex-acp login",
        ),
        AgentConfiguration(
            name="opencode",
            command=("opencode", "acp"),
            environment=("OPENCODE_*",),
            compacts=True,
            install="npm install -g opencode-ai",
            login="opencode auth login",
        ),
        AgentConfiguration(
            name="copilot",
            command=("copilot", "--acp"),
            environment=("COPILOT_*", "GH_*", "GITHUB_*"),
            compacts=True,
            install="npm install -g @github/copilot",
            login="copilot login",
        ),
        # Loading a session over ACP was seen to delete it.
        AgentConfiguration(
            name="gemini",
            command=("gemini", "--acp"),
            environment=("GEMINI_*", "GOOGLE_*"),
            native_resume=False,
            compacts=True,
            install="npm install -g @google/gemini-cli",
            login="gemini # and then /auth",
        ),
        AgentConfiguration(
            name="api",
            # Without -P a worktree could bring modules of its own into this process, which has the user's keys.
            command=(sys.executable, "-P", "-m", "segue.drivers.api"),
            driver="api",
            environment=(
                "SEGUE_API_*",
                *("OPENAI_*", "ANTHROPIC_*", "GOOGLE_*", "GEMINI_*", "MISTRAL_*", "GROQ_*", "XAI_*", "DEEPSEEK_*"),
                *("OPENROUTER_*", "OLLAMA_*"),
            ),
            install="pip install 'segue[api]'",
            login="export OPENAI_API_KEY=… # or your vendor's own variable",
        ),
        AgentConfiguration(
            name="langgraph",
            command=(sys.executable, "-P", "-m", "segue.drivers.langgraph"),
            driver="langgraph",
            environment=(
                *("SEGUE_LANGGRAPH_*", "PYTHONPATH"),
                *("OPENAI_*", "ANTHROPIC_*", "GOOGLE_*", "GEMINI_*", "MISTRAL_*", "GROQ_*", "XAI_*", "DEEPSEEK_*"),
                *("OPENROUTER_*", "OLLAMA_*"),
            ),
            install="pip install 'segue[langgraph]'",
        ),
    )
}

RUNGS = ("warn", "fork", "pause", "force")
"""What happens as a context fills, and can be set for each agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What can be set in `segue.toml` of the data directory, or by a variable `SEGUE_<FIELD>`, which wins."""

    host: str = "127.0.0.1"
    """The address the server listens on."""
    port: int = 0
    """The port the server listens on; 0 takes any free one."""
    allow_remote: bool = False
    """Whether `host` may be an address that other machines can reach."""
    agent: str = "claude"
    """The agent that works when `segue run` names none."""
    agents: Mapping[str, AgentConfiguration] = field(default_factory=lambda: BUILT_IN_AGENTS)
    """The agents by name; your own join the built-in ones."""
    setup: str | None = None
    """A shell command that makes a new worktree ready for work."""
    setup_watchdog: float = 600.0
    """Seconds after which `setup` counts as hanging, and is ended."""
    start_watchdog: float = 120.0
    """Seconds after which a session that does not come up counts as hanging."""
    silence_watchdog: float = 3600.0
    """Seconds without a sign of life from an agent at work after which it counts as hanging."""
    handshake_timeout: float = 60.0
    """Seconds an agent has to answer when it is started."""
    permission_timeout: float = 3600.0
    """Seconds after which an unanswered permission is denied."""
    pause_force_after: float = 300.0
    """Seconds a pause waits for the end of the task before it interrupts the agent."""
    sweep_interval: float = 60.0
    """Seconds between two looks for work that lost its agent; 300 at most."""
    talk_linger: float = 60.0
    """Seconds an agent that was only talked to is kept for the next word."""
    context_budget: int = 4000
    """Tokens that a compiled resume context may take; at least 100."""
    extraction: Extractor = "rules"
    """Who tells decisions and errors for a snapshot: `rules`, which ask nobody, or a `model` or the `agent` besides."""
    extraction_model: str | None = None
    """The model to ask, as `provider:name`; its key stands in the environment and nowhere else."""
    extraction_timeout: float = 60.0
    """Seconds the model or the agent has to answer; after that the rules' findings stand alone."""
    extraction_base_url: str | None = None
    """Where the model is asked, if not at its provider's own address."""
    recovery: str = "settle"
    """What happens to interrupted work when the server starts: `settle` brings it to rest and starts nothing."""


def load(file: Path, environment: Mapping[str, str]) -> Settings:
    """The settings of `file`, if it is there, and over them those of the environment."""
    chosen: dict[str, Any] = {key: _read(key, value, str(file)) for key, value in _document(file).items()}
    for name in READERS:
        variable = VARIABLE_PREFIX + name.upper()
        if name != "agents" and environment.get(variable):
            chosen[name] = _read(name, environment[variable], "the environment", variable)
    settings = Settings(**chosen)
    if settings.agent not in settings.agents:
        raise BadSettings(
            f"The setting agent names {settings.agent!r}, which is not among the agents.",
            hint=f"Known agents: {', '.join(sorted(settings.agents))}.",
        )
    if settings.extraction == "model" and settings.extraction_model is None:
        raise BadSettings(
            "The setting extraction says 'model', and extraction_model names none.",
            hint='Name one, such as extraction_model = "openai:gpt-5-mini", or set extraction = "rules".',
        )
    return settings


def _document(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{file} cannot be read: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(f"{file} is not TOML: {error}.") from error


def _read(key: str, value: object, source: str, shown: str | None = None) -> object:
    reader = READERS.get(key)
    if reader is None:
        raise BadSettings(f"{source} has an unknown key: {key}.", hint=f"Known keys: {', '.join(READERS)}.")
    try:
        return reader(shown or key, value)
    except ValueError as error:
        raise BadSettings(f"In {source}, {error}.") from error


# ── one reader for each field ───────────────────────────────────────────────────────────────────────

Reader = Callable[[str, object], object]


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{key} must be a text, not {value!r}")
    return value


def _switch(key: str, value: object) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise ValueError(f"{key} must be true or false, not {value!r}")


def _port(key: str, value: object) -> int:
    number = _number(key, value)
    if number != int(number) or not 0 <= number <= 65535:
        raise ValueError(f"{key} must be a whole number from 0 to 65535, not {value!r}")
    return int(number)


def _tokens(key: str, value: object) -> int:
    number = _number(key, value)
    if number != int(number) or number < 100:
        raise ValueError(f"{key} must be a whole number of tokens, at least 100, not {value!r}")
    return int(number)


def _number(key: str, value: object) -> float:
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str) or not isfinite(float(value)):
            raise ValueError
        return float(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{key} must be a number, not {value!r}") from None


def _seconds(most: float | None = None) -> Reader:
    def read(key: str, value: object) -> float:
        seconds = _number(key, value)
        if seconds <= 0:
            raise ValueError(f"{key} must be more than 0 seconds, not {value!r}")
        if most is not None and seconds > most:
            raise ValueError(f"{key} must be {most:g} seconds at most, not {value!r}")
        return seconds

    return read


def _extraction(key: str, value: object) -> Extractor:
    known = get_args(Extractor)
    if value not in known:
        raise ValueError(f"{key} must be one of {', '.join(known)}, not {value!r}")
    return cast(Extractor, value)


def _model(key: str, value: object) -> str:
    text = _text(key, value)
    if re.fullmatch(r"[\w./-]+:\S+", text) is None:
        raise ValueError(f"{key} must be written as provider:name, such as openai:gpt-5-mini, not {value!r}")
    return text


def _address(key: str, value: object) -> str:
    text = _text(key, value)
    if re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", text) is None:
        # What stands there is not shown: it may be a secret in the wrong place.
        raise ValueError(f"{key} must begin with http:// or https://, and hold no password and no query")
    return text


def _recovery(key: str, value: object) -> str:
    if value != "settle":
        raise ValueError(f"{key} must be 'settle', not {value!r}")
    return "settle"


def _table(key: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{key} must be a table, not {value!r}")
    return cast(dict[str, object], value)


def _agents(key: str, value: object) -> Mapping[str, AgentConfiguration]:
    own = {name: _agent(f"{key}.{name}", name, entry) for name, entry in _table(key, value).items()}
    return {**BUILT_IN_AGENTS, **own}


def _agent(key: str, name: str, entry: object) -> AgentConfiguration:
    base = BUILT_IN_AGENTS.get(name, AgentConfiguration(name=name, command=()))
    given: dict[str, Any] = {}
    for word, value in _table(key, entry).items():
        if word not in AGENT_READERS:
            raise ValueError(f"{key} has an unknown key: {word} (known: {', '.join(AGENT_READERS)})")
        given[word] = AGENT_READERS[word](f"{key}.{word}", value)
    agent = replace(base, **given)
    if not agent.command:
        raise ValueError(f"{key} has no command")
    return agent


def _modes(key: str, value: object) -> Mapping[Permissions, str]:
    modes: dict[Permissions, str] = {}
    for name, mode in _table(key, value).items():
        if name not in set(Permissions):
            raise ValueError(f"{key} has an unknown key: {name} (known: {', '.join(Permissions)})")
        modes[Permissions(name)] = _text(f"{key}.{name}", mode)
    return modes


def _capacity(key: str, value: object) -> Mapping[str, float]:
    rungs: dict[str, float] = {}
    for name, share in _table(key, value).items():
        if name not in RUNGS:
            raise ValueError(f"{key} has an unknown key: {name} (known: {', '.join(RUNGS)})")
        rungs[name] = _number(f"{key}.{name}", share)
        if not 0 <= rungs[name] <= 1:
            raise ValueError(f"{key}.{name} must be a share of the window from 0 (off) to 1, not {share!r}")
    return rungs


def _serves(key: str, value: object) -> frozenset[Service]:
    words, known = _words(key, value), get_args(Service)
    if unknown := set(words) - set(known):
        raise ValueError(f"{key} names {min(unknown)!r}, which is none of {', '.join(known)}")
    return cast(frozenset[Service], frozenset(words))


def _words(key: str, value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple):
        words = tuple(cast("list[object]", value))
        if all(isinstance(word, str) for word in words):
            return cast(tuple[str, ...], words)
    raise ValueError(f"{key} must be a list of texts, not {value!r}")


AGENT_READERS: Mapping[str, Reader] = {
    "command": _words,
    "driver": _text,
    "environment": _words,
    "native_resume": _switch,
    "history": _switch,
    "compacts": _switch,
    "modes": _modes,
    "capacity": _capacity,
    "serves": _serves,
    "install": _text,
    "login": _text,
}


READERS: Mapping[str, Reader] = {
    "host": _text,
    "port": _port,
    "allow_remote": _switch,
    "agent": _text,
    "agents": _agents,
    "setup": _text,
    "setup_watchdog": _seconds(),
    "start_watchdog": _seconds(),
    "silence_watchdog": _seconds(),
    "handshake_timeout": _seconds(),
    "permission_timeout": _seconds(),
    "pause_force_after": _seconds(),
    "sweep_interval": _seconds(most=300),
    "talk_linger": _seconds(),
    "context_budget": _tokens,
    "extraction": _extraction,
    "extraction_model": _model,
    "extraction_timeout": _seconds(),
    "extraction_base_url": _address,
    "recovery": _recovery,
}


# ── the page of the documentation ───────────────────────────────────────────────────────────────────


def describe() -> str:
    """`docs/reference/settings.md`."""
    rows = [f"| `{name}` | {_default(Settings, name)} | {sentence} |" for name, sentence in sentences(Settings).items()]
    keys = [
        f"| `{name}` | {_default(AgentConfiguration, name)} | {sentence} |"
        for name, sentence in sentences(AgentConfiguration).items()
    ]
    agents = [_row(agent) for agent in BUILT_IN_AGENTS.values()]
    return PAGE.format(rows="\n".join(rows), keys="\n".join(keys), agents="\n".join(agents))


def sentences(kind: type) -> dict[str, str]:
    """The sentence under each field of `kind`."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    statements = cast(ast.ClassDef, body).body
    found: dict[str, str] = {}
    for statement, following in pairwise(statements):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(sentence))):
                found[name] = " ".join(sentence.split())
            case _:
                pass
    return found


def _row(agent: AgentConfiguration) -> str:
    patterns = ", ".join(f"`{pattern}`" for pattern in agent.environment)
    commands = [f"`{text}`" if text else "" for text in (agent.install, agent.login)]
    return " | ".join([f"| `{agent.name}`", f"`{_shown(agent.command)}`", patterns, *commands]) + " |"


def _default(kind: type, name: str) -> str:
    if (kind, name) == (Settings, "agents"):
        return "see below"
    default = next(item.default for item in fields(kind) if item.name == name)
    match default:
        case bool():
            return f"`{str(default).lower()}`"
        case float():
            return f"`{default:g}`"
        case str() | int() if default != "":
            return f"`{default}`"
        case _:
            return "none"


def _shown(command: tuple[str, ...]) -> str:
    return " ".join("python" if word == sys.executable else word for word in command)


PAGE = """# Settings

Segue reads `segue.toml` in its data directory (`$SEGUE_HOME`, or the platform's own place for data), and then the
environment: `SEGUE_<FIELD>` in capitals wins over the file. An unknown key or a value that cannot be used stops the
server with a sentence that names it. The server reads its settings when it starts: after a change, `segue down` and
`segue up`.

| setting | default | meaning |
|---|---|---|
{rows}

Two more are variables only: `SEGUE_HOME` is the data directory, and `SEGUE_DATABASE_URL` a PostgreSQL database to use
instead of the SQLite file there.

## Agents

These are built in. An entry of the same name in `segue.toml` replaces what it mentions and keeps the rest.

| agent | command | its own variables | installed by | logged in by |
|---|---|---|---|---|
{agents}

What an entry may say:

| key | default | meaning |
|---|---|---|
{keys}

```toml
[agents.mine]
command = ["my-agent", "--acp"]
environment = ["MY_AGENT_*"]
install = "npm install -g my-agent"
login = "my-agent login"
modes = {{ ask = "default", all = "yolo" }}
```

An agent sees a fixed list of the caller's variables (`HOME`, `PATH`, locale, proxies, certificates, `SSH_AUTH_SOCK`)
and those that match its own patterns, and nothing else.
"""

if __name__ == "__main__":
    sys.stdout.write(describe())

"""Every setting: a field, its default and one sentence. The edges read them and pass plain values down."""

import ast
import inspect
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any, cast, get_args

from segue.model.agents import AgentConfiguration, CommitPolicy, Container, Service
from segue.model.bounds import LONGEST, MOST
from segue.model.errors import BadSettings
from segue.model.findings import Extractor
from segue.model.status import Permissions, Recovery
from segue.model.work import DEFAULTS, OFF, SAME, WorkSettings

VARIABLE_PREFIX = "SEGUE_"
OWN_FILE = "segue.toml"
PROJECT_FILE = "pyproject.toml"

AUGGIE_ASKS = (
    *("save-file", "str-replace-editor", "apply_patch", "remove-files"),
    *("launch-process", "write-process", "kill-process", "web-fetch"),
    *("github-api", "linear", "jira", "confluence", "notion", "supabase", "glean"),
)
"""Left to itself, Auggie asks for nothing; a rule of its own must name each tool."""

BUILT_IN_AGENTS: Mapping[str, AgentConfiguration] = {
    agent.name: agent
    for agent in (
        AgentConfiguration(
            name="rehearsal",
            command=(sys.executable, "-m", "segue.testing.rehearsal"),
            environment=("SEGUE_REHEARSAL_*",),
            native_fork=True,
        ),
        AgentConfiguration(
            name="claude",
            command=("claude-agent-acp",),
            environment=("ANTHROPIC_*", "CLAUDE_*", "DISABLE_AUTOUPDATER"),
            native_fork=True,
            compacts=True,
            install="npm install -g @agentclientprotocol/claude-agent-acp",
            login="claude-agent-acp --cli auth login",
        ),
        AgentConfiguration(
            name="codex",
            command=("codex-acp",),
            environment=("OPENAI_*", "CODEX_*"),
            native_fork=True,
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
        # A copy of its conversation was seen to stay in the directory of the original.
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
            counts_since_start=True,
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
            name="auggie",
            command=(
                "auggie",
                "--acp",
                *(word for tool in AUGGIE_ASKS for word in ("--permission", f"{tool}:ask-user")),
            ),
            environment=("AUGMENT_*",),
            modes={Permissions.READ_ONLY: "ask"},
            compacts=True,
            install="npm install -g @augmentcode/auggie",
            login="auggie login",
        ),
        AgentConfiguration(
            name="amp",
            command=(sys.executable, "-P", "-m", "segue.drivers.amp"),
            driver="amp",
            environment=("AMP_*",),
            needs="amp",
            compacts=True,
            install="npm install -g @ampcode/cli",
            login="amp login",
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
            native_fork=True,
            install="pip install 'segue[api]'",
            login="export OPENAI_API_KEY=… # or your vendor's own variable",
        ),
        AgentConfiguration(
            name="claude-sdk",
            command=(sys.executable, "-P", "-m", "segue.drivers.claude"),
            driver="claude",
            environment=("SEGUE_CLAUDE_*", "ANTHROPIC_*", "CLAUDE_*", "DISABLE_AUTOUPDATER"),
            native_fork=True,
            compacts=True,
            keep_conversations=True,
            install="pip install 'segue[claude]'",
            login="export ANTHROPIC_API_KEY=… # or log in with the program claude",
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
            native_fork=True,
            install="pip install 'segue[langgraph]'",
        ),
    )
}

SHARES: Mapping[str, float | None] = {
    "snapshot_before_compaction": None,
    "warn": 0.75,
    "fork": 0.80,
    "pause": 0.85,
    "force": 0.95,
}
TOKENS: Mapping[str, int | None] = {"refresh_every": 50_000, "stable_window": None, "known_window": None}
"""What can be set of the capacity ladder, and what it is else: its rungs as shares of the window, numbers of tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(WorkSettings):
    """What can be set in `segue.toml` of the data directory, or by a variable `SEGUE_<FIELD>`, which wins.

    What it says of the work is the user's own wish for all repositories.
    """

    host: str = "127.0.0.1"
    """The address the server listens on."""
    port: int = 0
    """The port the server listens on; 0 takes any free one."""
    allow_remote: bool = False
    """Whether `host` may be an address that other machines can reach."""
    agents: Mapping[str, AgentConfiguration] = field(default_factory=lambda: BUILT_IN_AGENTS)
    """The agents by name; your own join the built-in ones."""
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
    agents_at_once: int = 64
    """Agents that may be up at the same time; other work waits, and begins in the order in which it was asked for."""
    session_idle: float = 1800.0
    """Seconds without a word after which a session that waits for one, and has no agent any more, is suspended."""
    session_ttl: float = 2_592_000.0
    """Seconds after which a session that nobody came back to expires; the files of such sessions, and of those that
    ended so long ago, are moved to `archive/`."""
    delivery_wait: float = 90.0
    """Seconds that somebody who says something waits for the agent to get it."""
    messages_waiting: int = 10
    """Messages that may wait for one agent; at least 1."""
    merge_messages: bool = True
    """Whether messages that waited for the agent reach it as one prompt; else each has a turn of its own."""
    stall_notice: float = 300.0
    """Seconds of an agent's silence after which that is said, once for each prompt."""
    stall_look: float = 60.0
    """Seconds between two looks for that."""
    retry_attempts: int = 3
    """How often a step is tried before the fixer, or a person, is asked; with 1, a person is asked at once."""
    retry_first: float = 1.0
    """Seconds that the first retry waits, and by chance up to a half more; each further one waits twice as long."""
    retry_longest: float = 60.0
    """Seconds that a retry waits at most."""
    quick_failures: int = 3
    """After so many failures of an agent in a row within `quick_within`, whichever steps they were, a person is asked,
    and not the fixer."""
    quick_within: float = 60.0
    """Seconds, for `quick_failures`."""
    fixer_time: float = 600.0
    """Seconds that the fixer has for its advice."""
    review_time: float = 600.0
    """Seconds that each reviewer of a task has."""
    capacity: Mapping[str, float] = field(default_factory=dict[str, float])
    """What happens as an agent's context fills; see below."""
    context_budget: int = 4000
    """Tokens that a compiled resume context may take; at least 100."""
    context_issue: int = 500
    """Characters of the issue's description that a compiled context tells."""
    context_comments: int = 3
    """Comments of each review that a compiled context tells."""
    history_message: int = 2000
    """Characters of a message that are told where a conversation is told word for word."""
    history_result: int = 500
    """Characters of a tool's result that are told there."""
    history_whole: int = 24_000
    """Characters that are told there in all; what is older is left out."""
    extraction: Extractor = "rules"
    """Who tells decisions and errors for a snapshot: `rules`, which ask nobody, or a `model` or the `agent` besides."""
    extraction_model: str | None = None
    """The model to ask, as `provider:name`; its key stands in the environment and nowhere else."""
    extraction_timeout: float = 60.0
    """Seconds the model or the agent has to answer; after that the rules' findings stand alone."""
    extraction_messages: int = 50
    """How many of the latest messages are read for that."""
    extraction_base_url: str | None = None
    """Where the model is asked, if not at its provider's own address."""
    container_engine: str = ""
    """The socket of the engine that runs agents in containers; without it `DOCKER_HOST` is used, and then the places
    where Docker and Podman have theirs."""
    reattach_at_start: bool = False
    """Whether agents that went on in their containers while there was no server are joined again when it starts, and
    not only when somebody resumes the work."""
    plan_tasks: int = 30
    """Tasks that a plan may have which an agent proposes; one with more is sent back to it once."""
    recovery: Recovery = "settle"
    """What happens to interrupted work when the server starts: `settle` brings it to rest and starts nothing;
    `continue` then goes on with what was at work when the server died, with the server's own variables."""


def load(file: Path, environment: Mapping[str, str]) -> Settings:
    """The settings of `file`, if it is there, and over them the server's own of the environment."""
    chosen: dict[str, Any] = {key: _read(key, value, str(file), READERS) for key, value in _document(file).items()}
    spoken = _spoken(environment, SERVER_READERS)
    if rungs := _spoken_capacity(environment):
        spoken["capacity"] = {**chosen.get("capacity", {}), **rungs}
    settings = Settings(**{**chosen, **spoken})
    _refuse_strangers(work_in(environment).over(settings), settings.agents)
    if settings.extraction == "model" and settings.extraction_model is None:
        raise BadSettings(
            "The setting extraction says 'model', and extraction_model names none.",
            hint='Name one, such as extraction_model = "openai:gpt-5-mini", or set extraction = "rules".',
        )
    return settings


def work_in(environment: Mapping[str, str]) -> WorkSettings:
    """What variables say of the work."""
    return WorkSettings(**_spoken(environment, WORK_READERS))


def work_of_repository(directory: Path) -> WorkSettings:
    """What the repository that `directory` is in says of the work: in `segue.toml`, or in `[tool.segue]` of
    `pyproject.toml`, at its root."""
    root = next((each for each in (directory, *directory.parents) if (each / ".git").exists()), directory)
    own, project = root / OWN_FILE, root / PROJECT_FILE
    table = _tool_table(project)
    if table is not None and own.exists():
        raise BadSettings(
            f"The repository has settings in {OWN_FILE} and in [tool.segue] of {PROJECT_FILE}.",
            hint="Put all of them into one of the two.",
        )
    file, document = (own, _document(own)) if table is None else (project, table)
    said: dict[str, Any] = {key: _read_of_repository(key, value, file) for key, value in document.items()}
    return WorkSettings(**said)


def _read_of_repository(key: str, value: object, file: Path) -> object:
    if key in SERVER_READERS:
        raise BadSettings(
            f"{file} sets {key}, which is not a repository's to set.",
            hint=f"Take it out; where it is yours to set is {OWN_FILE} in Segue's data directory.",
        )
    return _read(key, value, str(file), WORK_READERS)


def _tool_table(file: Path) -> dict[str, Any] | None:
    """`[tool.segue]`, if it is there. A project's file that is broken is none of our business, unless it names us."""
    try:
        tools = _document(file).get("tool", {})
    except BadSettings:
        if file.is_file() and b"tool.segue" in file.read_bytes():
            raise
        return None
    table = cast(dict[str, Any], tools).get("segue") if isinstance(tools, dict) else None
    if table is not None and not isinstance(table, dict):
        raise BadSettings(f"In {file}, tool.segue must be a table.")
    return cast("dict[str, Any] | None", table)


def _spoken(environment: Mapping[str, str], readers: Mapping[str, "Reader"]) -> dict[str, Any]:
    variables = {name: VARIABLE_PREFIX + name.upper() for name in readers if name not in TABLES}
    return {
        name: _read(name, environment[variable], "the environment", readers, variable)
        for name, variable in variables.items()
        if environment.get(variable)
    }


def _spoken_capacity(environment: Mapping[str, str]) -> dict[str, float]:
    """The table `capacity`, each key by a variable of its own."""
    variables = {f"{VARIABLE_PREFIX}CAPACITY_{name.upper()}": name for name in (*SHARES, *TOKENS)}
    found: dict[str, float] = {}
    for variable, name in variables.items():
        if said := environment.get(variable):
            reader = _share if name in SHARES else _whole(0, " of tokens")
            found[name] = cast(float, _read(name, said, "the environment", {name: reader}, variable))
    return found


def _refuse_strangers(work: WorkSettings, agents: Mapping[str, AgentConfiguration]) -> None:
    for setting in ("agent", "review", "fixer"):
        name, words = getattr(work, setting), () if setting == "agent" else (OFF, SAME)
        if name is not None and name not in (*words, *agents):
            raise BadSettings(
                f"The setting {setting} names {name!r}, which is not among the agents.",
                hint=f"Known agents: {', '.join(sorted(agents))}.",
            )


def _document(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{file} cannot be read: {error}.") from error
    except ValueError as error:
        raise BadSettings(f"{file} is not TOML: {error}.") from error


def _read(key: str, value: object, source: str, readers: Mapping[str, "Reader"], shown: str | None = None) -> object:
    reader = readers.get(key)
    if reader is None:
        raise BadSettings(f"{source} has an unknown key: {key}.", hint=f"Known keys: {', '.join(readers)}.")
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


def _whole(least: int, of: str = "") -> Callable[[str, object], int]:
    def read(key: str, value: object) -> int:
        number = _number(key, value)
        if number != int(number) or number < least:
            raise ValueError(f"{key} must be a whole number{of}, at least {least}, not {value!r}")
        return int(_at_most(MOST, key, number, value))

    return read


def _amount(most: float) -> Reader:
    def read(key: str, value: object) -> float:
        number = _number(key, value)
        if number < 0:
            raise ValueError(f"{key} must not be less than 0, not {value!r}")
        return _at_most(most, key, number, value)

    return read


def _at_most(most: float, key: str, number: float, value: object, of: str = "") -> float:
    if number > most:
        raise ValueError(f"{key} must be {most:.13g}{of} at most, not {value!r}")
    return number


def _command(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key} must be a text, not {value!r}")
    return value.strip()


def _commit(key: str, value: object) -> CommitPolicy:
    if value not in set(CommitPolicy):
        raise ValueError(f"{key} must be one of {', '.join(CommitPolicy)}, not {value!r}")
    return CommitPolicy(cast(str, value))


def _personas(key: str, value: object) -> tuple[str, ...]:
    """A list, or as a variable says it, with commas."""
    words = tuple(value.split(",")) if isinstance(value, str) else _words(key, value)
    personas = tuple(word.strip() for word in words)
    if not personas or not all(personas):
        raise ValueError(f"{key} must name at least one, not {value!r}")
    return personas


def _number(key: str, value: object) -> float:
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str) or not isfinite(float(value)):
            raise ValueError
        return float(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{key} must be a number, not {value!r}") from None


def _seconds(most: float = LONGEST) -> Reader:
    def read(key: str, value: object) -> float:
        seconds = _number(key, value)
        if seconds <= 0:
            raise ValueError(f"{key} must be more than 0 seconds, not {value!r}")
        return _at_most(most, key, seconds, value, " seconds")

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


def _recovery(key: str, value: object) -> Recovery:
    known = get_args(Recovery)
    if value not in known:
        raise ValueError(f"{key} must be one of {', '.join(known)}, not {value!r}")
    return cast(Recovery, value)


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
    found: dict[str, float] = {}
    for name, number in _table(key, value).items():
        if name in SHARES:
            found[name] = _share(f"{key}.{name}", number)
        elif name in TOKENS:
            found[name] = _whole(0, " of tokens")(f"{key}.{name}", number)
        else:
            raise ValueError(f"{key} has an unknown key: {name} (known: {', '.join((*SHARES, *TOKENS))})")
    return found


def _share(key: str, value: object) -> float:
    share = _number(key, value)
    if not 0 <= share <= 1:
        raise ValueError(f"{key} must be a share of the window from 0 (off) to 1, not {value!r}")
    return share


def _model_capacity(key: str, value: object) -> Mapping[str, Mapping[str, float]]:
    return {model: _capacity(f'{key}."{model}"', entry) for model, entry in _table(key, value).items()}


def _serves(key: str, value: object) -> frozenset[Service]:
    words, known = _words(key, value), get_args(Service)
    if unknown := set(words) - set(known):
        raise ValueError(f"{key} names {min(unknown)!r}, which is none of {', '.join(known)}")
    return cast(frozenset[Service], frozenset(words))


def _container(key: str, value: object) -> Container:
    readers: Mapping[str, Reader] = {
        "image": _text,
        "mounts": _mounts,
        "network": _text,
        "user": _text,
        "home": _text,
    }
    given: dict[str, Any] = {}
    for word, entry in _table(key, value).items():
        if word not in readers:
            raise ValueError(f"{key} has an unknown key: {word} (known: {', '.join(readers)})")
        given[word] = readers[word](f"{key}.{word}", entry)
    if "image" not in given:
        raise ValueError(f"{key} names no image")
    return Container(**given)


def _mounts(key: str, value: object) -> tuple[str, ...]:
    mounts = _words(key, value)
    for mount in mounts:
        if re.fullmatch(r"[^:]+:/[^:]*(:(ro|rw))?", mount) is None:
            raise ValueError(f"{key} must have entries such as '~/.claude:/home/me/.claude', not {mount!r}")
    return mounts


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
    "native_fork": _switch,
    "history": _switch,
    "compacts": _switch,
    "modes": _modes,
    "counts_since_start": _switch,
    "capacity": _capacity,
    "model_capacity": _model_capacity,
    "serves": _serves,
    "keep_conversations": _switch,
    "container": _container,
    "needs": _text,
    "install": _text,
    "login": _text,
}


SERVER_READERS: Mapping[str, Reader] = {
    "host": _text,
    "port": _port,
    "allow_remote": _switch,
    "agents": _agents,
    "setup_watchdog": _seconds(),
    "start_watchdog": _seconds(),
    "silence_watchdog": _seconds(),
    "handshake_timeout": _seconds(),
    "permission_timeout": _seconds(),
    "pause_force_after": _seconds(),
    "sweep_interval": _seconds(most=300),
    "talk_linger": _seconds(),
    "agents_at_once": _whole(1),
    "session_idle": _seconds(),
    "session_ttl": _seconds(),
    "delivery_wait": _seconds(),
    "messages_waiting": _whole(1),
    "merge_messages": _switch,
    "stall_notice": _seconds(),
    "stall_look": _seconds(),
    "retry_attempts": _whole(1),
    "retry_first": _seconds(),
    "retry_longest": _seconds(),
    "quick_failures": _whole(1),
    "quick_within": _seconds(),
    "fixer_time": _seconds(),
    "review_time": _seconds(),
    "capacity": _capacity,
    "context_budget": _whole(100, " of tokens"),
    "context_issue": _whole(0),
    "context_comments": _whole(0),
    "history_message": _whole(1),
    "history_result": _whole(1),
    "history_whole": _whole(1),
    "extraction": _extraction,
    "extraction_model": _model,
    "extraction_timeout": _seconds(),
    "extraction_messages": _whole(1),
    "extraction_base_url": _address,
    "container_engine": _text,
    "reattach_at_start": _switch,
    "plan_tasks": _whole(1),
    "recovery": _recovery,
}
WORK_READERS: Mapping[str, Reader] = {
    "agent": _text,
    "setup": _command,
    "test_command": _command,
    "test_timeout": _seconds(),
    "commit": _commit,
    "review": _text,
    "review_personas": _personas,
    "review_passes": _whole(1),
    "fixer": _text,
    "wait_for_quota": _switch,
    "pause_after": _whole(0),
    "max_time": _amount(LONGEST),
    "max_tokens": _whole(0),
    "max_cost": _amount(MOST),
}
READERS: Mapping[str, Reader] = {**SERVER_READERS, **WORK_READERS}
TABLES = ("agents", "capacity")
"""What no variable says as a whole; each key of `capacity` has one of its own."""


# ── the page of the documentation ───────────────────────────────────────────────────────────────────


def describe() -> str:
    """`docs/reference/settings.md`."""
    return PAGE.format(
        work="\n".join(_rows(WorkSettings, DEFAULTS)),
        server="\n".join(_rows(Settings, Settings())),
        rungs="\n".join(f"| `{name}` | {_written(default)} |" for name, default in {**SHARES, **TOKENS}.items()),
        keys="\n".join(_rows(AgentConfiguration, AgentConfiguration(name="", command=()))),
        agents="\n".join(_row(agent) for agent in BUILT_IN_AGENTS.values()),
    )


def _rows(kind: type, defaults: object) -> list[str]:
    return [
        f"| `{name}` | {_written(getattr(defaults, name))} | {sentence} |" for name, sentence in sentences(kind).items()
    ]


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


def _written(default: object) -> str:
    match default:
        case bool():
            return f"`{str(default).lower()}`"
        case float():
            return f"`{default:.12g}`"
        case str() | int() if default != "":
            return f"`{default}`"
        case tuple() if default:
            return f"`{list(cast(tuple[str, ...], default))}`".replace("'", '"')
        case dict() if default:
            return "see below"
        case _:
            return "none"


def _shown(command: tuple[str, ...]) -> str:
    return " ".join("python" if word == sys.executable else word for word in command)


PAGE = """# Settings

Segue reads settings in three places:

- `segue.toml` in its data directory (`$SEGUE_HOME`, or the platform's own place for data): all of them;
- a repository's own `segue.toml`, or `[tool.segue]` in its `pyproject.toml`, at its root: those of the work;
- the environment: all that are no tables, as `SEGUE_<SETTING>` in capitals, and each key of `capacity` as
  `SEGUE_CAPACITY_<KEY>`.

An unknown setting or a value that cannot be used is refused with a sentence that names it.

## The work

These may stand in a repository, too. An option of `segue run` goes before the environment, that before the repository,
and that before the data directory. They are read when a workflow begins, from the repository as it is then, and written
into its journal: what changes later is for the next one. `segue run` says which of them the repository has set. The
commands among them are run without asking.

| setting | default | meaning |
|---|---|---|
{work}

## The server

These may not stand in a repository: it is not its business which programs are started, and which doors are open.
The server reads them when it starts: after a change, `segue down` and `segue up`.

| setting | default | meaning |
|---|---|---|
{server}

Two more are variables only: `SEGUE_HOME` is the data directory, and `SEGUE_DATABASE_URL` a PostgreSQL database to use
instead of the SQLite file there.

## Capacity

How full an agent's context may become, for all agents under `[capacity]`, for one under `[agents.NAME.capacity]`, for
one of its models under `[agents.NAME.model_capacity."MODEL"]`, as it was chosen or as the agent itself calls it; the
closest word counts. A variable, such as `SEGUE_CAPACITY_PAUSE=0.9`, says it for all agents. Shares are of the window, 0
is off. `fork`, `pause` and `force` are off for an agent that compacts by itself, unless they are set for it, and
`snapshot_before_compaction` is 0.7 for it.

| key | default |
|---|---|
{rungs}

`refresh_every` are the new tokens after which a checkpoint is made. `stable_window` is as much of the window as you
want to be used. `known_window` is reckoned with where neither the agent nor Segue's own table says how large it is.

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

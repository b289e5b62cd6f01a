"""Page of the documentation with every setting."""

import ast
import inspect
import sys
import textwrap
from itertools import pairwise
from typing import cast

from segue.model.agents import AgentConfiguration
from segue.model.work_settings import DEFAULTS, WorkSettings
from segue.settings.agents import BUILT_IN_AGENTS
from segue.settings.fields import SHARES, TOKENS, Settings


def describe() -> str:
    """Build the text of `docs/reference/settings.md`."""
    return PAGE.format(
        work="\n".join(_rows(WorkSettings, DEFAULTS)),
        server="\n".join(_rows(Settings, Settings())),
        rungs="\n".join(f"| `{name}` | {_written(default)} |" for name, default in {**SHARES, **TOKENS}.items()),
        keys="\n".join(_rows(AgentConfiguration, AgentConfiguration(name="", command=()))),
        agents="\n".join(_row(agent) for agent in BUILT_IN_AGENTS.values()),
    )


def _rows(kind: type, defaults: object) -> list[str]:
    """Build the rows of a table: each field with its default and the sentence under it."""
    return [
        f"| `{name}` | {_written(getattr(defaults, name))} | {sentence} |" for name, sentence in sentences(kind).items()
    ]


def sentences(kind: type) -> dict[str, str]:
    """Return the sentence under each field of `kind`, read from its source; fields without one are left out."""
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
    """Build the row of a built-in agent."""
    patterns = ", ".join(f"`{pattern}`" for pattern in agent.environment)
    commands = [f"`{text}`" if text else "" for text in (agent.install, agent.login)]
    return " | ".join([f"| `{agent.name}`", f"`{_shown(agent.command)}`", patterns, *commands]) + " |"


def _written(default: object) -> str:
    """Format a default as people write it in the settings; "none" if it is empty."""
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
    """Format a command, with `python` in place of this Python's path."""
    return " ".join("python" if word == sys.executable else word for word in command)


PAGE = """# Settings

Segue reads settings from three places:

- `segue.toml` in its data directory (`$SEGUE_HOME`, or the platform's data directory): all settings;
- a repository's own `segue.toml`, or `[tool.segue]` in its `pyproject.toml`, at its root: the settings of the work;
- the environment: all settings except tables, as `SEGUE_<SETTING>` in capitals, and each key of `capacity` as
  `SEGUE_CAPACITY_<KEY>`.

An unknown setting or an invalid value is refused with a message that names it.

## The work

These settings may also be in a repository. An option of `segue run` has priority over the environment, then the
repository, then the data directory. They are read when a workflow begins and stored in its journal; later changes apply
to the next workflow. `segue run` prints which of them the repository has set. Its commands run without a question.

| setting | default | meaning |
|---|---|---|
{work}

## The server

These settings may not be in a repository, because they define which programs start and which addresses are open.
The server reads them when it starts: after a change, run `segue down` and `segue up`.

| setting | default | meaning |
|---|---|---|
{server}

Two more are variables only: `SEGUE_HOME` is the data directory, and `SEGUE_DATABASE_URL` a PostgreSQL database that
replaces the SQLite file.

## Capacity

Limits of an agent's context: for all agents under `[capacity]`, for one under `[agents.NAME.capacity]`, for one of its
models under `[agents.NAME.model_capacity."MODEL"]` (as chosen or as the agent reports it); the most specific value is
used. A variable such as `SEGUE_CAPACITY_PAUSE=0.9` applies to all agents. Shares are of the window, 0 is off. `fork`,
`pause` and `force` are off for an agent that compacts its conversation itself, unless they are set for it, and
`snapshot_before_compaction` is 0.7 for it.

| key | default |
|---|---|
{rungs}

`refresh_every` is the number of new tokens between two periodic checkpoints. `stable_window` limits the used part of
the window. `known_window` is the window size if neither the agent nor Segue's table of models has it.

## Agents

These are built in. An entry of the same name in `segue.toml` replaces the keys that it contains and keeps the others.

| agent | command | its own variables | install command | login command |
|---|---|---|---|---|
{agents}

Keys of an entry:

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

An agent gets a fixed list of the caller's variables (`HOME`, `PATH`, locale, proxies, certificates, `SSH_AUTH_SOCK`)
and those that match its own patterns, and no others.

## Variables of Segue's own agents

The default directories are in `$XDG_DATA_HOME`, or `~/.local/share`.

| agent | variable | meaning |
|---|---|---|
| `api` | `SEGUE_API_MODEL` | the model without `--model` |
| | `SEGUE_API_BASE_URL` | the address of the model; vendors' variables such as `OPENAI_BASE_URL` work too |
| | `SEGUE_API_WINDOW` | tokens of its context, for models that are not in Segue's table |
| | `SEGUE_API_HOME` | the directory of its conversations; default `segue-api` |
| `claude-sdk` | `SEGUE_CLAUDE_MODEL` | the model without `--model`; default: Claude Code's choice |
| | `SEGUE_CLAUDE_PROGRAM` | another Claude Code program than the bundled one |
| | `SEGUE_CLAUDE_MAX_TURNS` | how often an unfinished answer is continued in one turn; 20 |
| | `SEGUE_CLAUDE_MAX_REQUESTS` | model requests for one answer, tool calls included; default unlimited |
| | `SEGUE_CLAUDE_SYSTEM_PROMPT` | text that is added to Claude Code's system prompt |
| | `SEGUE_CLAUDE_HOME` | the directory of conversation statistics; default `segue-claude` |
| `langgraph` | `SEGUE_LANGGRAPH_GRAPH` | the graph, if the command names none |
| | `SEGUE_LANGGRAPH_CHECKPOINTS` | `postgresql://…` or a SQLite file; default `segue-langgraph/checkpoints.sqlite` |
"""

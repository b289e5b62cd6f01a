"""The page of the documentation that has every setting."""

import ast
import inspect
import sys
import textwrap
from itertools import pairwise
from typing import cast

from segue.model.agents import AgentConfiguration
from segue.model.work import DEFAULTS, WorkSettings
from segue.settings.agents import BUILT_IN_AGENTS
from segue.settings.fields import SHARES, TOKENS, Settings


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

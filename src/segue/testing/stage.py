"""A test environment: a real repository, a real server with its own data, and users.

Everything is in one directory; the user's own data directory and settings are not used. The server is an ordinary
process: it is found, called and killed by its pid, and processes that its agents leave behind are counted from outside.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from segue import client
from segue.client import Server
from segue.model.errors import NotRunning, ServerError
from segue.testing.process_search import ends_within, left_over
from segue.testing.work import Work
from segue.workspace.guardian import signal_all

Start = Callable[[Mapping[str, str]], Server]
"""Function that starts a server with additional environment variables."""

GONE_WITHIN = 20.0
"""Seconds after which a process that should have ended counts as an orphan."""

_GIT = {
    "user.name": "Ada",
    "user.email": "ada@example.org",
    # The user's own configuration must not cause a prompt for a passphrase.
    "commit.gpgsign": "false",
    "core.hooksPath": os.devnull,
}


def start_process(variables: Mapping[str, str]) -> Server:
    """Start a server as `segue up` does, with these variables, and return it."""
    with _variables(variables):
        return client.start_server()


class Stage:
    """Repository, data directory and server; at its exit all its processes are killed."""

    def __init__(
        self,
        root: Path,
        *,
        settings: str = "",
        variables: Mapping[str, str] | None = None,
        start: Start = start_process,
    ) -> None:
        self.root = root
        self.home = root / "home"
        self.repository = root / "repository"
        self.works: list[Work] = []
        self.deaths = 0
        """Servers that were killed or crashed."""
        self.orphans: set[int] = set()
        """Processes of agents that outlived their server."""
        self._pid: int | None = None
        self._start = start
        self._settings = settings
        self._variables = variables or {}

    def __enter__(self) -> Self:
        """Create the data directory with its settings and a repository, and hide the user's own environment."""
        self.home.mkdir(mode=0o700, parents=True)
        (self.home / "segue.toml").write_text(self._settings)
        self._make_repository()
        self._own_environment = _own_environment(self.home)
        self._own_environment.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self.is_up:
                self.kill()
            signal_all(self._agents(), signal.SIGKILL)
        finally:
            self._own_environment.__exit__(None, None, None)

    # ── the repository ──────────────────────────────────────────────────────────────────────────────

    def _make_repository(self) -> None:
        """Create a git repository with one commit."""
        self.repository.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        for name, value in _GIT.items():
            self.git("config", name, value)
        (self.repository / "README.md").write_text("# A small repository\n")
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", "Begin")

    def git(self, *words: str, directory: Path | None = None) -> str:
        """Run git in the repository, or another directory, and return its output; raise an error if it fails."""
        command = ["git", "--no-pager", "-C", str(directory or self.repository), *words]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        return subprocess.run(command, check=True, capture_output=True, text=True, env=inherited).stdout

    # ── the server ──────────────────────────────────────────────────────────────────────────────────

    @property
    def is_up(self) -> bool:
        try:
            client.find()
        except NotRunning:
            return False
        return True

    @property
    def server(self) -> Server:
        return client.find()

    def up(self, **variables: str) -> Server:
        """Start the server with these variables, and return it; a killed one's exit is awaited first, a failed start
        counts as death."""
        self.mourn()
        try:
            server = self._start({**self._variables, **variables})
        except ServerError:
            self.deaths += 1
            raise
        self._pid = server.pid
        return server

    def down(self) -> None:
        """Stop the server and wait for its exit."""
        client.stop_server()
        self._pid = None

    def kill(self) -> None:
        """Kill the server with SIGKILL, and wait for its exit and its agents'."""
        os.kill(self.server.pid, signal.SIGKILL)
        self.mourn()

    def mourn(self) -> None:
        """Wait for the exit of a server and its agents, and count the death; processes that remain are orphans."""
        if self._pid is None:
            return
        if not ends_within(self._pid, GONE_WITHIN):
            raise TimeoutError(f"the server (pid {self._pid}) does not end")
        self._pid = None
        self.deaths += 1
        self.orphans |= left_over(self._agents, GONE_WITHIN)

    def _agents(self) -> set[int]:
        """Return the processes of all workflows' agents."""
        return set[int]().union(*(work.processes() for work in self.works))

    # ── users ─────────────────────────────────────────────────────────────────────────────

    def work(self, script: str) -> Work:
        """Add a user with one workflow, whose agent plays `script`."""
        work = Work(self.root / f"work-{len(self.works) + 1}", self.repository, script)
        self.works.append(work)
        return work


@contextmanager
def _own_environment(home: Path) -> Generator[None]:
    """Hide the user's own data directory, database and settings, and switch automatic retries off."""
    hidden = {name: os.environ.pop(name) for name in tuple(os.environ) if name.startswith("SEGUE_")}
    try:
        with _variables({"SEGUE_HOME": str(home), "SEGUE_RETRY_ATTEMPTS": "1"}):
            yield
    finally:
        os.environ.update(hidden)


@contextmanager
def _variables(variables: Mapping[str, str]) -> Generator[None]:
    """Set environment variables for the time of the context."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

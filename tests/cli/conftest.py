import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from segue import client
from segue.cli.app import segue as command_line
from tests.server import STANDIN_SERVER, end_started_servers
from tests.server.serving import serving
from tests.server.standin_service import VIEW, Standin

Segue = Callable[..., Result]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory of the test's own, and a repository to stand in."""
    for name in [name for name in os.environ if name.startswith("SEGUE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SEGUE_HOME", str(tmp_path / "home"))
    repository = tmp_path / "repository"
    repository.mkdir()
    monkeypatch.chdir(repository)
    return tmp_path / "home"


@pytest.fixture
def standin_command(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`python -m segue.server`, with the stand-in behind it; every server that was started is gone after the test."""
    monkeypatch.setattr(client, "server_command", lambda: STANDIN_SERVER)
    yield
    end_started_servers()


@pytest.fixture
def service() -> Iterator[Standin]:
    """A stand-in that is being served, with one workflow."""
    standin = Standin(VIEW)
    with serving(standin):
        yield standin


@pytest.fixture
def segue() -> Segue:
    """A command, given in this process."""

    def run(*arguments: str, typed: str | bytes | None = None) -> Result:
        result = CliRunner().invoke(command_line, list(arguments), input=typed, prog_name="segue")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run

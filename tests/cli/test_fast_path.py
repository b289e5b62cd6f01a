import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.standin_service import Standin

HEAVY = ("pydantic", "click", "rich", "httpx", "fastapi", "sqlalchemy", "asyncio", "dataclasses", "subprocess", "ssl")
REPORT = """
import atexit, json, sys
from pathlib import Path
atexit.register(lambda: Path({file!r}).write_text(json.dumps(sorted(sys.modules))))
from segue.__main__ import main
sys.argv = ["segue", *{arguments!r}]
main()
"""


@pytest.fixture
def modules(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "modules.json"


def run(modules: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = REPORT.format(file=str(modules), arguments=arguments)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize("arguments", [["status"], ["status", "--json"]])
def test_status_loads_nothing_heavy(service: Standin, modules: Path, arguments: list[str]) -> None:
    done = run(modules, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "add-parser" in done.stdout
    loaded = set(json.loads(modules.read_text()))
    assert "segue.client" in loaded
    assert not loaded & set(HEAVY)


def test_status_without_a_server_says_so_and_is_no_failure(modules: Path) -> None:
    done = run(modules, "status")
    expected = "No Segue server is running.\n  Start one with: segue up\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")
    assert json.loads(run(modules, "status", "--json").stdout)["running"] is False


def test_status_answers_quickly(service: Standin) -> None:
    def spent() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    def timed() -> float:
        start = spent()
        subprocess.run([sys.executable, "-m", "segue", "status"], check=True, capture_output=True, timeout=30)
        return spent() - start

    # The aim is 0.1 s on a quiet machine; this bound only notices when a heavy import has crept in. It is of the
    # processor's time, which others at work on the machine do not use up.
    assert min(timed() for _ in range(5)) < 0.5


def test_the_other_commands_need_no_server_code(modules: Path) -> None:
    assert run(modules, "pause").returncode == 1
    assert not set(json.loads(modules.read_text())) & {"pydantic", "rich", "fastapi", "sqlalchemy", "httpx"}


def test_a_reader_that_goes_away_is_no_traceback(service: Standin) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        command = [sys.executable, "-m", "segue", "status"]
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, timeout=30)
    assert "Traceback" not in done.stderr

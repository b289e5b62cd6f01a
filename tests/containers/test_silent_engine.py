"""An engine that hangs: whoever asks it something is told so, and everything else goes on."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from socket import AF_UNIX, SHUT_RDWR, socket
from tempfile import TemporaryDirectory
from threading import Thread

import anyio
import pytest

from segue.model import events as e
from segue.model.agents import AgentConfiguration, Container
from segue.workspace import engine_api
from segue.workspace.containers import managed
from segue.workspace.engine_api import EngineApi, EngineError
from tests.orchestrator.conftest import first_commit, repository, theatre
from tests.orchestrator.theatre import Theatre

__all__ = ["first_commit", "repository", "theatre"]

pytestmark = pytest.mark.anyio

PATIENCE = 0.2


class Engine:
    """It takes every connection, and counts them; without anything to say it is silent for ever."""

    def __init__(self, root: str, saying: bytes | None) -> None:
        self.path = Path(root, "engine.sock")
        self.asked = 0
        self._saying = saying
        self._taken: list[socket] = []
        self._door = socket(AF_UNIX)
        self._door.bind(str(self.path))
        self._door.listen()

    @property
    def address(self) -> str:
        return f"unix://{self.path}"

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                self._taken.append(self._door.accept()[0])
                self.asked += 1
                if self._saying is not None:
                    self._taken[-1].recv(1)
                    self._taken[-1].sendall(self._saying)
                    self._taken[-1].close()

    def close(self) -> None:
        self._door.shutdown(SHUT_RDWR)
        for each in (self._door, *self._taken):
            each.close()


@contextmanager
def engine(saying: bytes | None = None) -> Iterator[Engine]:
    with TemporaryDirectory(prefix="engine-") as root:
        found = Engine(root, saying)
        serving = Thread(target=found.serve)
        serving.start()
        try:
            yield found
        finally:
            found.close()
            serving.join()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_api, "ANSWER_WITHIN", PATIENCE)


async def test_an_engine_that_never_answers_is_not_waited_for() -> None:
    with engine() as silent, anyio.fail_after(5), pytest.raises(EngineError, match=r"within 0\.2 seconds\.$"):
        await managed(silent.address)


async def test_nor_when_it_should_lead_to_a_command() -> None:
    with engine() as silent, anyio.fail_after(5), pytest.raises(EngineError, match="did not answer"):
        await EngineApi(silent.address).hold("/exec/1/start", {})


@pytest.mark.parametrize("nonsense", [b"", b"not HTTP at all\r\n\r\n"])
async def test_one_that_breaks_off_before_it_leads_to_a_command_is_an_engine_that_failed(nonsense: bytes) -> None:
    with engine(nonsense) as broken, pytest.raises(EngineError, match="broke off"):
        await EngineApi(broken.address).hold("/exec/1/start", {})


async def test_how_a_container_ends_is_waited_for_however_long_that_takes() -> None:
    with engine() as silent:
        with anyio.move_on_after(PATIENCE * 3) as scope:
            await EngineApi(silent.address).ask("POST", "/containers/1/wait", within=inf)
        assert scope.cancelled_caught


async def test_what_was_written_is_waited_for_too() -> None:
    with engine() as silent:
        with anyio.move_on_after(PATIENCE * 3) as scope:
            async with EngineApi(silent.address).follow("/containers/1/logs"):
                pass
        assert scope.cancelled_caught


async def test_work_outside_containers_does_not_ask_the_engine(theatre: Theatre) -> None:
    theatre.agents["boxed"] = AgentConfiguration(name="boxed", command=("x",), container=Container(image="any"))
    with engine() as silent:
        async with theatre.open(container_engine=silent.address):
            await theatre.begin("turns: []")
            await theatre.until("build-it", "completed")
            assert silent.asked == 0


async def test_the_sweep_looks_at_all_runs_although_the_engine_hangs(theatre: Theatre) -> None:
    theatre.agents["boxed"] = AgentConfiguration(name="boxed", command=("x",), container=Container(image="any"))
    with engine() as silent:
        async with theatre.open(container_engine=silent.address, silence_watchdog=30.0, sweep_interval=60.0):
            await theatre.begin("turns: [{do: [{say: Now.}, {hang: true, deaf: true}]}]")
            await theatre.event("build-it", e.PromptAcknowledged)
            await theatre.sweep()
            assert silent.asked
            view = await theatre.as_time_goes_by("build-it", "paused")
            assert "the agent gave no sign within 30 seconds" in view.reason

"""The engine that the tests of containers run on, and an agent that runs there.

It is a stand-in, unless `SEGUE_TEST_ENGINE` names the socket of a real one (`scripts/containers.sh` does): that gets an
image which is all but empty, and this machine's own programs, to be read only, in its containers.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from socket import AF_UNIX, socket
from typing import cast
from urllib.parse import quote

from segue.model.agents import Container
from segue.workspace.containers import MANAGED
from tests.containers.standin_engine import IMAGES

IMAGE = IMAGES[0]
REHEARSAL = (sys.executable, "-m", "segue.testing.rehearsal")
REAL = os.environ.get("SEGUE_TEST_ENGINE", "")
CHECKOUT = Path(__file__).parents[2]
_SYSTEM = ("bin", "sbin", "lib", "lib64", "usr", "etc")


class Engine:
    """Seen from outside, as its owner sees it."""

    def __init__(self, address: str) -> None:
        self.address = address

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> object:
        connection = _Connection(self.address.removeprefix("unix://"))
        connection.request(method, path, body, {"Content-Type": kind})
        answer = connection.getresponse().read()
        connection.close()
        return json.loads(answer) if answer.startswith((b"{", b"[")) else answer

    def containers(self) -> list[dict[str, object]]:
        found = self.ask("GET", "/containers/json?all=1&filters=" + _quoted({"label": [f"{MANAGED}=true"]}))
        return cast(list[dict[str, object]], found)

    def inspect(self, container: object) -> str:
        """All that the engine itself has written down of a container."""
        return json.dumps(self.ask("GET", f"/containers/{container}/json"))

    def remove(self, container: object) -> None:
        self.ask("DELETE", f"/containers/{container}?force=1&v=1")

    def container(self, root: Path) -> Container:
        """One in which this Python and the rehearsal agent work, with `root` to write in."""
        mounts = (f"{root}:{root}",)
        if REAL:
            system = [f"/{name}" for name in _SYSTEM if Path("/", name).is_dir() and not Path("/", name).is_symlink()]
            own = {*system, sys.base_prefix, str(CHECKOUT), str(Path(sys.prefix).resolve())}
            mounts = (*mounts, *(f"{path}:{path}:ro" for path in sorted(own) if not _within(path, own)))
        return Container(image=IMAGE, mounts=mounts, network="none")


class _Connection(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("engine", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket(AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@contextmanager
def running_engine(root: Path) -> Generator[Engine]:
    with _real_engine() if REAL else _standin(root) as engine:
        before = {each["Id"] for each in engine.containers()}
        try:
            yield engine
        finally:
            for each in engine.containers():
                if each["Id"] not in before:
                    engine.remove(each["Id"])


@contextmanager
def _real_engine() -> Generator[Engine]:
    engine = Engine(REAL)
    _give_image(engine)
    yield engine


@contextmanager
def _standin(root: Path) -> Generator[Engine]:
    address, boxes = root / "engine.sock", root / "boxes"
    boxes.mkdir()
    program = Path(__file__).with_name("standin_engine.py")
    with subprocess.Popen([sys.executable, str(program), str(address), str(boxes)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            yield Engine(f"unix://{address}")
        finally:
            process.terminate()


def _give_image(engine: Engine) -> None:
    """Directories, and the same links as here."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as image:
        for name in (*_SYSTEM, "tmp", "proc", "sys", "dev"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            if Path("/", name).is_symlink():
                entry.type, entry.linkname = tarfile.SYMTYPE, str(Path("/", name).readlink())
            image.addfile(entry)
    name, tag = IMAGE.split(":")
    engine.ask("POST", f"/images/create?fromSrc=-&repo={name}&tag={tag}", archive.getvalue(), "application/x-tar")


def _within(path: str, others: Iterable[str]) -> bool:
    return any(path != other and Path(path).is_relative_to(other) for other in others)


def _quoted(document: object) -> str:
    return quote(json.dumps(document))

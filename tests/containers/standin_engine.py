"""A stand-in for a container engine: `standin_engine.py SOCKET DIRECTORY`.

It answers the requests that Segue makes of Docker and Podman, in the same form, and runs each container's command as a
process of its own on this machine, with a directory in place of the container's `/tmp`. Like a real one it is a process
that outlives its clients, keeps what a container writes, and forgets nothing until it is told to.
"""

import asyncio
import json
import os
import re
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

IMAGES = ("segue-test:latest",)


@dataclass
class Box:
    """One container."""

    asked: dict[str, Any]
    directory: Path
    id: str = field(default_factory=lambda: uuid4().hex)
    process: asyncio.subprocess.Process | None = None
    log: list[bytes] = field(default_factory=list[bytes])
    news: asyncio.Condition = field(default_factory=asyncio.Condition)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    @property
    def running(self) -> bool:
        return self.process is not None and not self.ended.is_set()

    def words(self, command: list[str]) -> list[str]:
        return [word.replace("/tmp/", f"{self.directory}/") for word in command]

    async def start(self) -> None:
        self.directory.mkdir()
        clean = {"PATH": os.environ["PATH"], "HOME": str(self.directory)}
        self.process = await asyncio.create_subprocess_exec(
            *self.words(self.asked["Cmd"][:3]),
            *self.asked["Cmd"][3:],
            cwd=self.asked["WorkingDir"],
            env=clean,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdout and self.process.stderr
        streams = [self._keep(1, self.process.stdout), self._keep(2, self.process.stderr)]
        self.tasks = [asyncio.create_task(self._until_it_ends(streams))]

    async def _until_it_ends(self, streams: list[Any]) -> None:
        assert self.process is not None
        await asyncio.gather(*streams)
        await self.process.wait()
        self.ended.set()
        async with self.news:
            self.news.notify_all()

    async def _keep(self, number: int, stream: asyncio.StreamReader) -> None:
        while piece := await stream.read(16 * 1024):
            self.log.append(bytes([number, 0, 0, 0]) + len(piece).to_bytes(4, "big") + piece)
            async with self.news:
                self.news.notify_all()

    def kill(self, number: int) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    async def stop(self) -> None:
        self.kill(signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(2):
                await self.ended.wait()
        self.kill(signal.SIGKILL)
        await self.ended.wait()


class Engine:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._boxes: dict[str, Box] = {}
        self._commands: dict[str, tuple[Box, list[str]]] = {}
        self._routes = [
            ("GET", r"/version", self._version),
            ("GET", r"/containers/json", self._list),
            ("POST", r"/containers/create", self._create),
            ("GET", r"/containers/(\w+)/json", self._inspect),
            ("POST", r"/containers/(\w+)/start", self._start),
            ("POST", r"/containers/(\w+)/stop", self._stop),
            ("POST", r"/containers/(\w+)/wait", self._wait),
            ("GET", r"/containers/(\w+)/logs", self._logs),
            ("POST", r"/containers/(\w+)/exec", self._exec),
            ("DELETE", r"/containers/(\w+)", self._remove),
            ("POST", r"/exec/(\w+)/start", self._speak),
        ]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            request, body = await _read(reader)
            method, target, _ = request.split(" ", 2)
            address = urlsplit(target)
            for wanted, pattern, answer in self._routes:
                match = re.fullmatch(pattern, address.path)
                if match and wanted == method:
                    await self._answer(answer, match.groups(), parse_qs(address.query), body, reader, writer)
                    break
            else:
                _reply(writer, 404, {"message": f"no such page: {method} {address.path}"})
            await writer.drain()
        writer.close()

    async def _answer(
        self, answer: Any, names: Any, query: Any, body: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            found = [self._boxes[name] if answer != self._speak else name for name in names]
            streaming = answer in (self._logs, self._speak)
            status, document = await answer(*found, query, body, *((reader, writer) if streaming else ()))
        except KeyError as error:
            status, document = 404, {"message": f"no such container: {error}"}
        if status:
            _reply(writer, status, document)

    async def _version(self, query: Any, body: Any) -> Any:
        return 200, {"Components": [{"Name": "Engine"}], "ApiVersion": "1.41"}

    async def _list(self, query: Any, body: Any) -> Any:
        labels = dict(word.split("=", 1) for word in json.loads(query["filters"][0])["label"])
        return 200, [
            {"Id": box.id, "Labels": box.asked["Labels"], "State": "running" if box.running else "exited"}
            for box in self._boxes.values()
            if labels.items() <= box.asked["Labels"].items()
        ]

    async def _create(self, query: Any, body: Any) -> Any:
        if body["Image"] not in IMAGES:
            return 404, {"message": f"No such image: {body['Image']}"}
        box = Box(body, self._directory / uuid4().hex)
        self._boxes[box.id] = box
        return 201, {"Id": box.id, "Warnings": []}

    async def _inspect(self, box: Box, query: Any, body: Any) -> Any:
        pid = box.process.pid if box.process and box.running else 0
        return 200, {"Id": box.id, "State": {"Pid": pid, "Running": box.running}, "Config": box.asked}

    async def _start(self, box: Box, query: Any, body: Any) -> Any:
        await box.start()
        return 204, None

    async def _stop(self, box: Box, query: Any, body: Any) -> Any:
        await box.stop()
        return 204, None

    async def _wait(self, box: Box, query: Any, body: Any) -> Any:
        await box.ended.wait()
        assert box.process is not None and box.process.returncode is not None
        code = box.process.returncode
        return 200, {"StatusCode": 128 - code if code < 0 else code}

    async def _remove(self, box: Box, query: Any, body: Any) -> Any:
        box.kill(signal.SIGKILL)
        del self._boxes[box.id]
        return 204, None

    async def _exec(self, box: Box, query: Any, body: Any) -> Any:
        if not box.running:
            return 409, {"message": "the container is not running"}
        name = uuid4().hex
        self._commands[name] = (box, body["Cmd"])
        return 201, {"Id": name}

    async def _logs(self, box: Box, query: Any, body: Any, _: object, writer: asyncio.StreamWriter) -> Any:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        told = 0
        while not box.ended.is_set() or told < len(box.log):
            async with box.news:
                while told == len(box.log) and not box.ended.is_set():
                    await box.news.wait()
            for piece in box.log[told:]:
                writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                told += 1
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        return 0, None

    async def _speak(
        self, name: str, query: Any, body: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Any:
        box, command = self._commands.pop(name)
        writer.write(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
        process = await asyncio.create_subprocess_exec(*box.words(command), stdin=asyncio.subprocess.PIPE)
        assert process.stdin is not None
        with suppress(ConnectionError):
            while piece := await reader.read(64 * 1024):
                process.stdin.write(piece)
                await process.stdin.drain()
        process.stdin.close()
        await process.wait()
        return 0, None


async def _read(reader: asyncio.StreamReader) -> tuple[str, Any]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return head[0], json.loads(body) if body else None


def _reply(writer: asyncio.StreamWriter, status: int, document: object) -> None:
    body = b"" if document is None else json.dumps(document).encode()
    length = "" if status == 204 else f"Content-Length: {len(body)}\r\n"
    writer.write(f"HTTP/1.1 {status} OK\r\n{length}Connection: close\r\n\r\n".encode() + body)


async def main(socket: str, directory: str) -> None:
    engine = Engine(Path(directory))
    server = await asyncio.start_unix_server(engine.serve, socket)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

"""The agent's conversations: each is a thread of the graph."""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from segue.drivers.langgraph.graphs import Graph, NoGraph
from segue.drivers.langgraph.threads import Threads, opened, place
from segue.drivers.langgraph.turns import GraphThread, GraphTurn, Workers
from segue.drivers.skeleton.agent_program import AgentProgram, Channel
from segue.drivers.skeleton.jsonrpc import (
    INTERNAL_ERROR,
    NOT_FOUND,
    Message,
    Parameters,
    RequestError,
    invalid_params,
    session_not_found,
)
from segue.drivers.skeleton.payloads import Payload
from segue.drivers.skeleton.wire import Wire


@asynccontextmanager
async def start(graph: Graph | NoGraph, wire: Wire, client: Parameters) -> AsyncGenerator["GraphAgent"]:
    """Open the checkpoints that the environment names, and yield the graph's agent on them."""
    workers = Workers()
    asyncio.get_running_loop().set_default_executor(workers)
    async with opened(place(os.environ)) as saver:
        if isinstance(graph, Graph):
            graph = replace(graph, pregel=graph.pregel.copy({"checkpointer": saver}))
        yield GraphAgent(wire, graph, Threads(saver), workers)


class GraphAgent(AgentProgram[GraphThread]):
    """Agent that is a graph of the user's."""

    def __init__(self, wire: Wire, graph: Graph | NoGraph, threads: Threads, workers: Workers) -> None:
        super().__init__(wire)
        self._graph = graph
        self._threads = threads
        self._workers = workers

    async def begin(self, cwd: str, servers: Sequence[Message]) -> GraphThread:
        """Create a thread; raise an error if the graph is unusable."""
        graph = self._usable(servers)
        return self._setting(await self._threads.begin(cwd), graph)

    async def resume(self, token: str, cwd: str, servers: Sequence[Message], at: str | None) -> GraphThread:
        """Open a stored thread; raise an error if it is unknown or the graph is unusable."""
        graph = self._usable(servers)
        await self._find(token)
        return self._setting(token, graph)

    async def copy(self, token: str, cwd: str, servers: Sequence[Message], at: str | None) -> GraphThread:
        """Copy a stored thread, up to checkpoint `at` if given, into a new one."""
        graph = self._usable(servers)
        await self._find(token, at)
        return self._setting(await self._threads.copy(token, cwd, at), graph)

    async def conversations(self, cwd: str | None) -> list[Payload]:
        """List the stored threads of a directory."""
        directory = cwd or "."
        return [
            {"sessionId": each.token, "cwd": directory, "updatedAt": each.updated_at}
            async for each in self._threads.all(directory)
        ]

    def turn(self, conversation: GraphThread) -> GraphTurn:
        return GraphTurn(conversation)

    def _usable(self, servers: Sequence[Message]) -> Graph:
        """Return the graph; raise an error if it is unusable or there are MCP servers."""
        if isinstance(self._graph, NoGraph):
            raise RequestError(INTERNAL_ERROR, str(self._graph))
        if servers:
            raise invalid_params("A graph brings its own tools, and takes no MCP servers.")
        return self._graph

    async def _find(self, token: str, at: str | None = None) -> None:
        """Raise an error if the thread, or its checkpoint `at`, is not stored."""
        if not await self._threads.knows(token):
            raise session_not_found(token)
        if at is not None and not await self._threads.knows(token, at):
            raise RequestError(NOT_FOUND, f"Session {token} has no checkpoint {at}")

    def _setting(self, token: str, graph: Graph) -> GraphThread:
        """Return a thread with its channel and its graph."""
        return GraphThread(channel=Channel(self.wire, token), graph=graph, workers=self._workers)

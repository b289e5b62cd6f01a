"""The agent's side of the Agent Client Protocol."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from acp import PROTOCOL_VERSION, RequestError, run_agent
from acp.interfaces import Agent, Client
from acp.schema import (
    AgentCapabilities,
    CloseSessionResponse,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    NewSessionResponse,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
)

from segue import __version__
from segue.drivers.langgraph.graphs import Graph, NoGraph
from segue.drivers.langgraph.pipes import Pipes
from segue.drivers.langgraph.threads import Threads, opened
from segue.drivers.langgraph.turns import Setting, Turn, Workers


async def serve(pipes: Pipes, graph: Graph | NoGraph, place: str) -> None:
    """Be the agent until standard input ends."""
    workers = Workers()
    asyncio.get_running_loop().set_default_executor(workers)
    reader, writer = await pipes.open()
    async with opened(place) as saver:
        if isinstance(graph, Graph):
            graph = replace(graph, pregel=graph.pregel.copy({"checkpointer": saver}))
        agent = GraphAgent(graph, Threads(saver), workers)
        await run_agent(cast(Agent, agent), writer, reader, use_unstable_protocol=True)


class GraphAgent:
    """Opens threads, and hands prompts to a turn."""

    def __init__(self, graph: Graph | NoGraph, threads: Threads, workers: Workers) -> None:
        self._graph = graph
        self._threads = threads
        self._workers = workers
        self._client: Client | None = None
        self._settings: dict[str, Setting] = {}
        self._turns: dict[str, Turn] = {}

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="langgraph", version=__version__),
            agent_capabilities=AgentCapabilities(
                session_capabilities=SessionCapabilities(
                    close=SessionCloseCapabilities(),
                    fork=SessionForkCapabilities(),
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                ),
            ),
        )

    # ── threads ─────────────────────────────────────────────────────────────────────────────────────

    async def new_session(self, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any) -> NewSessionResponse:
        graph = self._usable(mcp_servers)
        return NewSessionResponse(session_id=self._enter(await self._threads.begin(cwd), graph))

    async def resume_session(
        self, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        graph = self._usable(mcp_servers)
        await self._find(session_id)
        self._enter(session_id, graph)
        return ResumeSessionResponse()

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        mcp_servers: Sequence[Any] | None = None,
        segue: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> ForkSessionResponse:
        graph, at = self._usable(mcp_servers), (segue or {}).get("at")
        await self._find(session_id, at)
        copy = self._enter(await self._threads.copy(session_id, cwd, at), graph)
        return ForkSessionResponse(session_id=copy, field_meta={"segue": {"at": at}})

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> ListSessionsResponse:
        directory = cwd or "."
        return ListSessionsResponse(
            sessions=[
                SessionInfo(session_id=each.token, cwd=directory, updated_at=each.updated_at)
                async for each in self._threads.all(directory)
            ]
        )

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        self._settings.pop(session_id, None)
        return CloseSessionResponse()

    # ── turns ───────────────────────────────────────────────────────────────────────────────────────

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> PromptResponse:
        setting = self._settings.get(session_id)
        if setting is None:
            raise RequestError.invalid_params({"details": f"Session not open: {session_id}"})
        if session_id in self._turns:
            raise RequestError.invalid_params({"details": "The conversation is in its turn."})
        turn = self._turns[session_id] = Turn(setting)
        try:
            return await turn.play("\n".join(_text(block) for block in prompt))
        finally:
            del self._turns[session_id]

    async def cancel(self, session_id: str, **_: Any) -> None:
        if turn := self._turns.get(session_id):
            turn.cancel()

    # ── helpers ─────────────────────────────────────────────────────────────────────────────────────

    def _usable(self, servers: Sequence[Any] | None) -> Graph:
        """The graph, which is looked for in the directory of a conversation, so nothing is said of it before."""
        if isinstance(self._graph, NoGraph):
            raise RequestError(-32603, str(self._graph))
        if servers:
            raise RequestError.invalid_params({"details": "A graph brings its own tools, and takes no MCP servers."})
        return self._graph

    async def _find(self, token: str, at: str | None = None) -> None:
        if not await self._threads.knows(token):
            raise RequestError(-32002, f"Session not found: {token}")
        if at is not None and not await self._threads.knows(token, at):
            raise RequestError(-32002, f"Session {token} has no checkpoint {at}")

    def _enter(self, token: str, graph: Graph) -> str:
        if self._client is None:
            raise RequestError.invalid_request({"details": "Nobody is connected."})
        self._settings[token] = Setting(token=token, client=self._client, graph=graph, workers=self._workers)
        return token


def _text(block: Any) -> str:
    """Links and embedded files come as text, or not at all."""
    return str(getattr(getattr(block, "resource", block), "text", None) or getattr(block, "uri", ""))

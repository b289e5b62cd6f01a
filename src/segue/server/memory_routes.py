"""The routes of the memory: search past work; store, read and delete entries."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from segue.memory import Memory
from segue.model.errors import BadInput
from segue.model.memories import (
    AccessRecord,
    Forgotten,
    Keeping,
    Memorized,
    MemorizeMode,
    MemoryEntry,
    Note,
    RecallQuery,
    Recollection,
)
from segue.server.documents import Request
from segue.server.routes import WithService

api = APIRouter(prefix="/api")


class RecallRequest(Request):
    """Search of past work."""

    query: str
    limit: Annotated[int, Field(ge=1, le=50)] = 5
    workflow: str | None = None
    """Workflow, by id or slug, to which the search is limited."""


class MemorizeRequest(Request):
    """Request to store an entry."""

    mode: MemorizeMode
    name: str | None = None
    """Target of `update`: an entry by id or tag, or a workflow by id or slug."""
    content: str | None = None
    """Text of the entry; without it, `update` stores the present state of the workflow."""
    tag: str | None = None
    tags: tuple[str, ...] | None = None
    importance: float | None = None
    domain: str | None = None
    keeping: Keeping | None = None
    workflow: str | None = None
    key: str | None = None

    def note(self, content: str) -> Note:
        """Build the note with this content and the request's other fields."""
        given = self.model_dump(exclude={"mode", "name", "content"})
        return Note(content=content, **given)


def _memory(service: WithService) -> Memory:
    return service.memory


WithMemory = Annotated[Memory, Depends(_memory)]


@api.post("/recall")
async def recall(request: RecallRequest, memory: WithMemory) -> Recollection:
    """Search past work by name or by text."""
    return await memory.recall(RecallQuery(query=request.query, limit=request.limit, workflow=request.workflow))


@api.post("/memories")
async def memorize(request: MemorizeRequest, memory: WithMemory) -> Memorized:
    """Store an entry: as a new one, in place of an existing one, or as whichever of the two fits."""
    if request.mode == "update" and not request.name:
        raise BadInput("An update must name what is updated.", hint="Give the entry's id or tag, or a workflow.")
    if request.content is not None:
        return await memory.memorize(request.note(request.content), request.mode, request.name)
    if request.mode != "update" or not request.name:
        raise BadInput("There is nothing to memorize.", hint="Give the text of the entry.")
    return await memory.memorize_workflow(request.name)


@api.get("/memories/{name}")
async def memory(name: str, memory: WithMemory) -> MemoryEntry:
    """Return an entry by its id or tag."""
    return await memory.get_memory_by_id(name)


@api.get("/memories/{memory_id}/log")
async def memory_log(memory_id: str, memory: WithMemory) -> list[AccessRecord]:
    """Return the access log of an entry by its id, even after it was deleted."""
    return await memory.accesses(memory_id)


@api.delete("/memories/{name}")
async def forget(name: str, memory: WithMemory) -> Forgotten:
    """Delete an entry; its log remains."""
    return await memory.delete(name)

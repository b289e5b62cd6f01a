"""The paths of the memory: what past work says, and entries that are put down, read and taken away."""

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
    Question,
    Recollection,
)
from segue.server.documents import Request
from segue.server.routes import WithService

api = APIRouter(prefix="/api")


class RecallRequest(Request):
    query: str
    limit: Annotated[int, Field(ge=1, le=50)] = 5
    workflow: str | None = None
    """Only what this workflow, by id or slug, says."""


class MemorizeRequest(Request):
    mode: MemorizeMode
    name: str | None = None
    """For `update`: an entry by id or tag, or a workflow by id or slug."""
    content: str | None = None
    """Without it, `update` puts down the workflow as it stands."""
    tag: str | None = None
    tags: tuple[str, ...] | None = None
    importance: float | None = None
    domain: str | None = None
    keeping: Keeping | None = None
    workflow: str | None = None
    key: str | None = None

    def note(self, content: str) -> Note:
        given = self.model_dump(exclude={"mode", "name", "content"})
        return Note(content=content, **given)


def _memory(service: WithService) -> Memory:
    return service.memory


WithMemory = Annotated[Memory, Depends(_memory)]


@api.post("/recall")
async def recall(request: RecallRequest, memory: WithMemory) -> Recollection:
    """What past work says about something; by name, or by words."""
    return await memory.recall(Question(query=request.query, limit=request.limit, workflow=request.workflow))


@api.post("/memories")
async def memorize(request: MemorizeRequest, memory: WithMemory) -> Memorized:
    """Put something down: as a new entry, in place of one, or as whichever of the two fits."""
    if request.mode == "update" and not request.name:
        raise BadInput("An update must name what is updated.", hint="Give the entry's id or tag, or a workflow.")
    if request.content is not None:
        return await memory.memorize(request.note(request.content), request.mode, request.name)
    if request.mode != "update" or not request.name:
        raise BadInput("There is nothing to memorize.", hint="Give the words.")
    return await memory.memorize_workflow(request.name)


@api.get("/memories/{name}")
async def memory(name: str, memory: WithMemory) -> MemoryEntry:
    """An entry, by its id or tag."""
    return await memory.get_memory_by_id(name)


@api.get("/memories/{memory_id}/log")
async def memory_log(memory_id: str, memory: WithMemory) -> list[AccessRecord]:
    """Everything that was done with an entry, by its id; also after it was deleted."""
    return await memory.accesses(memory_id)


@api.delete("/memories/{name}")
async def forget(name: str, memory: WithMemory) -> Forgotten:
    """Take an entry away; the log keeps that it was there."""
    return await memory.delete(name)

"""The route that imports an agent's own session file as a workflow."""

from fastapi import APIRouter
from pydantic import Field

from segue.model.errors import BadInput
from segue.model.views import Imported, NewImport
from segue.server.documents import PathInput, Request, Variables, own_variables
from segue.server.routes import WithService

api = APIRouter(prefix="/api")


class ImportRequest(Request):
    """Request to import a session that ran without Segue."""

    file: PathInput | None = None
    """Session file of an agent; without one, the newest of `agent` in `repository` is taken."""
    agent: str | None = None
    repository: PathInput | None = None
    environment: Variables = Field(default_factory=own_variables, repr=False)


@api.post("/imports")
async def import_session(request: ImportRequest, service: WithService) -> Imported:
    """Import a session that ran without Segue as a paused workflow; the same content twice is one workflow."""
    for path in (request.file, request.repository):
        if path is not None and not path.is_absolute():
            raise BadInput(f"{path} is not an absolute path.")
    if (request.file is None) == (request.agent is None):
        raise BadInput("Name either a session file or an agent, whose newest session is imported.")
    if request.agent is not None and request.repository is None:
        raise BadInput("The repository is missing.", hint="Name the repository in which the agent worked.")
    return await service.import_session(
        NewImport(
            file=request.file, agent=request.agent, repository=request.repository, environment=request.environment
        )
    )

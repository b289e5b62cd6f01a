"""The route that imports an agent's own session file as a workflow."""

from fastapi import APIRouter

from segue.model.errors import BadInput
from segue.model.requests import ImportRequest
from segue.model.views import Imported
from segue.server.documents import SentByCaller
from segue.server.routes import WithService

api = APIRouter(prefix="/api")


@api.post("/imports")
async def import_session(request: SentByCaller[ImportRequest], service: WithService) -> Imported:
    """Import a session that ran without Segue as a paused workflow; the same content twice is one workflow."""
    for path in (request.file, request.repository):
        if path is not None and not path.is_absolute():
            raise BadInput(f"{path} is not an absolute path.")
    if (request.file is None) == (request.agent is None):
        raise BadInput("Name either a session file or an agent, whose newest session is imported.")
    if request.agent is not None and request.repository is None:
        raise BadInput("The repository is missing.", hint="Name the repository in which the agent worked.")
    return await service.import_session(request)

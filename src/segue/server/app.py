"""The application: routes, error answers and security put together."""

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI

from segue import __version__
from segue.server import error_answers, import_routes, memory_routes, routes, snapshot_routes
from segue.server.documents import Problem
from segue.server.security import AccessChecks

ROUTERS = (routes.api, import_routes.api, memory_routes.api, snapshot_routes.api)
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": description}
    for status, description in {
        401: "The token is missing or wrong.",
        403: "The Host or the Origin is not one of ours.",
        404: "No object has this name.",
        409: "The state of the object does not allow this.",
        415: "The body is not JSON.",
        422: "The input is not valid.",
        500: "An unexpected error occurred in the server.",
        503: "The database cannot be written, or the server is stopping.",
    }.items()
}


def create_app(context: routes.Context, *, token: str, hosts: Iterable[str]) -> FastAPI:
    """Create the application; `hosts` are the Host headers that it accepts, `token` is required from every caller."""
    app = FastAPI(
        title="Segue",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses=PROBLEMS,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.context = context
    for router in ROUTERS:
        app.include_router(router)
    error_answers.translate(app)
    # Middleware that is added last runs first: nothing is read before these checks.
    app.add_middleware(AccessChecks, token=token, hosts=list(hosts))
    return app

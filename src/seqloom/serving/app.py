"""The application: routes and refusals."""

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from seqloom import __version__
from seqloom.core.errors import SeqloomError
from seqloom.serving import libretranslate, pages, routes, routes_inside, routes_page
from seqloom.serving.problems import (
    Problem,
    tell_http,
    tell_internal,
    tell_invalid,
    tell_problem,
    tell_unusable,
)
from seqloom.serving.service import Service

ABOUT = (
    "Sequence-to-sequence models: asked, streamed and looked into. Every refusal has a sentence."
)


ROUTERS = (
    routes.open_router,
    routes.router,
    routes_inside.open_router,
    routes_inside.router,
    routes_page.router,
    libretranslate.router,
    pages.router,
)


def build_app(service: Service) -> ASGIApp:
    """What stands behind the door."""
    app = FastAPI(
        title="seqloom",
        version=__version__,
        description=ABOUT,
        docs_url=None,  # Swagger's page would be fetched from elsewhere; ours is in static/
        redoc_url=None,
    )
    app.state.service = service
    app.add_exception_handler(Problem, tell_problem)
    app.add_exception_handler(SeqloomError, tell_unusable)
    app.add_exception_handler(RequestValidationError, tell_invalid)
    app.add_exception_handler(HTTPException, tell_http)
    app.add_exception_handler(Exception, tell_internal)
    for router in ROUTERS:
        app.include_router(router)
    return app


def worked_routes() -> dict[str, APIRoute]:
    """Routes that make work, by their paths. The application itself does not list them: it keeps
    what it includes folded up."""
    return {
        route.path: route
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and "POST" in (route.methods or ())
    }

"""The FastAPI application: all routes and the error handlers."""

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from seqloom import __version__
from seqloom.core.errors import SeqloomError
from seqloom.serving.api import (
    captions,
    completion,
    documents,
    forecasts,
    inspection,
    lab_reports,
    labels,
    libretranslate,
    scoring,
    static_files,
    status,
    streaming,
    training_logs,
    translation,
)
from seqloom.serving.api.openai import routes as openai
from seqloom.serving.errors import (
    ApiError,
    handle_api_error,
    handle_http_exception,
    handle_internal_error,
    handle_seqloom_error,
    handle_validation_error,
)
from seqloom.serving.server.service import Service

ROUTERS = (
    status.router,
    translation.router,
    completion.router,
    streaming.router,
    labels.router,
    scoring.router,
    forecasts.router,
    captions.router,
    inspection.router,
    training_logs.router,
    lab_reports.router,
    libretranslate.router,
    documents.router,
    openai.router,
    static_files.router,
)


def build_app(service: Service, root_path: str = "") -> ASGIApp:
    """Return the web application of the server.

    root_path: path under which a proxy makes the server available. /openapi.json contains it
    """
    app = FastAPI(
        title="seqloom",
        version=__version__,
        description="Predictions, token streams and inspection of sequence-to-sequence models.",
        docs_url=None,  # Swagger's page loads scripts from a CDN; /docs is in static/
        redoc_url=None,
        redirect_slashes=False,  # a redirect would not contain the path prefix of a proxy
        servers=[{"url": root_path}] if root_path else None,
    )
    app.state.service = service
    app.state.root_path = root_path
    app.add_exception_handler(ApiError, handle_api_error)
    app.add_exception_handler(SeqloomError, handle_seqloom_error)
    app.add_exception_handler(RequestValidationError, handle_validation_error)
    app.add_exception_handler(HTTPException, handle_http_exception)
    app.add_exception_handler(Exception, handle_internal_error)
    for router in ROUTERS:
        _set_summaries(router)
        app.include_router(router)
    return app


def _set_summaries(router: APIRouter) -> None:
    """Use the first line of each route's docstring as its summary in /openapi.json."""
    for route in router.routes:
        if isinstance(route, APIRoute):
            route.summary = (route.endpoint.__doc__ or "").partition("\n")[0].rstrip(".") or None


def model_routes() -> dict[str, APIRoute]:
    """Return the routes that run a model, as a dictionary from path to route.

    These are all POST routes, although a few of them, such as /suggest, run no model. The function
    reads the routes from ROUTERS, because the application object does not list them.
    """
    return {
        route.path: route
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and "POST" in (route.methods or ())
    }

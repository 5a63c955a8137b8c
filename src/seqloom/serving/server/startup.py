"""Startup: serves the static page while models load.

Loading takes seconds, most of them for importing torch. Until loading is done, the server serves
the static files and responds to /health with "starting". Other GET requests wait. Requests to
/ready and requests with other methods get 503 with Retry-After.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from seqloom.serving.api.static_files import static_response
from seqloom.serving.errors import ApiError

MAX_WAIT_SECONDS = 20.0
"""Maximum time that a GET request waits for the models. After that, it is rejected with 503."""


class StartupApp:
    """ASGI application that serves the static page while the runs are loaded.

    After the call of `set_app`, it forwards all requests to the loaded application.

    model_routes: the routes that run a model, by path. Empty before the call of `set_app`.
    """

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        self._ready = asyncio.Event()
        self.model_routes: dict[str, Any] = {}

    def set_app(self, app: ASGIApp, model_routes: Mapping[str, Any]) -> None:
        """Start forwarding requests to `app`. Must be called from the event loop.

        model_routes: the routes that run a model, by path
        """
        self.model_routes.update(model_routes)
        self._app = app
        self._ready.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None and (response := _startup_response(scope)) is not None:
            await response(scope, receive, send)
            return
        if self._app is None:
            await self._wait()
        assert self._app is not None
        await self._app(scope, receive, send)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                await self._ready.wait()
        except TimeoutError:
            raise starting_error() from None


def _startup_response(scope: Scope) -> Response | None:
    """Return the response to a request that arrives while models load.

    Returns None if the request has to wait until the models are loaded.
    """
    if scope["method"] != "GET" or scope["path"] == "/ready":
        return starting_error().response(scope["path"])
    if scope["path"] == "/health":
        return JSONResponse({"status": "starting"})
    if_none_match = dict(scope["headers"]).get(b"if-none-match")
    return static_response(
        scope["path"], None if if_none_match is None else if_none_match.decode("latin-1")
    )


def starting_error() -> ApiError:
    """Return the 503 error for requests that arrive while models load."""
    return ApiError(
        503,
        "starting",
        "the server is still loading models; try again in a few seconds",
        headers={"Retry-After": "2"},
    )

"""ASGI middleware: path prefix of a proxy, HEAD requests, compression, cross-origin requests."""

from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seqloom.serving.http.options import HttpOptions

COMPRESSED_BYTES = 1024
"""Responses of at least this size are compressed, if the client accepts it. Streams of events are
never compressed, because compression would delay the events."""
COMPRESSION_LEVEL = 4
"""A low level, because compression runs in the event loop."""


def wrap_app(app: ASGIApp, options: HttpOptions) -> ASGIApp:
    """Wrap the application in middleware for CORS, compression and the path prefix of a proxy."""
    if options.origins:
        app = CORSMiddleware(
            app,
            allow_origins=options.origins,
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=("Authorization", "Content-Type"),
            expose_headers=("Retry-After",),
        )
    app = GZipMiddleware(app, COMPRESSED_BYTES, COMPRESSION_LEVEL)
    return RootPathMiddleware(app, options.root_path)


class RootPathMiddleware:
    """Removes the path prefix of a proxy, for example /mt, from request paths.

    The middleware also accepts paths without the prefix, because many proxies remove it. It
    redirects requests for the prefix itself, such as /mt, to /mt/.
    """

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self._app = app
        self._root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._root_path and scope["type"] == "http":
            if scope["path"] == self._root_path:
                # The page's links are relative, so its address must end in a slash.
                await RedirectResponse(f"{self._root_path}/")(scope, receive, send)
                return
            if scope["path"].startswith(f"{self._root_path}/"):
                scope = {**scope, "path": scope["path"].removeprefix(self._root_path)}
        await self._app(scope, receive, send)


HEAD_KEY = "seqloom.head"
"""Key of the ASGI scope of requests that were HEAD requests."""


class HeadMiddleware:
    """Processes HEAD requests like GET requests, and removes the bodies of the responses."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        as_get = {**scope, "method": "GET", HEAD_KEY: True}
        await self._app(as_get, receive, send_without_body)
        if "error_kind" in as_get:
            scope["error_kind"] = as_get["error_kind"]  # for the access log

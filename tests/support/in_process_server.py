"""Requests to the application with all middleware, in the process of the test."""

from functools import cache
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp

from seqloom.serving.http.options import HttpOptions
from seqloom.serving.http.stack import HeadMiddleware, wrap_app
from seqloom.serving.server.admission import AdmissionControl
from seqloom.serving.server.api_keys import ApiKeys
from seqloom.serving.server.app import build_app, model_routes
from seqloom.serving.server.catalogue import Catalogue
from seqloom.serving.server.limits import Limits
from seqloom.serving.server.middleware import RequestMiddleware, RequestObserver
from seqloom.serving.server.service import Service
from seqloom.serving.server.translated_files import TranslatedFiles
from support.async_runner import run_async

NO_RUNS = Catalogue(())


def ignore_request(*request: object) -> None:
    """An observer of requests that does nothing."""


@cache
def build_server(
    options: HttpOptions, keys: ApiKeys, catalogue: Catalogue, observe: RequestObserver
) -> ASGIApp:
    limits = Limits()
    admission = AdmissionControl(limits)
    files = TranslatedFiles(Path(), limits.files, limits.file_seconds)
    service = Service(catalogue, limits, admission, files, keys)
    middleware = RequestMiddleware(
        HeadMiddleware(build_app(service, options.root_path)),
        limits=limits,
        admission=admission,
        observe=observe,
        model_routes=model_routes(),
        options=options,
    )
    return wrap_app(middleware, options)


def respond(
    method: str,
    path: str,
    *,
    options: HttpOptions | None = None,
    keys: ApiKeys | None = None,
    catalogue: Catalogue = NO_RUNS,
    observe: RequestObserver = ignore_request,
    url: str = "http://localhost:8000",
    **request: Any,
) -> httpx.Response:
    """Send one request to a server with these options. Arguments of httpx describe the request."""
    app = build_server(options or HttpOptions(), keys or ApiKeys(), catalogue, observe)

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=url) as client:
            return await client.request(method, path, **request)

    return run_async(send())

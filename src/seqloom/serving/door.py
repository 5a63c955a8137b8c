"""Door: open before the runs are loaded.

That takes seconds, most of them for torch. A browser can fetch the page meanwhile, and whoever
watches over the process can see that it lives; who looks something up waits, and who wants work
done is asked to come again.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from seqloom.serving.files import file_at
from seqloom.serving.problems import Problem

PATIENCE = 20.0
"""Seconds that one who looks something up waits at most."""


class Door:
    """An application that is still to come.

    worked: its routes that make work, by their paths; none as long as it is not there
    """

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        self._opened = asyncio.Event()
        self.worked: dict[str, Any] = {}

    def open(self, app: ASGIApp, worked: Mapping[str, Any]) -> None:
        """From the event loop."""
        self.worked.update(worked)
        self._app = app
        self._opened.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None and (early := _early_answer(scope)) is not None:
            await early(scope, receive, send)
            return
        if self._app is None:
            await self._wait()
        assert self._app is not None
        await self._app(scope, receive, send)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._opened.wait()
        except TimeoutError:
            raise starting() from None


def _early_answer(scope: Scope) -> Response | None:
    """What can be said before anything is loaded; None: it has to wait."""
    if scope["method"] != "GET" or scope["path"] == "/ready":
        return starting().response()
    if scope["path"] == "/health":
        return JSONResponse({"status": "starting"})
    seen = dict(scope["headers"]).get(b"if-none-match")
    return file_at(scope["path"], None if seen is None else seen.decode("latin-1"))


def starting() -> Problem:
    """The service is not there yet."""
    return Problem(
        503,
        "starting",
        "the runs are still being loaded; try again in a few seconds",
        headers={"Retry-After": "2"},
    )

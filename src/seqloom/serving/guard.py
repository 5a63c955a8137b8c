"""Guard: what holds for every request, whatever it asks.

Bodies are read whole before anything else, within their limits of size and time. Whoever goes away
is not worked for any more. Nothing takes longer than the deadline, and every answer carries the
headers that keep a browser safe.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seqloom.serving.gate import Gate, NoPlaceError, full
from seqloom.serving.limits import Limits
from seqloom.serving.problems import Problem
from seqloom.serving.refusing import Refusing

IMAGES = "/api/caption"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
COMMON = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
Seen = Callable[[MutableMapping[str, Any], int, float], None]
"""Told the scope of a request, the status of its answer and the seconds it took; 499: gone."""
GONE = 499


class Guard:
    """Stands before the whole application.

    gate:   when it is full, work is refused here: a refusal that went through the whole application
            would take the time that answers need
    worked: routes of what the gate lets in, by their paths
    """

    def __init__(
        self, app: ASGIApp, limits: Limits, seen: Seen, gate: Gate, worked: Mapping[str, Any]
    ) -> None:
        self._app = app
        self._limits = limits
        self._seen = seen
        self._gate = gate
        self._worked = worked
        self._full = Refusing(full(limits), COMMON)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        answer = Answer(send)
        try:
            if scope["method"] == "POST" and scope["path"] in self._worked:
                scope["route"] = self._worked[scope["path"]]
                self._gate.refuse_if_full()  # before a body is read in vain
                body = await self._body(scope, receive)
                with self._gate.place() as place:  # behind it: a slow body keeps nobody else out
                    answer.ending = place.free
                    await self._within_time(scope, _replay(body), receive, answer)
            else:
                body = await self._body(scope, receive)
                await self._within_time(scope, _replay(body), receive, answer)
        except NoPlaceError:
            answer.status = self._full.status
            await self._full.tell(send)
        except Problem as problem:
            await problem.response()(scope, receive, answer.send)
        except GoneError:
            answer.status = GONE
        self._seen(scope, answer.status, time.perf_counter() - begun)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        limits = self._limits
        most = limits.image_bytes if scope["path"] == IMAGES else limits.body_bytes
        told = dict(scope["headers"]).get(b"content-length", b"0")
        if told.isdigit() and int(told) > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout(limits.body_seconds):
                return await _read(receive, most)
        except TimeoutError:
            raise Problem(
                408,
                "slow-body",
                f"the body did not arrive within {limits.body_seconds:g} s; send it in one go",
                headers={"Connection": "close"},
            ) from None

    async def _within_time(
        self, scope: Scope, replay: Receive, receive: Receive, answer: "Answer"
    ) -> None:
        """Run the application until it is done, its client is gone, or its time is up."""
        work = asyncio.ensure_future(self._app(scope, replay, answer.send))
        leaving = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait(
                {work, leaving},
                timeout=self._limits.deadline_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            gone = leaving.done()
            leaving.cancel()
            if not work.done():
                work.cancel()
        try:
            await work
        except asyncio.CancelledError:
            if gone or answer.begun:
                raise GoneError from None
            raise Problem(
                503,
                "deadline",
                f"no answer within {self._limits.deadline_seconds:g} s; ask for less at a time",
                headers={"Retry-After": "1"},
            ) from None


class GoneError(Exception):
    """Nobody is there to answer."""


class Answer:
    """What is sent, dressed in the headers of every answer.

    ending: called before the last of it goes out: whoever has it may come back at that moment
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self.ending: Callable[[], None] = lambda: None
        self.status = 500
        self.begun = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            given = {name.lower() for name, _ in message["headers"]}
            more = [(name, value) for name, value in COMMON if name not in given]
            message = {**message, "headers": [*message["headers"], *more]}
        elif not message.get("more_body", False):
            self.ending()
        await self._send(message)


async def _read(receive: Receive, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise GoneError
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_large(most: int) -> Problem:
    return Problem(
        413,
        "too-large",
        f"the body is larger than {most:,} bytes; send less at a time",
        headers={"Connection": "close"},
    )


def _replay(body: bytes) -> Receive:
    """Gives the body once. Then there is nothing more: who leaves is noticed elsewhere."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        raise AssertionError

    return receive


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

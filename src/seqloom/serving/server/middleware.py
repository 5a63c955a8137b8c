"""ASGI middleware for every request: body limits, admission, deadline, disconnects, headers.

The middleware reads the complete body, within the limits on size and time, and then calls the
application. If the client disconnects or the deadline passes, the middleware cancels the request.
After the deadline it responds with 503, or ends a stream of events with an error event.
It checks the path and the Host and Origin headers, and adds the security headers to every response.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seqloom.serving.errors import ApiError, internal_error
from seqloom.serving.http.access_checks import check_access
from seqloom.serving.http.access_log import escape_path
from seqloom.serving.http.options import HttpOptions
from seqloom.serving.server.admission import (
    AdmissionControl,
    OverloadedError,
    RejectionSender,
    overloaded_error,
)
from seqloom.serving.server.limits import Limits

log = logging.getLogger(__name__)

IMAGE_PATH = "/api/caption"
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f]")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors "
)


def security_headers(frame_ancestors: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """Return the headers that every response has.

    frame_ancestors: origins whose pages may show this server's page in a frame
    """
    policy = CONTENT_SECURITY_POLICY + (" ".join(frame_ancestors) or "'none'")
    headers = {"Content-Security-Policy": policy, **HEADERS}
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


RequestObserver = Callable[[MutableMapping[str, Any], int, float], None]
"""Called after each request, with its ASGI scope, its response status and the seconds it took."""
CLIENT_CLOSED_REQUEST = 499


class RequestMiddleware:
    """ASGI middleware that checks each request, reads its body and limits its duration.

    observe:      called after every request; status 499 means that the client disconnected, and
                  status 500 that an unexpected exception occurred
    admission:    rejects requests that run a model if the server is overloaded
    model_routes: maps the paths of requests that run a model to their routes
    options:      accepted host names and origins, and the origins whose pages may show the page of
                  this server in a frame
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: Limits,
        admission: AdmissionControl,
        observe: RequestObserver,
        model_routes: Mapping[str, Any],
        options: HttpOptions,
    ) -> None:
        self._app = app
        self._limits = limits
        self._observe = observe
        self._admission = admission
        self._model_routes = model_routes
        self._options = options
        self._body_memory = BodyMemory(limits.body_memory)
        self._headers = security_headers(options.frame_ancestors)
        self._rejection = RejectionSender(overloaded_error(limits), self._headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        response = ResponseSender(send, self._headers)
        # The bytes count until the end, because the exceptions below still reference the body.
        with self._body_memory.reserve() as count_bytes:
            try:
                await self._respond(scope, receive, response, count_bytes)
            except OverloadedError:
                scope["error_kind"] = "busy"
                response.status = self._rejection.status
                await self._rejection.send(scope["path"], send)
            except ApiError as error:
                await response.send_error(error, scope, receive)
            except DisconnectedError:
                response.status = CLIENT_CLOSED_REQUEST
            except Exception:
                # The exception is not raised again: the HTTP server would discard it.
                log.exception("error while processing %s %s", scope["method"], escape_path(scope))
                await response.send_error(internal_error(), scope, receive)
        self._observe(scope, response.status, time.perf_counter() - start)

    async def _respond(
        self, scope: Scope, receive: Receive, response: "ResponseSender", count_bytes: "CountBytes"
    ) -> None:
        check_access(scope, self._options)
        _check_path(scope["path"])
        if scope["method"] == "POST" and scope["path"] in self._model_routes:
            scope["route"] = self._model_routes[scope["path"]]
            self._admission.check_capacity()  # reject before reading the body
            body = await self._read_body(scope, receive, count_bytes)
            # The slot is taken after the body has arrived, so that slow uploads hold no slot.
            with self._admission.reserve_slot() as slot:
                response.on_last_message = slot.release
                await self._run_app(scope, _replay(body), receive, response)
        else:
            body = await self._read_body(scope, receive, count_bytes)
            await self._run_app(scope, _replay(body), receive, response)

    async def _read_body(self, scope: Scope, receive: Receive, count_bytes: "CountBytes") -> bytes:
        limits = self._limits
        max_bytes = limits.image_bytes if scope["path"] == IMAGE_PATH else limits.body_bytes
        headers = dict(scope["headers"])
        if (encoding := headers.get(b"content-encoding", b"identity").lower()) != b"identity":
            # A small compressed body could expand to gigabytes.
            raise ApiError(
                415,
                "wrong-type",
                f"Content-Encoding '{encoding.decode('latin-1')}' is not supported; send the body "
                "uncompressed",
                headers={"Connection": "close"},
            )
        content_length = headers.get(b"content-length", b"0")
        if content_length.isdigit() and int(content_length) > max_bytes:
            raise _body_too_large(max_bytes)
        try:
            async with asyncio.timeout(limits.body_seconds):
                return await _receive_body(receive, max_bytes, count_bytes)
        except TimeoutError:
            raise ApiError(
                408,
                "slow-body",
                f"the request body did not arrive within {limits.body_seconds:g} s",
                headers={"Connection": "close"},
            ) from None

    async def _run_app(
        self, scope: Scope, replay: Receive, receive: Receive, response: "ResponseSender"
    ) -> None:
        """Run the application until it finishes, the client disconnects or the deadline passes."""
        work = asyncio.ensure_future(self._app(scope, replay, response.send))
        disconnect = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await asyncio.wait(
                {work, disconnect},
                timeout=self._limits.deadline_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            disconnected = disconnect.done()
            disconnect.cancel()
            if not work.done():
                work.cancel()
        try:
            await work
        except asyncio.CancelledError:
            if response.ended:
                return
            if disconnected:
                raise DisconnectedError from None
            raise ApiError(
                503,
                "deadline",
                f"the request took longer than {self._limits.deadline_seconds:g} s; send fewer or "
                "shorter inputs per request",
                headers={"Retry-After": "1"},
            ) from None


class DisconnectedError(Exception):
    """The client disconnected before it had the complete response."""


class ResponseSender:
    """Adds the security headers to a response and records its status.

    on_last_message: called just before the last message of the response is sent. The middleware
                     frees the slot of the request there, because the client may send its next
                     request as soon as it has the response.
    started:         True if the response has started
    ended:           True if the last message of the response is being sent or has been sent
    """

    def __init__(self, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        self._send = send
        self._headers = headers
        self.on_last_message: Callable[[], None] = lambda: None
        self.status = 500
        self.started = False
        self.ended = False
        self._is_event_stream = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started, self.status = True, message["status"]
            present = {name.lower() for name, _ in message["headers"]}
            missing = [(name, value) for name, value in self._headers if name not in present]
            message = {**message, "headers": [*message["headers"], *missing]}
            content_type = dict(message["headers"]).get(b"content-type", b"")
            self._is_event_stream = content_type.startswith(b"text/event-stream")
        elif not message.get("more_body", False):
            self.ended = True
            self.on_last_message()
        await self._send(message)

    async def send_error(self, error: ApiError, scope: Scope, receive: Receive) -> None:
        """Send an error response, or end a stream of events with an error event.

        Other responses that have started remain incomplete. The client notices this, because the
        HTTP server closes the connection.
        """
        if not self.started:
            await error.response_to(scope)(scope, receive, self.send)
            return
        scope["error_kind"] = error.kind  # for the access log
        self.status = error.status
        if self._is_event_stream and not self.ended:
            event = error.last_event(scope["path"]).encode()
            await self.send({"type": "http.response.body", "body": event})


def _check_path(path: str) -> None:
    """Raise a 404 error if a path contains a control character.

    The patterns of Starlette's routes end in `$`, which also matches before a line break at the end.
    Without this check, a request for "/api/translate\\n" would run a model without a slot, because
    the path is not in `model_routes`.
    """
    if CONTROL_CHARACTER.search(path):
        raise ApiError(
            404, "not-found", "there is no such route: the path contains a control character"
        )


CountBytes = Callable[[int], None]
"""Adds to the number of bytes in memory. Raises a 503 error if they exceed the limit."""


class BodyMemory:
    """Limits the total size of the request bodies that are in memory.

    max_bytes: the maximum
    used:      the current total, in bytes
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.used = 0

    @contextmanager
    def reserve(self) -> Iterator[CountBytes]:
        """Context manager for one body. Its bytes are in memory until the end of the block.

        The block calls the yielded function with the size of each part of the body.
        """
        size = 0

        def count_bytes(count: int) -> None:
            nonlocal size
            if self.used + count > self._max_bytes:
                raise ApiError(
                    503,
                    "busy",
                    f"the bodies of the current requests would need more than {self._max_bytes:,} "
                    "bytes; try again in a moment",
                    headers={"Retry-After": "1", "Connection": "close"},
                )
            size += count
            self.used += count

        try:
            yield count_bytes
        finally:
            self.used -= size


async def _receive_body(receive: Receive, max_bytes: int, count_bytes: CountBytes) -> bytes:
    body = bytearray()  # a list of tiny parts would need many times their size
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise DisconnectedError
        part = message.get("body", b"")
        if len(body) + len(part) > max_bytes:
            raise _body_too_large(max_bytes)
        count_bytes(len(part))
        body += part
        if not message.get("more_body", False):
            return bytes(body)


def _body_too_large(max_bytes: int) -> ApiError:
    return ApiError(
        413,
        "too-large",
        f"the request body is larger than {max_bytes:,} bytes; send fewer or shorter inputs",
        headers={"Connection": "close"},
    )


def _replay(body: bytes) -> Receive:
    """Return an ASGI `receive` function for the application.

    Its first call returns the body, which the middleware has already read. Further calls never
    return. An application makes them to learn that the client has disconnected, but here the
    middleware handles disconnects itself.
    """
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        raise AssertionError

    return receive


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

"""The middleware of every request: unexpected exceptions, deadlines, disconnects, paths, memory."""

import asyncio
import json
import logging
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seqloom.serving.http.options import HttpOptions
from seqloom.serving.server.admission import AdmissionControl
from seqloom.serving.server.limits import Limits
from seqloom.serving.server.middleware import RequestMiddleware
from support.async_runner import run_async, run_other_tasks
from support.in_process_server import respond
from support.server_process import error_of

LOGGER = "seqloom.serving.server.middleware"


@dataclass
class Exchange:
    """One request to a middleware, and the messages that the server got as its response.

    statuses: the statuses that the observer got
    """

    scope: Scope
    sent: list[Message] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


def exchange(
    app: ASGIApp,
    path: str = "/api/runs",
    *,
    method: str = "GET",
    limits: Limits | None = None,
    model_routes: Mapping[str, Any] | None = None,
    disconnects: bool = False,
) -> Exchange:
    """Send one request without a body to an application behind the middleware.

    disconnects: whether the client disconnects after it has sent the request
    """
    limits = limits or Limits()
    result = Exchange({"type": "http", "method": method, "path": path, "headers": []})

    def observe(scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        result.statuses.append(status)

    async def send(message: Message) -> None:
        result.sent.append(message)

    async def work() -> None:
        middleware = RequestMiddleware(
            app,
            limits=limits,
            admission=AdmissionControl(limits),
            observe=observe,
            model_routes=model_routes or {},
            options=HttpOptions(),
        )
        await middleware(result.scope, receive_once(disconnects), send)

    run_async(work())
    return result


def receive_once(disconnects: bool) -> Receive:
    """An ASGI `receive` function of a request with an empty body."""
    messages: list[Message] = [{"type": "http.disconnect"}] if disconnects else []
    messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        raise AssertionError

    return receive


def start_response(content_type: bytes) -> Message:
    headers = [(b"content-type", content_type)]
    return {"type": "http.response.start", "status": 200, "headers": headers}


def failing_app(*messages: Message) -> ASGIApp:
    """An application that sends messages and then raises an exception."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)
        raise ValueError("secret")

    return app


def endless_app(*messages: Message) -> ASGIApp:
    """An application that sends messages and then never ends."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)
        await asyncio.Event().wait()

    return app


def traceback_records(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.exc_info]


def test_an_unexpected_exception_gets_500_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    result = exchange(failing_app(), '/a "b')
    assert [message["type"] for message in result.sent] == [
        "http.response.start",
        "http.response.body",
    ]
    assert (result.sent[0]["status"], result.statuses) == (500, [500])
    assert json.loads(result.body)["kind"] == "internal"
    assert b"secret" not in result.body
    assert b"x-content-type-options" in dict(result.sent[0]["headers"])
    [record] = traceback_records(caplog)
    assert (record.name, record.levelname) == (LOGGER, "ERROR")
    assert record.getMessage() == "error while processing GET /a%20%22b"
    assert "ValueError: secret" in caplog.text


def test_an_exception_after_the_start_of_the_response_is_counted_as_500(
    caplog: pytest.LogCaptureFixture,
) -> None:
    body = {"type": "http.response.body", "body": b"part", "more_body": True}
    result = exchange(failing_app(start_response(b"text/plain"), body))
    assert (result.body, result.statuses) == (b"part", [500])
    assert len(traceback_records(caplog)) == 1


def test_an_exception_in_a_route_is_answered_once(caplog: pytest.LogCaptureFixture) -> None:
    """The application sends the response, and the middleware logs and counts the exception."""
    statuses: list[int] = []
    no_catalogue: Any = object()
    response = respond(
        "GET",
        "/api/runs",
        catalogue=no_catalogue,
        observe=lambda scope, status, seconds: statuses.append(status),
    )
    status, kind, message = error_of(response)
    assert (status, kind, statuses) == (500, "internal", [500])
    assert "object" not in message
    assert len(traceback_records(caplog)) == 1


@pytest.mark.parametrize("end", ["%0A", "%0D", "%00", "%1B", "%7F", "%C2%85"])
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/api/translate"), ("GET", "/health"), ("GET", "/docs")]
)
def test_paths_with_control_characters_are_not_found(method: str, path: str, end: str) -> None:
    """Routes also match paths that end in a line break, but admission control would not."""
    routes: list[Any] = []
    response = respond(
        method,
        path + end,
        observe=lambda scope, status, seconds: routes.append(scope.get("route")),
    )
    assert error_of(response)[:2] == (404, "not-found")
    assert routes == [None]


SHORT_DEADLINE = Limits(deadline_seconds=0.05)
PART: Message = {"type": "http.response.body", "body": b"part\n\n", "more_body": True}
LAST_PART: Message = {"type": "http.response.body", "body": b"last"}


def test_a_stream_ends_with_an_error_event_at_the_deadline() -> None:
    app = endless_app(start_response(b"text/event-stream; charset=utf-8"), PART)
    result = exchange(app, "/api/translate/stream", limits=SHORT_DEADLINE)
    part, _, name, data, *end = result.body.decode().split("\n")
    assert (part, name, end) == ("part", "event: error", ["", ""])
    content = json.loads(data.removeprefix("data: "))
    assert content["kind"] == "deadline"
    assert "took longer than 0.05 s" in content["error"]
    assert not result.sent[-1].get("more_body", False)
    assert result.statuses == [503]
    assert result.scope["error_kind"] == "deadline"


def test_a_stream_in_the_format_of_openai_ends_with_its_error_at_the_deadline() -> None:
    app = endless_app(start_response(b"text/event-stream"), PART)
    result = exchange(app, "/v1/completions", limits=SHORT_DEADLINE)
    event = result.body.decode().removeprefix("part\n\n")
    error = json.loads(event.removeprefix("data: "))["error"]
    assert (error["code"], error["type"]) == ("deadline", "server_error")
    assert result.statuses == [503]


def test_errors_under_v1_have_the_format_of_openai() -> None:
    for path in ("/v1/completions", "/v1/models/\n"):
        result = exchange(endless_app(), path, limits=SHORT_DEADLINE)
        error = json.loads(result.body)["error"]
        assert error["code"] in ("deadline", "not-found")
        assert result.scope["error_kind"] == error["code"]


def test_another_response_that_has_started_is_cut_and_counted_as_503() -> None:
    app = endless_app(start_response(b"application/json"), PART)
    result = exchange(app, limits=SHORT_DEADLINE)
    assert (result.body, result.statuses) == (b"part\n\n", [503])
    assert result.sent[-1]["more_body"], "the response is not complete"


def test_a_complete_response_keeps_its_status_at_the_deadline() -> None:
    app = endless_app(start_response(b"text/event-stream"), LAST_PART)
    result = exchange(app, limits=SHORT_DEADLINE)
    assert (result.body, result.statuses) == (b"last", [200])


def test_a_request_without_a_response_gets_503_at_the_deadline() -> None:
    result = exchange(endless_app(), limits=SHORT_DEADLINE)
    assert (result.sent[0]["status"], result.statuses) == (503, [503])
    assert json.loads(result.body)["kind"] == "deadline"


@pytest.mark.parametrize("messages", [(), (start_response(b"text/event-stream"), PART)])
def test_a_disconnect_is_counted_as_499(messages: tuple[Message, ...]) -> None:
    result = exchange(endless_app(*messages), disconnects=True)
    assert (len(result.sent), result.statuses) == (len(messages), [499])


def test_a_stream_ends_with_an_error_event_after_an_exception() -> None:
    result = exchange(failing_app(start_response(b"text/event-stream"), PART))
    assert b"event: error\n" in result.body
    assert b'"kind": "internal"' in result.body
    assert b"secret" not in result.body
    assert result.statuses == [500]


class Uploads:
    """Uploads of request bodies to one middleware, whose application waits for `released`.

    statuses: the statuses of the finished requests
    """

    def __init__(self, limits: Limits) -> None:
        self.released = asyncio.Event()
        self.statuses: list[int] = []
        self.sent: list[Message] = []
        self.middleware = RequestMiddleware(
            self._app,
            limits=limits,
            admission=AdmissionControl(limits),
            observe=lambda scope, status, seconds: self.statuses.append(status),
            model_routes={},
            options=HttpOptions(),
        )

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await self.released.wait()
        if scope["path"] == "/broken":
            raise ValueError("broken")
        await send(start_response(b"text/plain"))
        await send(LAST_PART)

    async def upload(self, *parts: bytes, path: str = "/", more: Message | None = None) -> None:
        """Send a body in parts.

        more: the message after the parts, which are an incomplete body. Default: they are complete
        """
        messages: list[Message] = [
            {"type": "http.request", "body": part, "more_body": True} for part in parts
        ]
        messages.append(more or {"type": "http.request", "body": b"", "more_body": False})

        async def receive() -> Message:
            if not messages:
                await asyncio.Event().wait()
            return messages.pop(0)

        async def send(message: Message) -> None:
            self.sent.append(message)

        scope = {"type": "http", "method": "POST", "path": path, "headers": []}
        await self.middleware(scope, receive, send)


SMALL_MEMORY = Limits(
    body_bytes=6, image_bytes=6, buffered_bytes=10, body_seconds=0.2, deadline_seconds=0.3
)


def used_bytes(middleware: RequestMiddleware) -> int:
    return middleware._body_memory.used


def test_bodies_beyond_the_memory_limit_get_503() -> None:
    """Bodies count while they arrive and while they are processed."""

    async def work() -> None:
        uploads = Uploads(SMALL_MEMORY)
        processed = asyncio.ensure_future(uploads.upload(b"ab", b"cd"))
        part = {"type": "http.request", "body": b"", "more_body": True}
        arriving = asyncio.ensure_future(uploads.upload(b"abc", b"d", more=part))
        await run_other_tasks()
        assert used_bytes(uploads.middleware) == 8
        await uploads.upload(b"ab", b"c")
        assert uploads.statuses == [503]
        headers = dict(uploads.sent[0]["headers"])
        assert headers[b"retry-after"] == b"1"
        content = json.loads(uploads.sent[1]["body"])
        assert content["kind"] == "busy"
        assert "more than 10 bytes" in content["error"]
        assert used_bytes(uploads.middleware) == 8
        uploads.released.set()
        await uploads.upload(b"ab")
        assert uploads.statuses == [503, 200, 200]
        await asyncio.gather(processed, arriving)

    run_async(work())


def test_the_memory_of_bodies_is_released_however_the_request_ends() -> None:
    async def work() -> None:
        uploads = Uploads(SMALL_MEMORY)
        await uploads.upload(b"abcd")
        await uploads.upload(b"abc", b"defg")
        await uploads.upload(b"abcd", more={"type": "http.disconnect"})
        await uploads.upload(b"ab", more={"type": "http.request", "more_body": True})
        cancelled = asyncio.ensure_future(uploads.upload(b"abcd"))
        await run_other_tasks()
        assert used_bytes(uploads.middleware) == 4
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        assert used_bytes(uploads.middleware) == 0
        uploads.released.set()
        await uploads.upload(b"abcd", path="/broken")
        await uploads.upload(b"abcdef")
        assert uploads.statuses == [503, 413, 499, 408, 500, 200]
        assert used_bytes(uploads.middleware) == 0

    run_async(work())

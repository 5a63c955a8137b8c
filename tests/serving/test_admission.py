"""Admission control, and the rejection of requests under overload."""

import asyncio
import json

import pytest
from starlette.types import Message

from seqloom.serving.server.admission import (
    MAX_REJECTION_DELAY,
    REJECTION_INTERVAL,
    REJECTION_TICK,
    AdmissionControl,
    OverloadedError,
    RejectionSender,
    overloaded_error,
)
from seqloom.serving.server.app import ROUTERS, model_routes
from seqloom.serving.server.limits import Limits
from seqloom.serving.server.middleware import ResponseSender, security_headers
from support.async_runner import run_async


def test_the_middleware_checks_admission_of_every_post_route() -> None:
    """Other routes would be rejected only after routing and parsing."""
    routes = model_routes()
    post_paths = [
        getattr(route, "path", "")
        for router in ROUTERS
        for route in router.routes
        if "POST" in (getattr(route, "methods", None) or ())
    ]
    expected = {"/api/translate", "/api/caption", "/api/explain", "/translate", "/detect"}
    assert expected <= set(routes)
    assert sorted(routes) == sorted(post_paths)


def test_requests_with_a_slot_are_never_rejected() -> None:
    admission = AdmissionControl(Limits(in_flight=1, queue=1))

    async def send_requests() -> tuple[int, int]:
        """All requests reserve a slot before any of them is admitted."""
        rejected = admitted = 0

        async def request() -> None:
            nonlocal rejected, admitted
            try:
                with admission.reserve_slot():
                    await asyncio.sleep(0)
                    async with admission.admit():
                        admitted += 1
                        await asyncio.sleep(0)
            except OverloadedError:
                rejected += 1

        await asyncio.gather(*(request() for _ in range(5)))
        return admitted, rejected

    assert run_async(send_requests()) == (2, 3)
    assert (admission.slots_taken, admission.in_flight, admission.waiting) == (0, 0, 0)


@pytest.mark.parametrize("others", [0, 1])
def test_a_request_cancelled_while_being_admitted_releases_its_capacity(others: int) -> None:
    """The next waiting request is admitted instead, and no capacity is lost."""
    admission = AdmissionControl(Limits(in_flight=1, queue=5))

    async def cancel_while_admitting() -> list[object]:
        await admission.acquire()
        waiting = [asyncio.ensure_future(admission.acquire()) for _ in range(1 + others)]
        await asyncio.sleep(0)
        waiting[0].cancel()  # as a timeout does; the queue has not been updated since
        admission.release()
        return await asyncio.gather(*waiting, return_exceptions=True)

    cancelled, *rest = run_async(cancel_while_admitting())
    assert isinstance(cancelled, asyncio.CancelledError)
    assert rest == [None] * others
    assert (admission.in_flight, admission.waiting) == (others, 0)


@pytest.mark.parametrize("path", ["/api/translate", "/v1/completions"])
def test_the_prebuilt_rejection_equals_an_ordinary_error_response(path: str) -> None:
    error = overloaded_error(Limits(in_flight=3, queue=4))
    assert str(error) == (
        "the server is processing 3 requests and 4 are waiting; try again in a moment"
    )

    async def send_both() -> tuple[list[Message], list[Message]]:
        prebuilt: list[Message] = []
        ordinary: list[Message] = []

        async def keep_prebuilt(message: Message) -> None:
            prebuilt.append(message)

        async def keep_ordinary(message: Message) -> None:
            ordinary.append(message)

        async def receive() -> Message:
            raise AssertionError

        await RejectionSender(error, security_headers(())).send(path, keep_prebuilt)
        await error.response(path)(
            {"type": "http"}, receive, ResponseSender(keep_ordinary, security_headers(())).send
        )
        return prebuilt, ordinary

    prebuilt, ordinary = run_async(send_both())
    assert prebuilt[0]["status"] == ordinary[0]["status"] == 503
    assert dict(prebuilt[0]["headers"]) == dict(ordinary[0]["headers"])
    assert dict(prebuilt[0]["headers"])[b"retry-after"] == b"1"
    assert prebuilt[1]["body"] == ordinary[1]["body"]
    assert isinstance(json.loads(prebuilt[1]["body"])["error"], dict) == path.startswith("/v1/")


def test_one_rejection_is_immediate_and_many_are_sent_at_ticks() -> None:
    rejector = RejectionSender(overloaded_error(Limits()), security_headers(()))
    now = 1000.01
    assert rejector.delay(now) == 0
    delays = [rejector.delay(now) for _ in range(1000)]
    assert max(delays) <= MAX_REJECTION_DELAY + REJECTION_TICK
    assert delays == sorted(delays), "rejections are sent in order of arrival"
    ticks = {round((now + delay) / REJECTION_TICK, 6) for delay in delays}
    assert all(tick == int(tick) for tick in ticks)
    at_first_tick = [delay for delay in delays if delay == delays[0]]
    assert len(at_first_tick) <= REJECTION_TICK / REJECTION_INTERVAL


def test_a_rejection_after_a_pause_is_immediate_again() -> None:
    rejector = RejectionSender(overloaded_error(Limits()), security_headers(()))
    for _ in range(1000):
        rejector.delay(50.0)
    assert rejector.delay(50.0 + 2 * MAX_REJECTION_DELAY) == 0


def test_the_slot_is_released_before_the_last_message_is_sent() -> None:
    """As many clients as slots are never rejected, however soon they send their next request."""
    admission = AdmissionControl(Limits(in_flight=1, queue=0))
    has_capacity: list[bool] = []

    async def send(message: Message) -> None:
        has_capacity.append(not admission.is_full)

    async def respond() -> None:
        response = ResponseSender(send, [])
        with admission.reserve_slot() as slot:
            response.on_last_message = slot.release
            await response.send({"type": "http.response.start", "status": 200, "headers": []})
            await response.send({"type": "http.response.body", "body": b"a", "more_body": True})
            await response.send({"type": "http.response.body", "body": b"b"})

    run_async(respond())
    assert has_capacity == [False, False, True]
    assert admission.slots_taken == 0, "the slot is released only once"


@pytest.mark.parametrize("closed", [True, False])
def test_a_slot_is_released_after_an_error(closed: bool) -> None:
    admission = AdmissionControl(Limits(in_flight=1, queue=0))

    def fail() -> None:
        with admission.reserve_slot():
            admission.closed = closed
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert not admission.is_full

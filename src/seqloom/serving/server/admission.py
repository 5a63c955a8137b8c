"""Admission control: how many requests run, how many wait, and how the server rejects the rest."""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from starlette.types import Message, Send

from seqloom.serving.api.errors import ApiError, busy_error, stopping_error
from seqloom.serving.server.limits import Limits

REJECTION_INTERVAL = 0.002
"""Seconds between two rejections under overload."""
REJECTION_TICK = 0.05
"""Delayed rejections are sent together at multiples of this many seconds. Sent one by one, each of
them would interrupt the computing thread, which then has to wait for the interpreter lock."""
MAX_REJECTION_DELAY = 0.25
"""A rejection is delayed by at most this many seconds, and then until the next tick."""


class AdmissionControl:
    """Admits requests in order of arrival. All methods run in the event loop.

    slots_taken: requests from the arrival of their body until their response is ready. A request
                 with a slot can always be processed or queued, so it is never rejected half-way.
    in_flight:   requests being processed
    closed:      the server is stopping and accepts no new requests
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._queue: deque[asyncio.Future[None]] = deque()
        self.slots_taken = 0
        self.in_flight = 0
        self.closed = False

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def is_full(self) -> bool:
        """True if all slots, processing and waiting, are taken."""
        return self.slots_taken >= self._limits.in_flight + self._limits.queue

    def close(self) -> None:
        """Accept no new requests. Requests with a slot are still processed."""
        self.closed = True

    def check_capacity(self) -> None:
        """Raise if the server is stopping or all slots are taken."""
        if self.closed:
            raise stopping_error()
        if self.is_full:
            raise OverloadedError

    @contextmanager
    def reserve_slot(self) -> Iterator["Slot"]:
        """Hold a slot until the block ends or the slot is released. Raises if there is none."""
        self.check_capacity()
        slot = Slot(self)
        try:
            yield slot
        finally:
            slot.release()

    @asynccontextmanager
    async def admit(self) -> AsyncIterator[None]:
        """Wait until the request may be processed; the block processes it."""
        await self.acquire()
        try:
            yield
        finally:
            self.release()

    async def acquire(self) -> None:
        if self.in_flight < self._limits.in_flight:
            self.in_flight += 1
        else:
            await self._wait()

    async def _wait(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            async with asyncio.timeout(self._limits.queue_seconds):
                await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn.done() and not turn.cancelled():
                self.release()  # admitted and cancelled at the same moment: admit the next request
            elif turn in self._queue:
                self._queue.remove(turn)
            if isinstance(error, TimeoutError):
                raise busy_error(
                    f"the request waited {self._limits.queue_seconds:g} s in the queue; try again "
                    "in a moment"
                ) from None
            raise

    def release(self) -> None:
        """Finish a request and admit the one that has waited longest."""
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():  # a request cancelled just now may still be in the queue
                turn.set_result(None)
                return
        self.in_flight -= 1


class Slot:
    """A slot of the admission control. Releasing it twice has no effect."""

    def __init__(self, admission: AdmissionControl) -> None:
        self._admission = admission
        self._taken = True
        admission.slots_taken += 1

    def release(self) -> None:
        if self._taken:
            self._taken = False
            self._admission.slots_taken -= 1


class OverloadedError(Exception):
    """All slots of the admission control are taken."""


def overloaded_response(limits: Limits) -> ApiError:
    """The error for requests that get no slot. It is the same for all, so it can be prebuilt."""
    return busy_error(
        f"the server is processing {limits.in_flight} requests and {limits.queue} are waiting; "
        "try again in a moment"
    )


class Rejector:
    """Sends one prebuilt error response, delayed when there are many rejections.

    Clients that retry at once without waiting would otherwise take all the processing time, and
    admitted requests would starve. A single rejection is sent immediately; many are spaced out by
    `REJECTION_INTERVAL` and sent at ticks.
    """

    def __init__(self, error: ApiError, headers: list[tuple[bytes, bytes]]) -> None:
        response = error.response()
        self.status = response.status_code
        self._start: Message = {
            "type": "http.response.start",
            "status": response.status_code,
            "headers": [*response.raw_headers, *headers],
        }
        self._body: Message = {"type": "http.response.body", "body": response.body}
        self._next_time = 0.0

    async def send(self, send: Send) -> None:
        if (delay := self.delay(time.monotonic())) > 0:
            await asyncio.sleep(delay)
        await send(self._start)
        await send(self._body)

    def delay(self, now: float) -> float:
        """Seconds until a request rejected now gets its response."""
        due = min(max(now, self._next_time), now + MAX_REJECTION_DELAY)
        self._next_time = due + REJECTION_INTERVAL
        return math.ceil(due / REJECTION_TICK) * REJECTION_TICK - now if due > now else 0.0

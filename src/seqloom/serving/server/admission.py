"""Admission control: limits how many requests run and how many wait at the same time.

Requests above these limits are rejected.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from starlette.responses import Response
from starlette.types import Message, Send

from seqloom.serving.errors import OPENAI_PREFIX, ApiError, busy_error, stopping_error
from seqloom.serving.server.limits import Limits

REJECTION_INTERVAL = 0.004
"""Under overload, rejections are scheduled at intervals of this many seconds. The scheduled times
are then rounded up to multiples of REJECTION_TICK."""
REJECTION_TICK = 0.05
"""Delayed rejections are sent together, at multiples of this many seconds. If they were sent one by
one, each of them would take the interpreter lock from the thread that runs the model."""
MAX_REJECTION_DELAY = 1.0
"""Maximum delay of a scheduled rejection in seconds, the same as in its header Retry-After.
Rounding up to a multiple of REJECTION_TICK can make the delay longer."""


class AdmissionControl:
    """Admits requests in order of arrival. Its methods must be called in the event loop.

    A request first takes a slot and then waits for admission. It holds the slot from the arrival of
    its complete body to the end of its response. The number of slots is the maximum number of
    running requests plus the maximum number of waiting requests. A request with a slot is rejected
    only if it waits too long for admission.

    slots_taken: number of requests that hold a slot
    in_flight:   number of running requests, that is, admitted requests that have not ended
    closed:      True if the server is stopping and accepts no new requests
    on_admitted: called when a request is admitted, with the seconds that it has waited
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._queue: deque[asyncio.Future[None]] = deque()
        self.slots_taken = 0
        self.in_flight = 0
        self.closed = False
        self.on_admitted: Callable[[float], None] = lambda seconds: None

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def is_full(self) -> bool:
        """True if no slot is free."""
        return self.slots_taken >= self._limits.in_flight + self._limits.queue

    def close(self) -> None:
        """Accept no new requests. Requests with a slot are still processed."""
        self.closed = True

    def check_capacity(self) -> None:
        """Raise a 503 error if the server is stopping. Raise OverloadedError if no slot is free."""
        if self.closed:
            raise stopping_error()
        if self.is_full:
            raise OverloadedError

    @contextmanager
    def reserve_slot(self) -> Iterator["Slot"]:
        """Context manager that takes a slot at the start of the block and releases it at the end.

        The block can also release the slot earlier. Raises a 503 error if the server is stopping,
        and OverloadedError if no slot is free.
        """
        self.check_capacity()
        slot = Slot(self)
        try:
            yield slot
        finally:
            slot.release()

    @asynccontextmanager
    async def admit(self) -> AsyncIterator[None]:
        """Context manager that waits for admission and then runs the block.

        The request counts as running until the end of the block. Then the next waiting request is
        admitted.
        """
        await self.acquire()
        try:
            yield
        finally:
            self.release()

    async def acquire(self) -> None:
        if self.in_flight < self._limits.in_flight:
            self.in_flight += 1
            self.on_admitted(0.0)
        else:
            start = time.monotonic()
            await self._wait()
            self.on_admitted(time.monotonic() - start)

    async def _wait(self) -> None:
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(admitted)
        try:
            async with asyncio.timeout(self._limits.queue_seconds):
                await admitted
        except (TimeoutError, asyncio.CancelledError) as error:
            if admitted.done() and not admitted.cancelled():
                self.release()  # admitted at the same moment: let the next request run instead
            elif admitted in self._queue:
                self._queue.remove(admitted)
            if isinstance(error, TimeoutError):
                raise busy_error(
                    f"the request waited {self._limits.queue_seconds:g} s in the queue; try again "
                    "in a moment"
                ) from None
            raise

    def release(self) -> None:
        """End a running request. If requests are waiting, admit the one that has waited longest."""
        while self._queue:
            admitted = self._queue.popleft()
            if not admitted.done():  # a request cancelled just now may still be in the queue
                admitted.set_result(None)
                return
        self.in_flight -= 1


class Slot:
    """The place of one request, running or waiting, in an `AdmissionControl`.

    The number of places is limited. The constructor occupies a place and `release` frees it. A
    second call of `release` has no effect.
    """

    def __init__(self, admission: AdmissionControl) -> None:
        self._admission = admission
        self._taken = True
        admission.slots_taken += 1

    def release(self) -> None:
        if self._taken:
            self._taken = False
            self._admission.slots_taken -= 1


class OverloadedError(Exception):
    """The maximum numbers of running and waiting requests are reached."""


def overloaded_error(limits: Limits) -> ApiError:
    """Return the error for requests that are rejected because too many are running and waiting.

    The message is the same for all requests. So the server builds the response once and reuses it.
    """
    return busy_error(
        f"the server is processing {limits.in_flight} requests and {limits.queue} are waiting; "
        "try again in a moment"
    )


def _messages(response: Response, headers: list[tuple[bytes, bytes]]) -> list[Message]:
    """Return the ASGI messages of a response with additional headers."""
    start = {
        "type": "http.response.start",
        "status": response.status_code,
        "headers": [*response.raw_headers, *headers],
    }
    return [start, {"type": "http.response.body", "body": response.body}]


class RejectionSender:
    """Sends a prebuilt error response to every rejected request.

    A single response is sent immediately. If many requests are rejected, their responses are
    delayed. Without a delay, clients that retry at once would take processing time from the
    admitted requests.

    Responses are scheduled at intervals of REJECTION_INTERVAL seconds, with a delay of at most
    MAX_REJECTION_DELAY seconds. The scheduled times are rounded up to multiples of REJECTION_TICK
    seconds, so that several responses are sent together.
    """

    def __init__(self, error: ApiError, headers: list[tuple[bytes, bytes]]) -> None:
        self.status = error.status
        self._messages = _messages(error.response("/"), headers)
        self._openai_messages = _messages(error.response(OPENAI_PREFIX), headers)
        self._next_time = 0.0

    async def send(self, path: str, send: Send) -> None:
        """Send the response to a request with this path."""
        if (delay := self.delay(time.monotonic())) > 0:
            await asyncio.sleep(delay)
        is_openai = path.startswith(OPENAI_PREFIX)
        for message in self._openai_messages if is_openai else self._messages:
            await send(message)

    def delay(self, now: float) -> float:
        """Return how many seconds to wait before the next rejected request gets its response.

        Each call schedules one response.

        now: the current time of `time.monotonic`
        """
        due = min(max(now, self._next_time), now + MAX_REJECTION_DELAY)
        self._next_time = due + REJECTION_INTERVAL
        return math.ceil(due / REJECTION_TICK) * REJECTION_TICK - now if due > now else 0.0

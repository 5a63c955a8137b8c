"""Gate: so many requests at a time, so many waiting, nobody for long."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from seqloom.serving.limits import Limits
from seqloom.serving.problems import Problem, busy, stopping


class Gate:
    """Lives in the event loop; first come, first served.

    places: taken by requests from when their bodies are there until their answers are ready. Who has
            one finds room at least to wait: nobody is refused half-way, after work was done
    inside: requests that are worked on
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._queue: deque[asyncio.Future[None]] = deque()
        self.places = 0
        self.inside = 0
        self.closed = False

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def full(self) -> bool:
        """Is there no room even to wait?"""
        return self.places >= self._limits.in_flight + self._limits.queue

    def close(self) -> None:
        """Nobody gets a place any more; who has one is still served."""
        self.closed = True

    def refuse_if_full(self) -> None:
        """Raises if there is no place, or nobody may have one any more."""
        if self.closed:
            raise stopping()
        if self.full:
            raise NoPlaceError

    @contextmanager
    def place(self) -> Iterator["Place"]:
        """Within, one has a place, unless it is freed before. Raises at once if there is none."""
        self.refuse_if_full()
        place = Place(self)
        try:
            yield place
        finally:
            place.free()

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """Within, one is inside."""
        await self.enter()
        try:
            yield
        finally:
            self.leave()

    async def enter(self) -> None:
        if self.inside < self._limits.in_flight:
            self.inside += 1
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
                self.leave()  # the turn came in the same moment: somebody else has it now
            elif turn in self._queue:
                self._queue.remove(turn)
            if isinstance(error, TimeoutError):
                waited = f"{self._limits.queue_seconds:g}"
                raise busy(f"no turn came within {waited} s; try again in a moment") from None
            raise

    def leave(self) -> None:
        """The one who has waited longest comes in."""
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():  # who gave up a moment ago is still in the queue
                turn.set_result(None)
                return
        self.inside -= 1


class Place:
    """One of the places; free() may be asked for more than once."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._taken = True
        gate.places += 1

    def free(self) -> None:
        if self._taken:
            self._taken = False
            self._gate.places -= 1


class NoPlaceError(Exception):
    """There is no room even to wait."""


def full(limits: Limits) -> Problem:
    """What is said to whoever finds no place: the same to all, so that it can be kept ready."""
    return busy(
        f"{limits.in_flight} requests are worked on and {limits.queue} wait; try again in a moment"
    )

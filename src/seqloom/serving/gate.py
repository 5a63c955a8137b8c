"""Gate: so many requests at a time, so many waiting, nobody for long."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from seqloom.serving.limits import Limits
from seqloom.serving.problems import busy, stopping


class Gate:
    """Lives in the event loop; first come, first served."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._queue: deque[asyncio.Future[None]] = deque()
        self.inside = 0
        self.closed = False

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def close(self) -> None:
        """Nobody enters any more; who waits is still served."""
        self.closed = True

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """Within, one is inside. Raises at once if there is no room even to wait."""
        await self.enter()
        try:
            yield
        finally:
            self.leave()

    async def enter(self) -> None:
        self.refuse_if_full()
        if self.inside < self._limits.in_flight:
            self.inside += 1
        else:
            await self._wait()

    def refuse_if_full(self) -> None:
        """Raises if there is no room even to wait, or nobody may enter any more."""
        if self.closed:
            raise stopping()
        if self.inside >= self._limits.in_flight and len(self._queue) >= self._limits.queue:
            raise busy(
                f"{self.inside} requests are worked on and {len(self._queue)} wait; "
                "try again in a moment"
            )

    async def _wait(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            async with asyncio.timeout(self._limits.queue_seconds):
                await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn.done() and not turn.cancelled():
                self.leave()  # the turn came in the same moment: somebody else has it now
            else:
                self._queue.remove(turn)
            if isinstance(error, TimeoutError):
                waited = f"{self._limits.queue_seconds:g}"
                raise busy(f"no turn came within {waited} s; try again in a moment") from None
            raise

    def leave(self) -> None:
        """The one who has waited longest takes the place."""
        if self._queue:
            self._queue.popleft().set_result(None)
        else:
            self.inside -= 1

"""Refusing: when there is no place, the same few bytes to everybody, and not too many at a time.

Whoever is refused and does not wait comes back at once. Hundreds who do that would take all the time
there is, and those with a place would never be answered. So one who is refused alone hears it at
once; of many, each waits for a turn, and turns come together, in beats, with rest between them.
"""

import asyncio
import math
import time

from starlette.types import Message, Send

from seqloom.serving.problems import Problem

PACE = 0.002
"""Seconds between two turns."""
BEAT = 0.05
"""Seconds between two beats. An engine that is interrupted for one refusal at a time waits for the
interpreter in each of its operations; in the rest between beats it is not."""
LONGEST = 0.25
"""Seconds that a turn is put off at most, and then to the next beat."""


class Refusing:
    """One problem, told to many."""

    def __init__(self, problem: Problem, headers: list[tuple[bytes, bytes]]) -> None:
        response = problem.response()
        self.status = response.status_code
        self._start: Message = {
            "type": "http.response.start",
            "status": response.status_code,
            "headers": [*response.raw_headers, *headers],
        }
        self._body: Message = {"type": "http.response.body", "body": response.body}
        self._next = 0.0

    async def tell(self, send: Send) -> None:
        if (pause := self.pause(time.monotonic())) > 0:
            await asyncio.sleep(pause)
        await send(self._start)
        await send(self._body)

    def pause(self, now: float) -> float:
        """Seconds until one who is refused now hears it."""
        turn = min(max(now, self._next), now + LONGEST)
        self._next = turn + PACE
        return math.ceil(turn / BEAT) * BEAT - now if turn > now else 0.0

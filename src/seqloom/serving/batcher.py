"""Batcher: errands of many people, carried out together by one thread.

A batch is what waits when the thread is free: the oldest errand, and those of the same kind that
are nearest to it in length. After errands that came in company, an idle thread waits a few
milliseconds for more of them; one who is alone need not wait. Whoever has gone is left out.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

log = logging.getLogger(__name__)

WINDOW = 0.004
"""Seconds that an idle thread waits for company, where there was some before."""
MOST = 64
"""Errands in a batch."""


class Manner(Protocol):
    """How an errand is to be done. Equal manners may travel together; it is hashable."""

    def room(self) -> int:
        """Tokens of a batch, its padding included."""
        ...

    def do(self, errands: Sequence["Errand"]) -> Sequence[Any]:
        """One result for each errand."""
        ...


Hear = Callable[[int, float], None]
"""Told a token and its log-probability, in the thread that decides it."""


@dataclass(eq=False)
class Errand:
    """One thing to do, and the future that somebody waits for.

    size: tokens of what is read
    work: what the manner needs to know
    hear: wants every token as it is decided
    """

    manner: Manner
    size: int
    work: Any
    future: asyncio.Future[Any]
    hear: Hear | None = None

    @property
    def gone(self) -> bool:
        """Does nobody wait any more? Cancelled futures tell, and may be asked by any thread."""
        return self.future.cancelled()


class Waiting:
    """The audience of a batch, by the places of its errands."""

    def __init__(self, errands: Sequence[Errand]) -> None:
        self._errands = errands
        self._heard = [0] * len(errands)

    def gone(self, number: int) -> bool:
        return self._errands[number].gone

    def listens(self, number: int) -> bool:
        return self._errands[number].hear is not None and not self._errands[number].gone

    def hear(self, number: int, place: int, token: int, log_probability: float) -> None:
        hear = self._errands[number].hear
        assert hear is not None
        if place > self._heard[number]:  # nobody hears a token twice
            self._heard[number] = place
            hear(token, log_probability)


@dataclass(frozen=True)
class Alone:
    """The manner of what cannot be merged: a function that is called in its turn."""

    function: Callable[[], Any]

    def room(self) -> int:
        return 0

    def do(self, errands: Sequence[Errand]) -> Sequence[Any]:
        return [self.function()]


Told = Callable[[int, float], None]
"""Told how many errands a batch had, and how many seconds it took."""


class Batcher:
    """One thread, and what waits for it."""

    def __init__(self, name: str, told: Told = lambda size, seconds: None) -> None:
        self._told = told
        self._waiting: list[Errand] = []
        self._changed = threading.Condition()
        self._closed = False
        self._company = False
        self._thread = threading.Thread(target=self._work, name=f"engine {name}", daemon=True)
        self._thread.start()

    async def ask(
        self, manner: Manner, work: Sequence[Any], sizes: Sequence[int], hear: Hear | None = None
    ) -> list[Any]:
        """The results, in order. To cancel this is to take all of it back."""
        loop = asyncio.get_running_loop()
        errands = [
            Errand(manner, size, each, loop.create_future(), hear)
            for each, size in zip(work, sizes, strict=True)
        ]
        self._add(errands)
        futures = [errand.future for errand in errands]
        try:
            return await asyncio.gather(*futures)
        finally:
            for future in futures:  # where one failed, nobody waits for the others
                future.cancel()

    async def call(self, function: Callable[[], Any]) -> Any:
        """What a function returns, called in its turn by the thread."""
        [result] = await self.ask(Alone(function), [None], [0])
        return result

    def close(self) -> None:
        """Finish what waits, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _add(self, errands: Sequence[Errand]) -> None:
        with self._changed:
            self._waiting += errands
            self._changed.notify()

    def _work(self) -> None:
        while batch := self._next():
            begun = time.perf_counter()
            self._carry_out(batch)
            self._told(len(batch), time.perf_counter() - begun)

    def _next(self) -> list[Errand]:
        """The next batch; empty when all is done and nothing more will come."""
        with self._changed:
            if self._still_wanted() == 0 and not self._wait_for_some():
                return []
            batch = choose(self._waiting)
            self._company = len(self._waiting) > 1
            chosen = set(map(id, batch))
            self._waiting = [one for one in self._waiting if id(one) not in chosen]
            return batch

    def _still_wanted(self) -> int:
        self._waiting = [one for one in self._waiting if not one.gone]
        return len(self._waiting)

    def _wait_for_some(self) -> bool:
        """Wait for the first errand, and then a little for others; False: nothing will come."""
        while True:
            while not self._still_wanted():
                if self._closed:
                    return False
                self._changed.wait()
            end = time.monotonic() + (WINDOW if self._company else 0)
            while (left := end - time.monotonic()) > 0 and not self._closed:
                self._changed.wait(left)
            if self._still_wanted():
                return True

    def _carry_out(self, batch: Sequence[Errand]) -> None:
        try:
            results = batch[0].manner.do(batch)
        except Exception as error:
            if len(batch) > 1:  # one of them, perhaps: it must not take the others along
                for errand in batch:
                    self._carry_out([errand])
                return
            _settle(batch, [error])
            return
        _settle(batch, results)


def choose(waiting: Sequence[Errand]) -> list[Errand]:
    """The oldest, and those of its manner nearest to it in length, as many as there is room for."""
    oldest = waiting[0]
    room = oldest.manner.room()
    alike = [one for one in waiting if one.manner == oldest.manner]
    alike.sort(key=lambda one: abs(one.size - oldest.size))  # stable: the oldest stays the first
    batch: list[Errand] = []
    longest = 0
    for errand in alike[:MOST]:
        longest = max(longest, errand.size)
        if batch and longest * (len(batch) + 1) > room:
            break
        batch.append(errand)
    return batch


def _settle(errands: Sequence[Errand], results: Sequence[Any]) -> None:
    """Hand the results over to the event loop, all at once."""

    def hand_over() -> None:
        for errand, result in zip(errands, results, strict=True):
            if errand.future.done():
                continue
            if isinstance(result, Exception):
                errand.future.set_exception(result)
            else:
                errand.future.set_result(result)

    loop = errands[0].future.get_loop()
    try:
        loop.call_soon_threadsafe(hand_over)
    except RuntimeError:  # the loop has ended, and with it everybody who waited
        log.debug("nobody is left to answer")

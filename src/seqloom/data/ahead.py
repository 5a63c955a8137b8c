"""Batches made ready by a thread while the machine works on those before them."""

import queue
import threading
from collections.abc import Callable
from contextlib import suppress

from seqloom.core.batch import Batch
from seqloom.data.stream import BatchStream

DEPTH = 8
"""Batches that lie ready at most."""


class AheadStream(BatchStream):
    """A stream whose next batches are prepared ahead of time. Its position is that of the next
    batch that will be handed out, however many lie ready."""

    def __init__(self, stream: BatchStream, prepare: Callable[[Batch], Batch]) -> None:
        super().__init__(
            stream.corpus,
            stream.layout,
            stream.seed,
            stream.rank,
            stream.ranks,
            stream.temperature,
        )
        self._maker = stream
        self._prepare = prepare
        self._worker: _Worker | None = None
        self._position = stream.position

    @property
    def position(self) -> tuple[int, int]:
        return self._position

    @position.setter
    def position(self, position: tuple[int, int]) -> None:
        self.close()
        self._position = self._carry(*position)

    def __next__(self) -> Batch:
        if self._worker is None:
            self._maker.position = self.position
            self._worker = _Worker(self._maker, self._prepare)
        batch, self._position = self._worker.take()
        return batch

    def close(self) -> None:
        """Stop preparing; what lies ready is thrown away."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None


class _Worker:
    """A thread that fills a queue with batches and the positions behind them."""

    def __init__(self, stream: BatchStream, prepare: Callable[[Batch], Batch]) -> None:
        self._ready: queue.Queue[tuple[Batch, tuple[int, int]] | BaseException] = queue.Queue(DEPTH)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(stream, prepare), daemon=True)
        self._thread.start()

    def _work(self, stream: BatchStream, prepare: Callable[[Batch], Batch]) -> None:
        try:
            while not self._stopped.is_set():
                batch = prepare(next(stream))
                self._hand_over((batch, stream.position))
        except BaseException as error:  # raised again where the batch is taken
            self._hand_over(error)

    def _hand_over(self, item: tuple[Batch, tuple[int, int]] | BaseException) -> None:
        while not self._stopped.is_set():
            with suppress(queue.Full):
                self._ready.put(item, timeout=0.1)
                return

    def take(self) -> tuple[Batch, tuple[int, int]]:
        item = self._ready.get()
        if isinstance(item, BaseException):
            raise item
        return item

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

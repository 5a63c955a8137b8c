"""Prefetching: a thread prepares the next batches while the model trains on the current one."""

import queue
import threading
from collections.abc import Callable
from contextlib import suppress

from seqloom.core.batch import Batch
from seqloom.data.batching.stream import BatchStream, ShardPlan, StreamPosition

MIN_PREFETCHED, MAX_PREFETCHED = 8, 32
"""Maximum number of prepared batches in the queue, for large and for small batches."""
MAX_PREFETCHED_BYTES = 2**26
"""Maximum total size of the batches in the queue, if it holds more than MIN_PREFETCHED batches."""


class PrefetchStream(BatchStream):
    """A stream whose next batches are planned and prepared by a thread.

    `position` is the position in the data after the last batch that `next()` returned. Batches that
    are prepared but not yet returned do not change it.
    """

    def __init__(self, stream: BatchStream, prepare: Callable[[Batch], Batch]) -> None:
        """
        stream:  the stream to prefetch from
        prepare: called in the thread for each batch, for example to pin its memory
        """
        super().__init__(
            stream.corpus,
            stream.layout,
            stream.seed,
            stream.rank,
            stream.ranks,
            stream.temperature,
            stream.replay_share,
        )
        self._stream = stream
        self._prepare = prepare
        self._worker: _PrefetchWorker | None = None
        self._position = stream.position

    @property
    def position(self) -> StreamPosition:
        return self._position

    @position.setter
    def position(self, position: StreamPosition) -> None:
        self._stop_worker()
        self._position = position

    def _plan(self, shard: int) -> ShardPlan:
        self._stop_worker()  # Only one thread at a time may use the stream.
        return self._stream._plan(shard)

    def start(self) -> None:
        """Start to prepare batches, unless the stream already does."""
        if self._worker is None:
            self._stream.position = self.position
            self._worker = _PrefetchWorker(self._stream, self._prepare)

    def __next__(self) -> Batch:
        self.start()
        assert self._worker is not None
        batch, self._position = self._worker.take()
        return batch

    def close(self) -> None:
        """End all threads and discard the prepared batches. The stream cannot be used afterwards."""
        self._stop_worker()
        self._stream.close()
        super().close()

    def _stop_worker(self) -> None:
        """Stop the thread that prepares batches, and discard the prepared batches."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None


def queue_size(batch: Batch) -> int:
    """Return the maximum number of batches like this one in the queue."""
    size = sum(tensor.nbytes for tensor in batch.tensors())
    return max(MIN_PREFETCHED, min(MAX_PREFETCHED, MAX_PREFETCHED_BYTES // size))


class _PrefetchWorker:
    """A thread that fills a queue with batches.

    Beside each batch, the queue holds the position of the stream after this batch. If the thread ends
    because of an error, the error is the last element of the queue.
    """

    def __init__(self, stream: BatchStream, prepare: Callable[[Batch], Batch]) -> None:
        self._queue: queue.Queue[tuple[Batch, StreamPosition] | BaseException] = queue.Queue(
            MAX_PREFETCHED
        )
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(stream, prepare), daemon=True)
        self._thread.start()

    def _run(self, stream: BatchStream, prepare: Callable[[Batch], Batch]) -> None:
        try:
            while not self._stopped.is_set():
                batch = prepare(next(stream))
                self._queue.maxsize = min(self._queue.maxsize, queue_size(batch))
                self._put((batch, stream.position))
        except BaseException as error:  # take() raises the error in the main thread
            self._put(error)

    def _put(self, item: tuple[Batch, StreamPosition] | BaseException) -> None:
        while not self._stopped.is_set():
            with suppress(queue.Full):
                self._queue.put(item, timeout=0.1)
                return

    def take(self) -> tuple[Batch, StreamPosition]:
        item = self._queue.get()
        if isinstance(item, BaseException):
            self._queue.put(item)  # The next call raises it, too.
            raise item
        return item

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

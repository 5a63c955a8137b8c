"""Figures for Prometheus, on a port of their own that only this machine can reach."""

from collections.abc import Callable, MutableMapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from seqloom.core.errors import StorageError
from seqloom.serving.gate import Gate

LOOPBACK = "127.0.0.1"
SIZES = (1, 2, 4, 8, 16, 32, 64)


class Monitoring:
    """Counts, times and sizes; labels are routes, statuses and runs, never a key or an address."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "seqloom_requests",
            "Requests by route and status; 499: the client had gone.",
            ("route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "seqloom_request_seconds", "From headers to answer.", ("route",), registry=self.registry
        )
        self._sizes = Histogram(
            "seqloom_batch_size",
            "Texts that were answered together.",
            ("run",),
            buckets=SIZES,
            registry=self.registry,
        )
        self._batches = Histogram(
            "seqloom_batch_seconds", "Of one batch.", ("run",), registry=self.registry
        )

    def watch(self, gate: Gate) -> None:
        inside = Gauge("seqloom_requests_in_flight", "Worked on now.", registry=self.registry)
        waiting = Gauge("seqloom_requests_waiting", "In the queue.", registry=self.registry)
        inside.set_function(lambda: gate.inside)
        waiting.set_function(lambda: gate.waiting)

    def seen(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        """A request is done. Paths that are no route count as one, so that nobody can add labels."""
        route = getattr(scope.get("route"), "path", "other")
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def batch(self, run: str) -> Callable[[int, float], None]:
        """What a batcher tells about each batch of a run."""
        sizes, seconds = self._sizes.labels(run), self._batches.labels(run)

        def told(size: int, took: float) -> None:
            sizes.observe(size)
            seconds.observe(took)

        return told

    def open(self, port: int) -> Callable[[], None]:
        """Answer at this port; -> what closes it."""
        try:
            server, thread = start_http_server(port, LOOPBACK, self.registry)
        except OSError as error:
            raise StorageError(
                f"--metrics-port {port}: cannot be opened ({error.strerror}); choose another"
            ) from error

        def close() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return close

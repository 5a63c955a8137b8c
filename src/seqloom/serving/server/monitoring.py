"""Prometheus metrics, on a separate port that is reachable only from this machine."""

from collections.abc import Callable, MutableMapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from seqloom.core.errors import StorageError
from seqloom.serving.server.admission import AdmissionControl

LOOPBACK = "127.0.0.1"
BATCH_SIZE_BUCKETS = (1, 2, 4, 8, 16, 32, 64)


class Monitoring:
    """Metrics of requests and batches.

    The labels of the metrics are routes, statuses and runs, never API keys or client addresses.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "seqloom_requests",
            "Requests by route and status. Status 499: the client disconnected.",
            ("route", "status"),
            registry=self.registry,
        )
        self._request_seconds = Histogram(
            "seqloom_request_seconds",
            "Time from the request headers to the complete response.",
            ("route",),
            registry=self.registry,
        )
        self._batch_sizes = Histogram(
            "seqloom_batch_size",
            "Jobs per batch.",
            ("run",),
            buckets=BATCH_SIZE_BUCKETS,
            registry=self.registry,
        )
        self._batch_seconds = Histogram(
            "seqloom_batch_seconds", "Time to process a batch.", ("run",), registry=self.registry
        )

    def watch_admission(self, admission: AdmissionControl) -> None:
        """Export the number of running requests and the number of waiting requests."""
        in_flight = Gauge(
            "seqloom_requests_in_flight", "Requests being processed.", registry=self.registry
        )
        waiting = Gauge(
            "seqloom_requests_waiting", "Requests waiting in the queue.", registry=self.registry
        )
        in_flight.set_function(lambda: admission.in_flight)
        waiting.set_function(lambda: admission.waiting)

    def observe_request(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        """Count a finished request.

        All unknown paths have the same label, so that clients cannot create new labels by
        requesting arbitrary paths.
        """
        route = getattr(scope.get("route"), "path", "other")
        self._requests.labels(route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def batch_observer(self, run: str) -> Callable[[int, float], None]:
        """Return a function that the batcher of a run calls after each batch.

        The arguments of the returned function are the number of jobs in the batch and the seconds
        that the batch took.
        """
        sizes, times = self._batch_sizes.labels(run), self._batch_seconds.labels(run)

        def observe(size: int, seconds: float) -> None:
            sizes.observe(size)
            times.observe(seconds)

        return observe

    def start_server(self, port: int) -> Callable[[], None]:
        """Serve the metrics at this port. Returns a function that stops the server."""
        try:
            server, thread = start_http_server(port, LOOPBACK, self.registry)
        except OSError as error:
            raise StorageError(
                f"--metrics-port {port}: cannot open the port ({error.strerror}); choose another"
            ) from error

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return stop

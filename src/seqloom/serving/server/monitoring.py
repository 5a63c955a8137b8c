"""Prometheus metrics, on a separate port that is reachable only from this machine."""

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    start_http_server,
)

from seqloom import __version__
from seqloom.core.errors import StorageError
from seqloom.serving.server.admission import AdmissionControl
from seqloom.serving.server.batcher import BatchReport, OnBatch

LOOPBACK = "127.0.0.1"
SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
BATCH_SIZE_BUCKETS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class MetricsServer:
    """An HTTP server of metrics.

    url:  address of the metrics
    stop: stops the server
    """

    url: str
    stop: Callable[[], None]


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
        self._request_seconds = self._histogram(
            "seqloom_request_duration_seconds",
            "Time from the request headers to the complete response.",
            ("route",),
        )
        self._batch_sizes = self._histogram(
            "seqloom_batch_size", "Inputs per batch.", ("run",), BATCH_SIZE_BUCKETS
        )
        self._batch_seconds = self._histogram(
            "seqloom_batch_duration_seconds", "Time to process a batch.", ("run",)
        )
        self._job_queue_seconds = self._histogram(
            "seqloom_job_queue_duration_seconds",
            "Time that an input waits for its batch.",
            ("run",),
        )
        self._source_tokens = Counter(
            "seqloom_source_tokens", "Tokens of inputs.", ("run",), registry=self.registry
        )
        self._output_tokens = Counter(
            "seqloom_output_tokens", "Tokens of outputs.", ("run",), registry=self.registry
        )
        build = Info("seqloom_build", "Versions of seqloom and torch.", registry=self.registry)
        build.info({"version": __version__, "torch": version("torch")})
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)

    def _histogram(
        self,
        name: str,
        description: str,
        labels: Sequence[str] = (),
        buckets: Sequence[float] = SECONDS_BUCKETS,
    ) -> Histogram:
        return Histogram(name, description, labels, buckets=buckets, registry=self.registry)

    def watch_admission(self, admission: AdmissionControl) -> None:
        """Export the numbers of running and of waiting requests, and the waiting times."""
        in_flight = Gauge(
            "seqloom_requests_in_flight", "Requests being processed.", registry=self.registry
        )
        waiting = Gauge(
            "seqloom_requests_waiting", "Requests waiting in the queue.", registry=self.registry
        )
        in_flight.set_function(lambda: admission.in_flight)
        waiting.set_function(lambda: admission.waiting)
        admission.on_admitted = self._histogram(
            "seqloom_request_queue_duration_seconds",
            "Time that an admitted request has waited for admission.",
        ).observe

    def observe_request(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        """Count a finished request.

        All unknown paths have the same label, so that clients cannot create new labels by
        requesting arbitrary paths.
        """
        route = getattr(scope.get("route"), "path", "other")
        self._requests.labels(route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def batch_observer(self, run: str) -> OnBatch:
        """Return a function that updates metrics. A run's batcher calls it after each batch."""
        sizes, times = self._batch_sizes.labels(run), self._batch_seconds.labels(run)
        queue_times = self._job_queue_seconds.labels(run)
        source_tokens, output_tokens = (
            counter.labels(run) for counter in (self._source_tokens, self._output_tokens)
        )

        def observe(report: BatchReport) -> None:
            sizes.observe(len(report.waited))
            times.observe(report.seconds)
            for seconds in report.waited:
                queue_times.observe(seconds)
            source_tokens.inc(report.source_tokens)
            output_tokens.inc(report.output_tokens)

        return observe

    def start_server(self, port: int) -> MetricsServer:
        """Serve the metrics at this port.

        port: 0 selects any free port
        """
        try:
            server, thread = start_http_server(port, LOOPBACK, self.registry)
        except OSError as error:
            raise StorageError(
                f"--metrics-port {port}: cannot open the port ({error.strerror}); choose another "
                "port"
            ) from error

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return MetricsServer(f"http://{LOOPBACK}:{server.server_port}/metrics", stop)

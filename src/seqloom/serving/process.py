"""One server process: loads the runs and answers requests until a stop signal arrives."""

import logging
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from seqloom.config.schema.names import EngineKind
from seqloom.serving.http.access_log import log, log_request
from seqloom.serving.http.options import HttpOptions
from seqloom.serving.server.admission import AdmissionControl
from seqloom.serving.server.api_keys import ApiKeys
from seqloom.serving.server.lifecycle import Address, HttpServer, ServerCallbacks
from seqloom.serving.server.limits import Limits
from seqloom.serving.server.monitoring import Monitoring

if TYPE_CHECKING:
    from seqloom.serving.server.loading import LoadedApp


@dataclass(frozen=True)
class ServerOptions:
    """The validated options of `seqloom serve`. All server processes have the same options."""

    run_folders: list[Path]
    address: Address
    engine: EngineKind | None
    settings: list[str]
    languages: list[str]
    keys: ApiKeys
    limits: Limits
    http: HttpOptions
    access_log: bool
    files_folder: Path


def run_server(
    options: ServerOptions,
    metrics_port: int | None,
    notify: Callable[[str], None],
    on_ready: "Callable[[LoadedApp], None]",
    stopped_while_loading: Callable[[], NoReturn],
    index: int = 0,
    *,
    listens_while_loading: bool = True,
) -> None:
    """Run one server process until a stop signal arrives.

    metrics_port:          port of the metrics. 0: any free port. None: no metrics
    notify:                called with messages for the user
    on_ready:              called when the runs are loaded
    stopped_while_loading: called when a stop signal arrives before that. Must end the process
    index:                 index of the worker process, which selects its GPU
    listens_while_loading: if False, load the runs before listening
    """
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    if options.access_log:
        _enable_access_log()
    admission, monitoring = AdmissionControl(options.limits), Monitoring()
    monitoring.watch_admission(admission)
    metrics = None if metrics_port is None else monitoring.start_server(metrics_port)
    if metrics is not None and metrics_port == 0:
        notify(f"metrics: {metrics.url}")

    def load() -> "LoadedApp":
        from seqloom.serving.server.loading import load_app, select_gpu  # imports torch

        select_gpu(index)
        return load_app(
            options.run_folders,
            options.engine,
            options.languages,
            settings=options.settings,
            limits=options.limits,
            admission=admission,
            keys=options.keys,
            files_folder=options.files_folder,
            monitoring=monitoring,
            root_path=options.http.root_path,
        )

    def observe_request(scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        monitoring.observe_request(scope, status, seconds)
        log_request(scope, status, seconds)

    names = ", ".join(folder.name for folder in options.run_folders)
    server = HttpServer(
        options.address,
        load,
        limits=options.limits,
        admission=admission,
        observe_request=observe_request,
        callbacks=ServerCallbacks(
            listening=lambda: notify(f"{options.address}: loading {names} …"),
            ready=on_ready,
            stopped_while_loading=stopped_while_loading,
        ),
        options=options.http,
    )
    server.run(listens_while_loading=listens_while_loading)
    if metrics is not None:
        metrics.stop()


def _enable_access_log() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False

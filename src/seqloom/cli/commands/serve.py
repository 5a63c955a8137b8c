"""seqloom serve"""

from __future__ import annotations

import gc
from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from seqloom.cli.options import Engine, existing_runs
from seqloom.cli.output import print_message
from seqloom.cli.parameters.completion import complete_run
from seqloom.core.extras import import_optional

if TYPE_CHECKING:
    from seqloom.serving.server.lifecycle import Address
    from seqloom.serving.server.loading import LoadedApp


def serve(
    run_folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Run folders, written by `seqloom train`.",
            callback=existing_runs,
            autocompletion=complete_run,
        ),
    ],
    host: Annotated[
        str,
        typer.Option(
            metavar="HOST",
            help="Address to listen on. 0.0.0.0 accepts connections from other machines; consider "
            "--keys.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Port. 0: any free port.")
    ] = 8000,
    engine: Engine = None,
    languages: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]de:en",
            help="Source and target language of a run whose recipe does not name them. Can be "
            "repeated.",
        ),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Require an API key. The file contains the SHA-256 of one key per line, in the "
            "format of sha256sum.",
        ),
    ] = None,
    limits: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="NAME=VALUE",
            help="Change a request limit, for example beam=12 or characters=20000. Can be "
            "repeated.",
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=1,
            max=65535,
            help="Port of the Prometheus metrics on 127.0.0.1. Default: no metrics.",
        ),
    ] = None,
    root_path: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="Path under which a proxy makes the server available, for example /mt.",
        ),
    ] = "",
    allowed_hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="Host name of the server in requests; * for any. IP addresses, localhost and the "
            "name of this machine are always accepted. Can be repeated.",
        ),
    ] = None,
    allowed_origins: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="ORIGIN",
            help="Origin whose pages may send requests, for example https://example.org; * for "
            "any. Can be repeated.",
        ),
    ] = None,
    frame_ancestors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="Origin whose pages may show the page in a frame, for example a notebook server; "
            "self for this origin, * for any. Can be repeated.",
        ),
    ] = None,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Write a line per request to stderr.")
    ] = False,
) -> None:
    """Serve runs over HTTP: a web page, a JSON API, and the LibreTranslate API."""
    for package in ("fastapi", "granian", "prometheus_client", "python_multipart"):
        import_optional(package, "serve", "seqloom serve")
    # Importing modules and loading runs creates almost no garbage, but Python would spend half a
    # second on garbage collections. The server enables garbage collection again once the
    # runs are loaded.
    gc.disable()

    import logging

    from seqloom.serving.http.access_log import log_request
    from seqloom.serving.http.options import HttpOptions
    from seqloom.serving.server.admission import AdmissionControl
    from seqloom.serving.server.api_keys import ApiKeys
    from seqloom.serving.server.lifecycle import ServerCallbacks, find_free_address, run_server
    from seqloom.serving.server.limits import parse_limits
    from seqloom.serving.server.monitoring import Monitoring

    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    if access_log:
        _enable_access_log()
    options = HttpOptions.parse(
        host, allowed_hosts or [], allowed_origins or [], frame_ancestors or [], root_path
    )
    request_limits = parse_limits(limits or [])
    api_keys = ApiKeys() if keys is None else ApiKeys.read(keys)
    address = find_free_address(host, port)
    admission, monitoring = AdmissionControl(request_limits), Monitoring()
    monitoring.watch_admission(admission)
    stop_metrics = None if metrics_port is None else monitoring.start_server(metrics_port)

    def load() -> LoadedApp:
        from seqloom.serving.server.loading import load_app  # imports torch

        return load_app(
            run_folders,
            engine,
            languages or [],
            limits=request_limits,
            admission=admission,
            keys=api_keys,
            monitoring=monitoring,
            root_path=options.root_path,
        )

    def observe_request(scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        monitoring.observe_request(scope, status, seconds)
        log_request(scope, status, seconds)

    names = ", ".join(folder.name for folder in run_folders)
    run_server(
        address,
        load,
        limits=request_limits,
        admission=admission,
        observe_request=observe_request,
        callbacks=ServerCallbacks(
            listening=lambda: print_message(f"{address}: loading {names} …"),
            ready=lambda loaded: _print_runs(loaded, address),
            stopped_while_loading=_exit_while_loading,
        ),
        options=options,
    )
    if stop_metrics is not None:
        stop_metrics()
    print_message("stopped")


def _enable_access_log() -> None:
    import logging

    from seqloom.serving.http.access_log import log

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def _exit_while_loading() -> NoReturn:
    """Exit at once, without waiting for the thread that loads the runs."""
    import os

    print_message("stopped")
    os._exit(0)


def _print_runs(loaded: LoadedApp, address: Address) -> None:
    for run in loaded.service.catalogue.runs:
        pairs = ", ".join(map(str, run.pairs))
        languages = f" ({pairs})" if pairs else ""
        print_message(
            f"{run.name}: {run.kind}{languages}, {run.parameters:,} parameters, "
            f"{run.memory / 2**20:.1f} MiB, {run.engine}"
        )
    print_message(f"open {address}  (stop with Ctrl+C)")

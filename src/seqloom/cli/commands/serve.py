"""The command `seqloom serve`."""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from seqloom.cli.options import Engine, RunSettings, argument, existing_runs, flag, option
from seqloom.cli.output import is_quiet, print_error, print_message, print_warning, set_quiet
from seqloom.cli.parameters.completion import complete_run
from seqloom.core.errors import SeqloomError
from seqloom.core.extras import import_optional
from seqloom.core.threads import THREADS_VARIABLE, threads_per_process

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

    from seqloom.serving.process import ServerOptions
    from seqloom.serving.server.lifecycle import Address
    from seqloom.serving.server.loading import LoadedApp

MAX_PORT = 65535


def serve(
    run_folders: Annotated[
        list[Path],
        argument(
            "RUN...",
            "Run folders, written by `seqloom train`.",
            callback=existing_runs,
            autocompletion=complete_run,
        ),
    ],
    host: Annotated[
        str,
        option(
            "HOST",
            "Address to listen on. 0.0.0.0 accepts connections from other machines; consider "
            "--keys.",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, option("PORT", "Port. 0: any free port.", min=0, max=65535)] = 8000,
    engine: Engine = None,
    settings: RunSettings = None,
    languages: Annotated[
        list[str] | None,
        option(
            "[NAME=]de:en",
            "Source and target language of a run whose recipe does not name them. Can be repeated.",
            advanced=True,
        ),
    ] = None,
    keys: Annotated[
        Path | None,
        option(
            "FILE",
            "Require an API key. The file contains the SHA-256 of one key per line, in the "
            "format of sha256sum.",
        ),
    ] = None,
    limits: Annotated[
        list[str] | None,
        option(
            "NAME=VALUE",
            "Change a request limit, for example beam=12 or characters=20000. Can be repeated.",
            "--limit",
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        option(
            "PORT",
            "Port of the Prometheus metrics on 127.0.0.1. 0: any free port. With --workers N, "
            "worker I has the port PORT + I - 1, and PORT cannot be 0. Default: no metrics.",
            min=0,
            max=65535,
            advanced=True,
        ),
    ] = None,
    workers: Annotated[
        int,
        option(
            "N",
            "Number of server processes on one port. Each has a copy of the runs and an equal "
            "share of the cores, or one GPU if there are several.",
            min=1,
        ),
    ] = 1,
    root_path: Annotated[
        str,
        option(
            "PATH",
            "Path under which a proxy makes the server available, for example /mt.",
            advanced=True,
        ),
    ] = "",
    allowed_hosts: Annotated[
        list[str] | None,
        option(
            "NAME",
            "Host name under which clients may address the server; * for any name. IP "
            "addresses, localhost and the name of this machine are always accepted. Can be "
            "repeated.",
            "--allow-host",
            advanced=True,
        ),
    ] = None,
    allowed_origins: Annotated[
        list[str] | None,
        option(
            "ORIGIN",
            "Origin whose pages may send requests, for example https://example.org; * for "
            "any. Can be repeated.",
            "--allow-origin",
            advanced=True,
        ),
    ] = None,
    frame_ancestors: Annotated[
        list[str] | None,
        option(
            "ORIGIN",
            "Origin whose pages may show the page in a frame, for example a notebook server; "
            "self for this origin, * for any. Can be repeated.",
            advanced=True,
        ),
    ] = None,
    access_log: Annotated[
        bool, flag("--access-log", "Write a line per request to stderr.", advanced=True)
    ] = False,
) -> None:
    """Serve runs over HTTP: a web page, a JSON API, and the LibreTranslate API."""
    for package in ("fastapi", "granian", "prometheus_client", "python_multipart"):
        import_optional(package, "serve", "seqloom serve")
    # Importing modules and loading runs creates almost no garbage, but Python would spend half a
    # second on garbage collections. The server enables garbage collection again once the
    # runs are loaded.
    gc.disable()

    from seqloom.serving.http.options import HttpOptions
    from seqloom.serving.process import ServerOptions, run_server
    from seqloom.serving.server.api_keys import ApiKeys
    from seqloom.serving.server.lifecycle import find_free_address
    from seqloom.serving.server.limits import parse_limits
    from seqloom.serving.server.translated_files import temporary_folder

    if workers > 1:
        _check_metrics_ports(metrics_port, workers)
    with temporary_folder() as files_folder:
        options = ServerOptions(
            run_folders,
            find_free_address(host, port),
            engine,
            settings or [],
            languages or [],
            ApiKeys() if keys is None else ApiKeys.read(keys),
            parse_limits(limits or []),
            HttpOptions.parse(
                host, allowed_hosts or [], allowed_origins or [], frame_ancestors or [], root_path
            ),
            access_log,
            files_folder,
        )
        if workers == 1:
            run_server(
                options,
                metrics_port,
                print_message,
                lambda loaded: _print_runs(loaded, options.address),
                lambda: _exit_while_loading(files_folder),
            )
        else:
            _serve_with_workers(_Worker(options, metrics_port, is_quiet()), workers)
    print_message("stopped")


@dataclass(frozen=True)
class _Worker:
    """What each worker process receives a copy of. The worker calls the copy, which runs the server.

    metrics_port: port of the metrics of the first worker
    """

    options: ServerOptions
    metrics_port: int | None
    quiet: bool

    def __call__(self, index: int, listens_while_loading: bool, ready: Event) -> None:
        """Run one of several worker processes until a stop signal arrives.

        index:                 index of the worker, counted from 0
        listens_while_loading: if False, the worker loads the runs before it listens
        ready:                 event that the worker sets when its runs are loaded
        """
        from seqloom.serving.process import run_server

        gc.disable()  # for the same reason as in `serve`
        set_quiet(self.quiet or index > 0)

        def on_ready(loaded: LoadedApp) -> None:
            if listens_while_loading:
                _print_loaded(loaded)
            ready.set()

        port = None if self.metrics_port is None else self.metrics_port + index
        try:
            run_server(
                self.options,
                port,
                print_message,
                on_ready,
                lambda: _exit_while_loading(self.options.files_folder),
                index,
                listens_while_loading=listens_while_loading,
            )
        except SeqloomError as error:
            print_error(error)
            sys.exit(error.exit_code)


def _serve_with_workers(worker: _Worker, workers: int) -> None:
    """Start the worker processes, and supervise them until a stop signal arrives."""
    from seqloom.serving.server.supervisor import Supervisor, SupervisorCallbacks

    os.environ[THREADS_VARIABLE] = str(threads_per_process(workers))
    callbacks = SupervisorCallbacks(
        ready=lambda: print_message(
            f"open {worker.options.address}  ({workers} workers; stop with Ctrl+C)"
        ),
        restarted=lambda index, code: print_warning(
            f"worker {index + 1} ended with exit code {code}. A new one is being started."
        ),
    )
    if exit_code := Supervisor(worker, workers, callbacks).run():
        raise typer.Exit(exit_code)


def _check_metrics_ports(port: int | None, workers: int) -> None:
    # A worker that is restarted must have its old port, because Prometheus has a list of the ports.
    if port == 0:
        raise typer.BadParameter(
            "--metrics-port 0: several workers need consecutive ports. Choose a port from 1 to "
            f"{MAX_PORT - workers + 1}."
        )
    if port is not None and port + workers - 1 > MAX_PORT:
        raise typer.BadParameter(
            f"--metrics-port {port}: {workers} workers need the ports up to {port + workers - 1}. "
            f"Choose a port of at most {MAX_PORT - workers + 1}."
        )


def _exit_while_loading(files_folder: Path) -> NoReturn:
    """Exit at once, without waiting for the thread that loads the runs."""
    if multiprocessing.parent_process() is None:  # other workers may still use the folder
        shutil.rmtree(files_folder, ignore_errors=True)
    print_message("stopped")
    os._exit(0)


def _print_runs(loaded: LoadedApp, address: Address) -> None:
    _print_loaded(loaded)
    print_message(f"open {address}  (stop with Ctrl+C)")


def _print_loaded(loaded: LoadedApp) -> None:
    for run in loaded.service.catalogue.runs:
        pairs = ", ".join(map(str, run.pairs))
        languages = f" ({pairs})" if pairs else ""
        print_message(
            f"{run.name}: {run.kind}{languages}, {run.parameters:,} parameters, "
            f"{run.memory / 2**20:.1f} MiB, {run.engine}"
        )

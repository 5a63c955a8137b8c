"""Runs behind an HTTP address."""

import gc
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from seqloom.cli.output import tell
from seqloom.config.kinds import EngineKind
from seqloom.serving.batcher import Batcher
from seqloom.serving.gate import Gate
from seqloom.serving.keys import Keys
from seqloom.serving.limits import changed_limits
from seqloom.serving.monitoring import Monitoring
from seqloom.serving.served import Catalogue, load_catalogue
from seqloom.serving.server import Address, free_address, leave_a_core, run_server
from seqloom.serving.service import Service


def serve(
    what: tuple[Sequence[Path], EngineKind | None, Sequence[str]],
    where: tuple[str, int, int | None],
    keys: Path | None,
    limits: Sequence[str],
) -> None:
    """what: folders, --engine and --languages; where: --host, --port and --metrics-port."""
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    host, port, metrics_port = where
    leave_a_core()
    bounds = changed_limits(limits)
    known = Keys() if keys is None else Keys.read(keys)
    address = free_address(host, port)
    monitoring = Monitoring()
    close_figures = None if metrics_port is None else monitoring.open(metrics_port)
    # Digests of files are compared while the routes are put together.
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(
            load_catalogue, *what, lambda name: Batcher(name, monitoring.batch(name))
        )
        from seqloom.serving.app import build_app

        catalogue = loading.result()
    service = Service(catalogue, bounds, Gate(bounds), known)
    app = build_app(service, monitoring)
    gc.enable()
    run_server(app, service, address, lambda: _tell(catalogue, address))
    if close_figures is not None:
        close_figures()
    tell("stopped")


def _tell(catalogue: Catalogue, address: Address) -> None:
    for served in catalogue.runs:
        pairs = ", ".join(map(str, served.pairs))
        languages = f" ({pairs})" if pairs else ""
        tell(
            f"{served.name}: {served.kind}{languages}, {served.parameters:,} parameters, "
            f"{served.memory / 2**20:.1f} MiB, {served.engine}"
        )
    tell(f"open {address}  (stop with Ctrl+C)")

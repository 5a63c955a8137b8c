"""Runs behind an HTTP address."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from seqloom.cli.output import tell
from seqloom.config.schema.names import EngineKind
from seqloom.serving.server import Entrance
from seqloom.serving.server.admission import AdmissionControl
from seqloom.serving.server.api_keys import ApiKeys
from seqloom.serving.server.lifecycle import Address, ServerCallbacks, find_free_address, run_server
from seqloom.serving.server.limits import parse_limits
from seqloom.serving.server.monitoring import Monitoring

if TYPE_CHECKING:
    from seqloom.serving.server.loading import LoadedApp


def serve(
    what: tuple[Sequence[Path], EngineKind | None, Sequence[str]],
    where: tuple[str, int, int | None],
    keys: Path | None,
    limits: Sequence[str],
) -> None:
    """what: folders, --engine and --languages; where: --host, --port and --metrics-port."""
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    host, port, metrics_port = where
    bounds = parse_limits(limits)
    known = ApiKeys() if keys is None else ApiKeys.read(keys)
    address = find_free_address(host, port)
    gate, monitoring = AdmissionControl(bounds), Monitoring()
    monitoring.watch(gate)
    close_figures = None if metrics_port is None else monitoring.open(metrics_port)

    def load() -> "LoadedApp":
        from seqloom.serving.server.loading import load_app

        return load_app(what, (bounds, gate, known), monitoring)

    say = ServerCallbacks(
        lambda: tell(f"{address}: loading {', '.join(folder.name for folder in what[0])} …"),
        lambda assembled: _tell(assembled, address),
        _leave,
    )
    run_server(Entrance(bounds, gate, monitoring.seen), address, load, say)
    if close_figures is not None:
        close_figures()
    tell("stopped")


def _leave() -> NoReturn:
    tell("stopped")
    os._exit(0)


def _tell(assembled: "LoadedApp", address: Address) -> None:
    for served in assembled.service.catalogue.runs:
        pairs = ", ".join(map(str, served.pairs))
        languages = f" ({pairs})" if pairs else ""
        tell(
            f"{served.name}: {served.kind}{languages}, {served.parameters:,} parameters, "
            f"{served.memory / 2**20:.1f} MiB, {served.engine}"
        )
    tell(f"open {address}  (stop with Ctrl+C)")

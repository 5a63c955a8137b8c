"""Runs behind an HTTP address."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from seqloom.cli.output import tell
from seqloom.config.schema.names import EngineKind
from seqloom.serving.gate import Gate
from seqloom.serving.keys import Keys
from seqloom.serving.limits import changed_limits
from seqloom.serving.monitoring import Monitoring
from seqloom.serving.server import Address, Entrance, Sayings, free_address, run_server

if TYPE_CHECKING:
    from seqloom.serving.assembling import Assembled


def serve(
    what: tuple[Sequence[Path], EngineKind | None, Sequence[str]],
    where: tuple[str, int, int | None],
    keys: Path | None,
    limits: Sequence[str],
) -> None:
    """what: folders, --engine and --languages; where: --host, --port and --metrics-port."""
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    host, port, metrics_port = where
    bounds = changed_limits(limits)
    known = Keys() if keys is None else Keys.read(keys)
    address = free_address(host, port)
    gate, monitoring = Gate(bounds), Monitoring()
    monitoring.watch(gate)
    close_figures = None if metrics_port is None else monitoring.open(metrics_port)

    def load() -> "Assembled":
        from seqloom.serving.assembling import assemble  # which brings torch

        return assemble(what, (bounds, gate, known), monitoring)

    say = Sayings(
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


def _tell(assembled: "Assembled", address: Address) -> None:
    for served in assembled.service.catalogue.runs:
        pairs = ", ".join(map(str, served.pairs))
        languages = f" ({pairs})" if pairs else ""
        tell(
            f"{served.name}: {served.kind}{languages}, {served.parameters:,} parameters, "
            f"{served.memory / 2**20:.1f} MiB, {served.engine}"
        )
    tell(f"open {address}  (stop with Ctrl+C)")

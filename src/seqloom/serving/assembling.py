"""All that has to be loaded before anything can be answered: torch, the runs, and the routes."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from starlette.types import ASGIApp

from seqloom.config.schema.names import EngineKind
from seqloom.serving.batcher import Batcher
from seqloom.serving.gate import Gate
from seqloom.serving.keys import Keys
from seqloom.serving.limits import Limits
from seqloom.serving.monitoring import Monitoring
from seqloom.serving.served import load_catalogue
from seqloom.serving.service import Service


def leave_a_core() -> None:
    """To the event loop. Threads that share one with it wait for each other in every operation:
    answers take longer and fewer come. Whoever sets OMP_NUM_THREADS knows better."""
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, torch.get_num_threads() - 1))


@dataclass(frozen=True)
class Assembled:
    """What answers.

    worked: the routes of the application that make work, by their paths
    """

    service: Service
    app: ASGIApp
    worked: dict[str, Any]


def assemble(
    what: tuple[Sequence[Path], EngineKind | None, Sequence[str]],
    terms: tuple[Limits, Gate, Keys],
    monitoring: Monitoring,
) -> Assembled:
    """what: folders, --engine and --languages."""
    leave_a_core()
    limits, gate, keys = terms
    # Digests of files are compared while the routes are put together.
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(
            load_catalogue, *what, lambda name: Batcher(name, monitoring.batch(name))
        )
        from seqloom.serving.app import build_app, worked_routes

        service = Service(loading.result(), limits, gate, keys)
    return Assembled(service, build_app(service), worked_routes())

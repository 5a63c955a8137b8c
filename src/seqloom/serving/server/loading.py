"""Loads what requests need: torch, the runs, and the FastAPI application."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from starlette.types import ASGIApp

from seqloom.config.schema.names import EngineKind
from seqloom.core.device_setting import DEVICE_VARIABLE
from seqloom.core.threads import configured_threads
from seqloom.serving.server.admission import AdmissionControl
from seqloom.serving.server.api_keys import ApiKeys
from seqloom.serving.server.batcher import Batcher
from seqloom.serving.server.catalogue import load_catalogue
from seqloom.serving.server.limits import Limits
from seqloom.serving.server.monitoring import Monitoring
from seqloom.serving.server.service import Service
from seqloom.serving.server.translated_files import TranslatedFiles


def reserve_event_loop_core() -> None:
    """Reduce the number of torch threads by one, unless --threads or OMP_NUM_THREADS is set.

    This leaves one core to the event loop. Otherwise a torch thread would share its core with the
    event loop and become slower. In every operation, the other torch threads would wait for it.
    """
    if configured_threads() is None:
        torch.set_num_threads(max(1, torch.get_num_threads() - 1))


def select_gpu(index: int) -> None:
    """Select the GPU of a worker, if there are several GPUs and the user has not chosen a device.

    index: the index of the worker. Worker i uses GPU i modulo the number of GPUs.
    """
    if DEVICE_VARIABLE not in os.environ and torch.cuda.device_count() > 1:
        os.environ[DEVICE_VARIABLE] = f"cuda:{index % torch.cuda.device_count()}"


@dataclass(frozen=True)
class LoadedApp:
    """The application that processes requests after all runs are loaded.

    model_routes: the routes that run a model, by path
    """

    service: Service
    app: ASGIApp
    model_routes: dict[str, Any]


def load_app(
    folders: Sequence[Path],
    engine: EngineKind | None,
    languages: Sequence[str],
    *,
    settings: Sequence[str] = (),
    limits: Limits,
    admission: AdmissionControl,
    keys: ApiKeys,
    files_folder: Path,
    monitoring: Monitoring,
    root_path: str = "",
) -> LoadedApp:
    """Load the runs and build the application.

    engine:    value of --engine
    languages: values of --languages
    settings:  values of --set, for all runs
    files_folder: folder for translated files
    root_path: value of --root-path
    """
    reserve_event_loop_core()

    def create_batcher(run: str) -> Batcher:
        return Batcher(run, monitoring.batch_observer(run))

    # A second thread loads the runs while this thread imports the routes. Most of the time for
    # loading is spent on computing file digests.
    with ThreadPoolExecutor(1) as pool:
        catalogue = pool.submit(
            load_catalogue, folders, engine, languages, create_batcher, settings
        )
        from seqloom.serving.server.app import build_app, model_routes

        files = TranslatedFiles(files_folder, limits.files, limits.file_seconds)
        service = Service(catalogue.result(), limits, admission, files, keys)
    return LoadedApp(service, build_app(service, root_path), model_routes())

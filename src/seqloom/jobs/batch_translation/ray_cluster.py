"""Translates files on a Ray cluster, in blocks of texts, with Ray Data."""

import logging
import os
from collections.abc import Iterator
from typing import Any

from seqloom.core.device_setting import DEVICE_VARIABLE
from seqloom.core.errors import SeqloomError
from seqloom.core.extras import import_optional
from seqloom.jobs.batch_translation.block_translator import (
    BlockReport,
    BlockTranslator,
    FileEnd,
    Shard,
    TranslationJob,
)
from seqloom.jobs.batch_translation.input_files import Block

EMPTY_ROW = {"index": 0, "first": 0, "texts": [""], "blocks": 0, "unfinished": 0}
"""Default values of the columns. A row contains a `Block` or a `FileEnd`, but all rows must have
the same columns."""
LOCAL = "local"
"""The address that starts a cluster on this machine."""


def translate_with_ray(
    job: TranslationJob, files: list[int], address: str, workers: int | None, threads: int
) -> Iterator[BlockReport | FileEnd]:
    """Translate files in blocks on a Ray cluster. Yield a report for each block, in any order.

    One Ray task per file reads the file in blocks. Ray actors translate the blocks and write them
    to the output folder, which all machines share. If an actor ends, Ray restarts it and repeats
    its block. The end of a file is yielded as a `FileEnd`.

    files:   indices of the files
    address: address of the cluster, or "local" to start one on this machine
    workers: number of actors. Default: one per GPU; without GPUs, one per `threads` cores
    threads: number of cores of each actor
    """
    if not files:
        return
    # Ray would print an error about its own arguments, which Ray Data keeps for restarted actors.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    ray: Any = import_optional("ray", "cluster", "--ray")
    ray_data: Any = import_optional("ray.data", "cluster", "--ray")
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    job = job.with_absolute_paths()
    local_cores = None if workers is None else workers * threads
    ray.init(
        address=address,
        num_cpus=local_cores if address == LOCAL else None,
        log_to_driver=False,
        logging_level="ERROR",
        include_dashboard=False if address == LOCAL else None,
    )
    try:
        context = ray_data.DataContext.get_current()
        context.enable_progress_bars = False
        context.target_max_block_size = 1  # one row per Ray block: an actor gets each row at once
        resources = ray.cluster_resources()
        uses_gpus = os.environ.get(DEVICE_VARIABLE) != "cpu"
        gpus = int(resources.get("GPU", 0)) if uses_gpus else 0
        actors = workers or gpus or max(1, int(resources["CPU"]) // threads)
        rows = ray_data.from_items([{"file": file} for file in files]).flat_map(
            _BlockReader(job), num_cpus=0
        )
        reports = rows.map_batches(
            _RayTranslator,
            fn_constructor_args=(job, threads),
            batch_size=1,
            batch_format="pyarrow",
            compute=ray_data.ActorPoolStrategy(size=actors),
            num_cpus=threads,
            num_gpus=min(1, gpus / actors) if gpus else 0,
        )
        for row in reports.iter_rows():
            yield row["report"]
    except SeqloomError as error:
        # Ray adds the traceback of the task to the message. The cause is the original error.
        raise getattr(error, "cause", error) from None
    finally:
        ray.shutdown()


class _BlockReader:
    """Reads a file in a Ray task.

    Yields a row for each block that is not translated yet, then a row for the end of the file.
    """

    def __init__(self, job: TranslationJob) -> None:
        self._job = job

    def __call__(self, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for item in self._job.unfinished_blocks(row["file"], Shard()):
            yield {"kind": type(item).__name__, **EMPTY_ROW, **vars(item)}


class _RayTranslator:
    """A Ray actor that translates blocks of texts."""

    def __init__(self, job: TranslationJob, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        self._translator = BlockTranslator(job)

    def __call__(self, table: Any) -> dict[str, list[BlockReport | FileEnd]]:
        [row] = table.to_pylist()
        if row["kind"] == FileEnd.__name__:
            return {"report": [FileEnd(row["file"], row["blocks"], row["unfinished"])]}
        block = Block(row["file"], row["index"], row["first"], row["texts"])
        return {"report": [self._translator.translate(block)]}

"""Translates blocks with several processes on one machine."""

import multiprocessing
import os
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing.queues import SimpleQueue

import torch

from seqloom.core.device import best_device
from seqloom.core.device_setting import DEVICE_VARIABLE
from seqloom.core.errors import SeqloomError
from seqloom.core.threads import configured_threads, threads_of_new_processes, threads_per_process
from seqloom.jobs.batch_translation.block_translator import (
    BlockReport,
    BlockTranslator,
    FileEnd,
    TranslationJob,
)
from seqloom.jobs.batch_translation.input_files import Block
from seqloom.jobs.batch_translation.job_progress import JobProgress

MAX_FAILURES = 3
"""An error is raised when worker processes have ended this many times without finishing a block in
between."""

_translator: BlockTranslator | None = None
"""The translator of a worker process."""


def translate_blocks(
    job: TranslationJob,
    translator: BlockTranslator,
    progress: JobProgress,
    workers: int | None,
    ray: str | None,
) -> Iterable[BlockReport | FileEnd]:
    """Translate with this process, with worker processes, or with a Ray cluster.

    The input files are divided into blocks of lines. Returns an iterable over reports, one for each
    finished block. With Ray, it also contains a `FileEnd` object that marks the end of each file.

    workers: without Ray: number of worker processes. None: this process translates alone.
             With Ray: number of actors. None: as many actors as fit on the cluster
    ray:     address of a Ray cluster. None: do not use Ray
    """
    threads = threads_of_worker(workers)
    if ray is not None:
        from seqloom.jobs.batch_translation.ray_cluster import translate_with_ray

        return translate_with_ray(job, progress.unfinished_files, ray, workers, threads)
    if workers is not None and workers > 1:
        return translate_with_processes(job, progress.blocks(), workers, threads)
    return map(translator.translate, progress.blocks())


def threads_of_worker(workers: int | None) -> int:
    """Return the number of CPU threads of each worker.

    This is the value of --threads or OMP_NUM_THREADS. If neither is set, each worker gets an equal
    share of the cores that this process may use. If the number of workers is not given either, as
    is possible with Ray, each worker gets one thread.
    """
    if workers is None:
        return configured_threads() or 1
    return threads_per_process(workers)


def translate_with_processes(
    job: TranslationJob, blocks: Iterator[Block], workers: int, threads: int
) -> Iterator[BlockReport]:
    """Translate blocks with `workers` processes. Yield a report for each block, in any order.

    If a process ends, for example because the operating system stops it, new processes repeat the
    blocks that were not finished.

    threads: number of CPU threads of each process
    """
    pending: list[Block] = []
    failures = 0
    while True:
        try:
            with threads_of_new_processes(threads):
                for report in _translate_with_pool(job, blocks, pending, workers):
                    failures = 0
                    yield report
            return
        except BrokenProcessPool as error:
            failures += 1
            if failures == MAX_FAILURES:
                names = ", ".join(
                    f"{job.files[block.file].path} block {block.index}"
                    for block in pending[:workers]
                )
                raise SeqloomError(
                    f"worker processes ended {failures} times without finishing a block ({names}). "
                    "If the machine has too little memory, use fewer --workers. Finished blocks are "
                    "kept. To continue, run the same command again."
                ) from error


def _translate_with_pool(
    job: TranslationJob, blocks: Iterator[Block], pending: list[Block], workers: int
) -> Iterator[BlockReport]:
    """Translate the blocks in `pending`, then those of `blocks`. Yield a report for each block.

    The function appends each block that it takes from `blocks` to `pending`, and removes the block
    when it is finished. If a process ends early, `pending` therefore contains the blocks to repeat.
    There are at most two pending blocks per process, so memory use does not grow with the number of
    blocks.
    """
    context = multiprocessing.get_context("spawn")
    devices = context.SimpleQueue()
    for index in range(workers):
        devices.put(_device_of_worker(index))
    executor = ProcessPoolExecutor(workers, context, _load_translator, (job, devices))
    waiting = {executor.submit(_translate, block): block for block in pending}
    try:
        while True:
            for block in islice(blocks, 2 * workers - len(waiting)):
                pending.append(block)
                waiting[executor.submit(_translate, block)] = block
            if not waiting:
                return
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                report = future.result()
                pending.remove(waiting.pop(future))
                yield report
    finally:
        executor.shutdown(cancel_futures=True)


def _device_of_worker(index: int) -> str:
    """Return the device of a worker.

    If the user has chosen the CPU or one GPU, all workers use this device. Otherwise the workers
    get the GPUs in turn, or the CPU if there is no GPU.
    """
    device = best_device()
    if device.type == "cpu" or device.index is not None:
        return str(device)
    return f"cuda:{index % torch.cuda.device_count()}"


def _load_translator(job: TranslationJob, devices: "SimpleQueue[str]") -> None:
    """Load the run in a new worker process, on the next device of the queue `devices`."""
    global _translator
    # The main process handles Ctrl-C. Workers finish their block.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ[DEVICE_VARIABLE] = devices.get()
    _translator = BlockTranslator(job)


def _translate(block: Block) -> BlockReport:
    assert _translator is not None
    return _translator.translate(block)

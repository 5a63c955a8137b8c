"""The worker's side of a decoding measurement: decode batches for a time window, report counts."""

import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.comparison.time_window import peak_memory_mb
from bench.comparison.workload import Workload

TOKENS = 16
"""Length of every output: END is forbidden before, and decoding stops there."""
SENTENCES = 320

Decode = Callable[[list[list[int]], int], Any]
"""Decodes sources (ids without END) with a beam of the given width. A width of 1 is greedy."""


def serve(decode: Decode, workload: Workload, version: str, **more: Any) -> None:
    """Answer requests {"beam": k, "batch": n, "seconds": s} until stdin is closed."""
    import torch

    versions = {"version": version, "torch": torch.__version__}
    description = {**versions, "threads": torch.get_num_threads(), **more}
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sources = workload.ids("source")[:SENTENCES]
    print(json.dumps({"ready": description}), file=output, flush=True)
    for line in sys.stdin:
        counts = _decode_for(decode, sources, **json.loads(line))
        response = {**counts, "peak_memory_mb": peak_memory_mb()}
        print(json.dumps(response), file=output, flush=True)
    os._exit(0)


def _decode_for(
    decode: Decode, sources: list[list[int]], beam: int, batch: int, seconds: float
) -> dict[str, float]:
    """Decode the same batches in the same order for every system, in the order of the corpus."""
    starts = itertools.cycle(range(0, len(sources) - batch + 1, batch))
    decode(sources[:batch], beam)  # warm-up
    window_start = time.perf_counter()
    sentences = 0
    while time.perf_counter() < window_start + seconds:
        start = next(starts)
        decode(sources[start : start + batch], beam)
        sentences += batch
    return {"sentences": sentences, "seconds": time.perf_counter() - window_start}

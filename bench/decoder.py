"""The worker's side when decoding is measured: decode a batch again and again, count, answer."""

import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.window import peak_memory_mb
from bench.workload import Workload

TOKENS = 16
"""Every output has as many: END is forbidden before, and nothing comes after."""
SENTENCES = 320

Decode = Callable[[list[list[int]], int], Any]
"""Sources as ids without END, and the width of the beam; 1 is greedy search."""


def serve(decode: Decode, workload: Workload, **about: Any) -> None:
    """Answer {"beam": k, "batch": n, "seconds": s} until there is nobody left to answer to."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sources = workload.ids("source")[:SENTENCES]
    print(json.dumps({"ready": about}), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        answer = _decode_for(decode, sources, **asked)
        print(json.dumps({**answer, "peak_memory_mb": peak_memory_mb()}), file=answers, flush=True)
    os._exit(0)


def _decode_for(
    decode: Decode, sources: list[list[int]], beam: int, batch: int, seconds: float
) -> dict[str, float]:
    """The same batches in the same order for everybody, of sentences as they come."""
    starts = itertools.cycle(range(0, len(sources) - batch + 1, batch))
    decode(sources[:batch], beam)  # nobody is measured on the first time
    began = time.perf_counter()
    sentences = 0
    while time.perf_counter() < began + seconds:
        start = next(starts)
        decode(sources[start : start + batch], beam)
        sentences += batch
    return {"sentences": sentences, "seconds": time.perf_counter() - began}

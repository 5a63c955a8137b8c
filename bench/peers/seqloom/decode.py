"""`Run.translate` with the engine torch or compiled: text in, text out."""

import sys
import time
from pathlib import Path
from typing import Any

import torch

import seqloom
from bench.comparison.decoding_worker import TOKENS, serve
from bench.comparison.workload import Workload
from bench.peers.seqloom.random_run import random_run
from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig
from seqloom.inference.options import TEXT_ONLY


def main() -> None:
    workload = Workload.load(Path(sys.argv[1]))
    run = seqloom.load(random_run(workload), [f"engine.kind={sys.argv[2]}"])
    tokenizer = run.task.target_tokenizer  # both sides share one vocabulary
    texts: dict[tuple[int, ...], str] = {}

    def decode(sources: list[list[int]], beam: int) -> Any:
        inputs = []
        for source in map(tuple, sources):
            if source not in texts:
                texts[source] = tokenizer.decode(source)
            inputs.append(texts[source])
        return run.translate(
            inputs, decoding=forced_length(beam), attention=False, split=False, pass_through=False
        )

    start = time.perf_counter()
    for beam in (5, 1):  # compile before the measurement
        run.choose_engine(TEXT_ONLY, decoding=forced_length(beam))
    serve(
        decode,
        workload,
        seconds_to_prepare=time.perf_counter() - start,
        version=seqloom.__version__,
        torch=torch.__version__,
        threads=torch.get_num_threads(),
    )


def forced_length(beam: int) -> DecodingConfig:
    """Search for outputs of exactly TOKENS tokens: see random_run.py."""
    if beam == 1:
        return GreedyConfig(max_length=TOKENS)
    return BeamConfig(width=beam, max_length=TOKENS)


if __name__ == "__main__":
    main()

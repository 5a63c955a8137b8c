"""`Run.translate` by torch, as it is or compiled: text in, text out."""

import sys
import time
from pathlib import Path
from typing import Any

import torch

import seqloom
from bench.decoder import TOKENS, serve
from bench.peers.seqloom.random_run import random_run
from bench.workload import Workload
from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig
from seqloom.runs.options import TEXT_ONLY


def main() -> None:
    workload = Workload.load(Path(sys.argv[1]))
    run = seqloom.load(random_run(workload), [f"engine.kind={sys.argv[2]}"])
    tokenizer = run.task.target_tokenizer  # one vocabulary for both sides
    texts: dict[tuple[int, ...], str] = {}

    def decode(sources: list[list[int]], beam: int) -> Any:
        asked = []
        for source in map(tuple, sources):
            if source not in texts:
                texts[source] = tokenizer.decode(source)
            asked.append(texts[source])
        return run.translate(asked, decoding=forced(beam), attention=False)

    began = time.perf_counter()
    for beam in (5, 1):  # what has to be compiled is compiled before anybody is measured
        run.choose_engine(TEXT_ONLY, decoding=forced(beam))
    serve(
        decode,
        workload,
        seconds_to_prepare=time.perf_counter() - began,
        version=seqloom.__version__,
        torch=torch.__version__,
        threads=torch.get_num_threads(),
    )


def forced(beam: int) -> DecodingConfig:
    """Nothing ends before: see random_run.py."""
    if beam == 1:
        return GreedyConfig(max_length=TOKENS)
    return BeamConfig(width=beam, max_length=TOKENS)


if __name__ == "__main__":
    main()

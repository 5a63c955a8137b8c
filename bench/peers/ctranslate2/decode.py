"""CTranslate2 without seqloom: tokens in, tokens out, on the files of seqloom's engine."""

import sys
from pathlib import Path
from typing import Any

import ctranslate2
import torch

import seqloom
from bench.comparison.decoding_worker import TOKENS, serve
from bench.comparison.workload import END, Workload
from bench.peers.seqloom.random_run import random_run
from seqloom.inference.engine.convert import convert


def main() -> None:
    workload, precision = Workload.load(Path(sys.argv[1])), sys.argv[2]
    folder = workload.folder / f"ctranslate2-{precision}"
    if not folder.exists():
        folder.mkdir()
        convert(seqloom.load(random_run(workload)).model, folder, precision)
    translator = ctranslate2.Translator(
        str(folder), device="cpu", compute_type=precision, intra_threads=torch.get_num_threads()
    )

    def decode(sources: list[list[int]], beam: int) -> Any:
        return translator.translate_batch(
            [
                [str(token) for token in (*source, END)] for source in sources
            ],  # tokens are named by id
            beam_size=beam,
            max_decoding_length=TOKENS,
        )

    serve(
        decode, workload, version=ctranslate2.__version__, threads=torch.get_num_threads(), torch=""
    )


if __name__ == "__main__":
    main()

"""Marian's `generate`."""

import sys
from pathlib import Path
from typing import Any

import torch
import transformers

from bench.decoder import TOKENS, serve
from bench.peers.huggingface.model import build
from bench.peers.huggingface.train_loop import padded
from bench.workload import END, PAD, Workload


def main() -> None:
    workload = Workload.load(Path(sys.argv[1]))
    torch.manual_seed(workload.seed)
    model = build(workload, use_cache=True).eval()

    def decode(sources: list[list[int]], beam: int) -> Any:
        ids = padded([[*source, END] for source in sources], PAD)
        with torch.inference_mode():
            return model.generate(
                input_ids=ids,
                attention_mask=(ids != PAD).long(),
                num_beams=beam,
                do_sample=False,
                min_new_tokens=TOKENS,
                max_new_tokens=TOKENS,
            )

    serve(
        decode,
        workload,
        version=transformers.__version__,
        torch=torch.__version__,
        threads=torch.get_num_threads(),
    )


if __name__ == "__main__":
    main()

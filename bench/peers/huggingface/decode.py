"""`generate` of Hugging Face Marian."""

import sys
from pathlib import Path
from typing import Any

import torch
import transformers

from bench.comparison.decoding_worker import TOKENS, serve
from bench.comparison.workload import END, PAD, Workload
from bench.peers.huggingface.model import build_marian
from bench.peers.huggingface.train_loop import pad


def main() -> None:
    workload = Workload.load(Path(sys.argv[1]))
    torch.manual_seed(workload.seed)
    model = build_marian(workload, use_cache=True).eval()

    def decode(sources: list[list[int]], beam: int) -> Any:
        ids = pad([[*source, END] for source in sources], PAD)
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

"""Marian exported to ONNX by optimum, run by ONNX Runtime, searched by transformers' `generate`."""

import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from optimum.onnxruntime import ORTModelForSeq2SeqLM

from bench.decoder import TOKENS, serve
from bench.peers.huggingface.model import build
from bench.peers.huggingface.train_loop import padded
from bench.workload import END, PAD, Workload


def main() -> None:
    workload = Workload.load(Path(sys.argv[1]))
    model = exported(workload)

    def decode(sources: list[list[int]], beam: int) -> Any:
        ids = padded([[*source, END] for source in sources], PAD)
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
        version=version("onnxruntime"),
        torch=torch.__version__,
        threads=torch.get_num_threads(),
    )


def exported(workload: Workload) -> Any:
    """The export takes a minute and is kept."""
    folder = workload.folder / "onnx"
    if not folder.exists():
        torch.manual_seed(workload.seed)
        with tempfile.TemporaryDirectory() as place:
            build(workload, use_cache=True).eval().save_pretrained(place)
            ORTModelForSeq2SeqLM.from_pretrained(place, export=True).save_pretrained(folder)
    return ORTModelForSeq2SeqLM.from_pretrained(folder)


if __name__ == "__main__":
    main()

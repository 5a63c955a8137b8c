"""Marian exported to ONNX by optimum: ONNX Runtime computes, `generate` of transformers searches."""

import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from optimum.onnxruntime import ORTModelForSeq2SeqLM

from bench.comparison.decoding_worker import TOKENS, serve
from bench.comparison.workload import END, PAD, Workload
from bench.peers.huggingface.model import build_marian
from bench.peers.huggingface.train_loop import pad


def main() -> None:
    workload = Workload.load(Path(sys.argv[1]))
    model = load_exported(workload)

    def decode(sources: list[list[int]], beam: int) -> Any:
        ids = pad([[*source, END] for source in sources], PAD)
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


def load_exported(workload: Workload) -> Any:
    """Export the model, or load an earlier export. The export takes a minute."""
    folder = workload.folder / "onnx"
    if not folder.exists():
        torch.manual_seed(workload.seed)
        with tempfile.TemporaryDirectory() as temporary:
            build_marian(workload, use_cache=True).eval().save_pretrained(temporary)
            ORTModelForSeq2SeqLM.from_pretrained(temporary, export=True).save_pretrained(folder)
    return ORTModelForSeq2SeqLM.from_pretrained(folder)


if __name__ == "__main__":
    main()

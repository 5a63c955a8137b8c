"""`search` of Joey NMT."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from importlib_metadata import version
from joeynmt.batch import Batch
from joeynmt.config import parse_global_args
from joeynmt.data import load_data
from joeynmt.model import build_model
from joeynmt.search import search

from bench.comparison.decoding_worker import TOKENS, serve
from bench.comparison.workload import Workload
from bench.peers.joey.settings import settings


def main() -> None:
    workload = Workload.load(Path(sys.argv[1]))
    torch.manual_seed(workload.seed)
    with tempfile.TemporaryDirectory() as folder:
        arguments = parse_global_args(settings(workload, Path(folder)))
    vocabulary, targets, *_ = load_data(arguments.data, ["dev"])
    model = build_model(arguments.model, vocabulary, targets).eval()

    def decode(sources: list[list[int]], beam: int) -> Any:
        # Its ids differ, but their number is the same, and the weights are random.
        rows = [torch.tensor([*source, model.eos_index]) for source in sources]
        lengths = torch.tensor([len(row) for row in rows])
        batch = Batch(
            src=torch.nn.utils.rnn.pad_sequence(rows, True, model.pad_index),
            src_length=lengths,
            src_prompt_mask=None,
            trg=None,
            trg_prompt_mask=None,
            indices=torch.arange(len(rows)),
            device=torch.device("cpu"),
            pad_index=model.pad_index,
            eos_index=model.eos_index,
            is_train=False,
        )
        return search(
            model,
            batch,
            max_output_length=TOKENS,
            beam_size=beam,
            beam_alpha=1.0,
            min_output_length=TOKENS,
        )

    serve(
        decode,
        workload,
        version=version("joeynmt"),
        torch=torch.__version__,
        threads=torch.get_num_threads(),
    )


if __name__ == "__main__":
    main()

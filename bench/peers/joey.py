"""Joey NMT: its TrainManager, with a hook in its training step, and its `search`."""

import json
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
from joeynmt.training import TrainManager, train

from bench.comparison.decoding_worker import TOKENS, serve
from bench.comparison.time_window import TimeWindow, TokenCounts
from bench.comparison.workload import Workload

EVERYWHERE = "embedded input, sublayers' outputs, attention weights, inside the feed-forward"


def settings(workload: Workload, temporary: str) -> dict[str, Any]:
    """The content of its YAML configuration file."""
    model = json.loads(workload.fill(f"joey.{workload.family}.json"))
    return {**json.loads(workload.fill("joey.json", temporary)), "model": model}


def run_training(workload: Workload) -> None:
    window = TimeWindow()
    window.hook(
        TrainManager,
        "_train_step",
        # Its targets exclude START.
        lambda manager, batch: TokenCounts(
            int(batch.src_length.sum()), batch.src.numel(), int(batch.ntokens), batch.trg.numel()
        ),
        lambda manager: window.describe(
            manager.model,
            version("joeynmt"),
            "joeynmt.training.TrainManager",
            "token budget, in random order",
            "embedded input, before the readout" if workload.is_recurrent else EVERYWHERE,
        ),
    )
    with tempfile.TemporaryDirectory() as folder:
        train(rank=0, world_size=1, cfg=settings(workload, folder), skip_test=True)


def run_decoding(workload: Workload) -> None:
    torch.manual_seed(workload.seed)
    with tempfile.TemporaryDirectory() as folder:
        arguments = parse_global_args(settings(workload, folder))
    vocabulary, targets, *_ = load_data(arguments.data, ["dev"])
    model = build_model(arguments.model, vocabulary, targets).eval()

    def decode(sources: list[list[int]], beam: int) -> Any:
        # Its ids differ, but their number is the same, and the weights are random.
        rows = [torch.tensor([*source, model.eos_index]) for source in sources]
        batch = Batch(
            src=torch.nn.utils.rnn.pad_sequence(rows, True, model.pad_index),
            src_length=torch.tensor([len(row) for row in rows]),
            src_prompt_mask=None,
            trg=None,
            trg_prompt_mask=None,
            indices=torch.arange(len(rows)),
            device=torch.device("cpu"),
            pad_index=model.pad_index,
            eos_index=model.eos_index,
            is_train=False,
        )
        limits = {"max_output_length": TOKENS, "min_output_length": TOKENS}
        return search(model, batch, beam_size=beam, beam_alpha=1.0, **limits)

    serve(decode, workload, version("joeynmt"))


if __name__ == "__main__":
    run = run_decoding if "decode" in sys.argv[2:] else run_training
    run(Workload.load(Path(sys.argv[1])))

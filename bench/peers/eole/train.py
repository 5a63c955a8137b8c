"""Eole's own Trainer, watched where it takes a batch."""

import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from eole.bin.run.train import train
from eole.config.run import TrainConfig
from eole.trainer import Trainer

from bench.peers.opennmt.batches import counts
from bench.window import Window
from bench.workload import Workload

NEVER = 10**9


def main() -> None:
    window, workload = Window(), Workload.load(Path(sys.argv[1]))
    watch(window)
    with tempfile.TemporaryDirectory() as folder:
        train(TrainConfig(**settings(workload, Path(folder))))


def settings(workload: Workload, folder: Path) -> dict[str, Any]:
    """What would stand in its YAML file."""
    pieces = workload.folder / "pieces"
    vocabulary = folder / "vocabulary.txt"
    vocabulary.write_text("".join(f"{one}\n" for one in workload.pieces()[4:]), "utf-8")
    return {
        "seed": workload.seed,
        "src_vocab": str(vocabulary),
        "tgt_vocab": str(vocabulary),
        "share_vocab": True,
        "report_every": NEVER,
        "data": {
            name: {
                "path_src": str(pieces / f"{split}.source"),
                "path_tgt": str(pieces / f"{split}.target"),
            }
            for name, split in (("corpus", "train"), ("valid", "dev"))
        },
        "model": {
            "architecture": "transformer",
            "layers": workload.layers,
            "heads": workload.heads,
            "hidden_size": workload.width,
            "transformer_ff": workload.feedforward,
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "add_qkvbias": True,
            "add_final_linear_bias": True,
            "add_ffnbias": True,
            "embeddings": {
                "word_vec_size": workload.width,
                "position_encoding_type": "SinusoidalInterleaved",
            },
        },
        "training": {
            "model_path": str(folder / "model"),
            "compute_dtype": "fp32",
            "batch_type": "tokens",
            "batch_size": workload.batch_tokens,
            "normalization": "tokens",
            "dropout": [workload.dropout],
            "attention_dropout": [0.0],
            "optim": "adam",
            "adam_beta2": 0.98,
            "learning_rate": workload.learning_rate,
            "max_grad_norm": workload.clip,
            "train_steps": NEVER,
            "valid_steps": NEVER,
            "save_checkpoint_steps": NEVER,
            "start_decay_steps": NEVER,
            "num_workers": 0,
        },
    }


def watch(window: Window) -> None:
    """A batch is trained on when the step before it is done."""
    own_step = Trainer._train_step
    started = False

    def step(trainer: Trainer, batches: list[Any], *rest: Any, **more: Any) -> None:
        nonlocal started
        if not started:
            started = True
            announce(window, trainer)
        window.step()
        (batch,) = batches
        window.batch(counts(batch, trainer.train_loss.padding_idx))
        own_step(trainer, batches, *rest, **more)

    Trainer._train_step = step


def announce(window: Window, trainer: Trainer) -> None:
    window.ready(
        version=version("eole"),
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        parameters=sum(one.numel() for one in trainer.model.parameters()),
        loop="eole.trainer.Trainer",
        batching="token budget, like lengths together",
        dropout="embedded input, sublayers' outputs, inside the feed-forward",
    )


if __name__ == "__main__":
    main()

"""Eole's Trainer, with a hook in its training step."""

import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from eole.bin.run.train import train
from eole.config.run import TrainConfig
from eole.trainer import Trainer

from bench.comparison.time_window import TimeWindow
from bench.comparison.workload import Workload
from bench.peers.opennmt.batches import count_tokens

NEVER = 10**9


def main() -> None:
    window, workload = TimeWindow(), Workload.load(Path(sys.argv[1]))
    install_hook(window)
    with tempfile.TemporaryDirectory() as folder:
        train(TrainConfig(**settings(workload, Path(folder))))


def settings(workload: Workload, folder: Path) -> dict[str, Any]:
    """The content of its YAML configuration file."""
    pieces = workload.folder / "pieces"
    vocabulary = folder / "vocabulary.txt"
    vocabulary.write_text("".join(f"{piece}\n" for piece in workload.pieces()[4:]), "utf-8")
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


def install_hook(window: TimeWindow) -> None:
    """Replace the trainer's step method: a new step starts when the previous one is finished."""
    original_step = Trainer._train_step
    started = False

    def step(trainer: Trainer, batches: list[Any], *rest: Any, **more: Any) -> None:
        nonlocal started
        if not started:
            started = True
            send_ready(window, trainer)
        window.finish_step()
        (batch,) = batches
        window.add_batch(count_tokens(batch, trainer.train_loss.padding_idx))
        original_step(trainer, batches, *rest, **more)

    Trainer._train_step = step


def send_ready(window: TimeWindow, trainer: Trainer) -> None:
    window.ready(
        version=version("eole"),
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        parameters=sum(parameter.numel() for parameter in trainer.model.parameters()),
        loop="eole.trainer.Trainer",
        batching="token budget, similar lengths together",
        dropout="embedded input, sublayers' outputs, inside the feed-forward",
    )


if __name__ == "__main__":
    main()

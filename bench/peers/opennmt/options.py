"""The command line of OpenNMT-py for a workload."""

import json
from pathlib import Path

from bench.comparison.workload import Workload

NEVER = 10**9


def options(workload: Workload, folder: Path) -> list[str]:
    """The command-line options. OpenNMT-py reads the paths of the corpus from a configuration file."""
    pieces = workload.folder / "pieces"
    vocabulary = folder / "vocabulary.txt"
    # OpenNMT-py adds four special tokens.
    vocabulary.write_text("".join(f"{piece}\n" for piece in workload.pieces()[4:]), "utf-8")
    config = folder / "config.yaml"  # JSON is YAML
    corpora = {
        "corpus": {
            "path_src": str(pieces / "train.source"),
            "path_tgt": str(pieces / "train.target"),
        },
        "valid": {"path_src": str(pieces / "dev.source"), "path_tgt": str(pieces / "dev.target")},
    }
    config.write_text(json.dumps({"data": corpora}))
    values = {
        "config": config,
        "src_vocab": vocabulary,
        "tgt_vocab": vocabulary,
        "save_model": folder / "model",
        "src_vocab_size": NEVER,
        "tgt_vocab_size": NEVER,
        "hidden_size": workload.width,
        "word_vec_size": workload.width,
        "layers": workload.layers,
        "dropout": workload.dropout,
        "attention_dropout": 0.0,
        "batch_type": "tokens",
        "batch_size": workload.batch_tokens,
        "normalization": "tokens",
        "optim": "adam",
        "adam_beta2": 0.98,
        "learning_rate": workload.learning_rate,
        "max_grad_norm": workload.clip,
        "train_steps": NEVER,
        "valid_steps": NEVER,
        "save_checkpoint_steps": NEVER,
        "report_every": NEVER,
        "start_decay_steps": NEVER,
        "num_workers": 0,
        "seed": workload.seed,
    }
    arguments = [word for name, value in values.items() for word in (f"--{name}", str(value))]
    return arguments + (recurrent(workload) if workload.is_recurrent else transformer(workload))


def transformer(workload: Workload) -> list[str]:
    return (
        "--encoder_type transformer --decoder_type transformer --position_encoding "
        "--share_vocab --share_embeddings --share_decoder_embeddings --param_init_glorot "
        f"--heads {workload.heads} --transformer_ff {workload.feedforward}"
    ).split()


def recurrent(workload: Workload) -> list[str]:
    input_feed = int(workload.kind == "recurrent-feeding")
    return (
        "--encoder_type brnn --decoder_type rnn --rnn_type GRU --share_vocab "
        f"--global_attention general --input_feed {input_feed}"
    ).split()

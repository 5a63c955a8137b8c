"""The configuration of Joey NMT for a workload."""

from pathlib import Path
from typing import Any

from bench.comparison.workload import Workload

NEVER = 10**9


def settings(workload: Workload, model_folder: Path) -> dict[str, Any]:
    """The content of its YAML configuration file."""
    side = {
        "level": "word",  # the text is already split into pieces
        "lowercase": False,
        "voc_file": str(workload.folder / "vocabulary.txt"),
    }
    return {
        "name": "bench",
        "model_dir": str(model_folder),
        "use_cuda": False,
        "random_seed": workload.seed,
        "data": {
            "train": str(workload.folder / "pieces" / "train"),
            "dev": str(workload.folder / "pieces" / "dev"),
            "dataset_type": "plain",
            "src": {"lang": "source", **side},
            "trg": {"lang": "target", **side},
        },
        "testing": {"beam_size": 1, "batch_size": 64},
        "training": {
            "optimizer": "adamw",
            "adam_betas": [0.9, 0.98],
            "learning_rate": workload.learning_rate,
            "learning_rate_min": 0.0,
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": 1000,
            "normalization": "tokens",
            "clip_grad_norm": workload.clip,
            "batch_size": workload.batch_tokens,
            "batch_type": "token",
            "epochs": NEVER,
            "validation_freq": NEVER,
            "logging_freq": NEVER,
        },
        "model": recurrent(workload) if workload.is_recurrent else transformer(workload),
    }


def transformer(workload: Workload) -> dict[str, Any]:
    part = {
        "type": "transformer",
        "num_layers": workload.layers,
        "num_heads": workload.heads,
        "embeddings": {
            "embedding_dim": workload.width,
            "scale": True,
            "dropout": workload.dropout,
        },
        "hidden_size": workload.width,
        "ff_size": workload.feedforward,
        "dropout": workload.dropout,
        "layer_norm": "pre",
    }
    return {
        "tied_embeddings": True,
        "tied_softmax": True,
        "initializer": "xavier_uniform",
        "embed_initializer": "xavier_uniform",
        "encoder": part,
        "decoder": part,
    }


def recurrent(workload: Workload) -> dict[str, Any]:
    part = {
        "type": "recurrent",
        "rnn_type": "gru",
        "num_layers": workload.layers,
        "embeddings": {
            "embedding_dim": workload.width,
            "scale": False,
            "dropout": workload.dropout,
        },
    }
    return {
        "tied_embeddings": False,
        "tied_softmax": False,
        "initializer": "xavier_uniform",
        "embed_initializer": "xavier_uniform",
        "encoder": {**part, "hidden_size": workload.width // 2, "bidirectional": True},
        "decoder": {
            **part,
            "hidden_size": workload.width,
            "hidden_dropout": workload.dropout,
            "init_hidden": "bridge",
            "attention": "luong",
            "input_feeding": workload.kind == "recurrent-feeding",
        },
    }

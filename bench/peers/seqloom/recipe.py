"""The recipe of seqloom for a workload."""

from typing import Any

from bench.comparison.workload import Workload
from seqloom.config.schema.recipe import RunConfig

NEVER = 10**9


def config_for(workload: Workload, data: dict[str, Any]) -> RunConfig:
    """A recipe that trains without evaluations and checkpoints."""
    tokenizer = {"kind": "subwords", "algorithm": "bpe", "size": workload.vocabulary}
    return RunConfig.model_validate(
        {
            "data": data,
            "text": {"tokenizer": tokenizer, "shared": True},
            "model": _recurrent(workload) if workload.is_recurrent else _transformer(workload),
            "training": {
                "steps": NEVER,
                "batch_tokens": workload.batch_tokens,
                "clip": workload.clip,
                "optimizer": {"learning_rate": workload.learning_rate},
                "schedule": {"kind": "constant", "warmup": 100},
                "precision": "fp32",
                "seed": workload.seed,
                "evaluate_every": NEVER,
                "checkpoint_every": NEVER,
            },
        }
    )


def _transformer(workload: Workload) -> dict[str, Any]:
    part = {
        "kind": "transformer",
        "width": workload.width,
        "layers": workload.layers,
        "feedforward": workload.feedforward,
        "attention": {
            "score": {"kind": "dot"},
            "projection": "linear",
            "values": "learned",
            "heads": workload.heads,
            "output_projection": True,
        },
        "dropout": workload.dropout,
    }
    return {"tie": "all", "encoder": part, "decoder": part}


def _recurrent(workload: Workload) -> dict[str, Any]:
    embedding = {"kind": "learned", "width": workload.width}
    encoder = {
        "kind": "recurrent",
        "cell": "gru",
        "width": workload.width // 2,
        "layers": workload.layers,
        "direction": "both",
        "embedding": embedding,
        "dropout": 0.0,  # as in OpenNMT-py
    }
    decoder = {
        "kind": "recurrent",
        "cell": "gru",
        "width": workload.width,
        "layers": workload.layers,
        "embedding": embedding,
        "attention": {"kind": "attention", "score": {"kind": "bilinear"}},
        "context": ["input", "readout"] if workload.kind == "recurrent-feeding" else ["readout"],
        "readout": "tanh",
        "dropout": workload.dropout,
    }
    return {"tie": "none", "encoder": encoder, "decoder": decoder}

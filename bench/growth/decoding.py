"""Decoding against output length and beam width, attention against the length of a sequence."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Padded
from seqloom.core.signature import Signature, Tokens
from seqloom.decoding.beam import Beam
from seqloom.decoding.rules import Rules
from seqloom.decoding.search import SearchRequest
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model

LENGTHS = (16, 32, 64, 128, 256)
WIDTHS = (1, 2, 4, 8, 16)
SPANS = (128, 256, 512, 1_024, 2_048)
SOURCES, READ = 8, 20
PARTS: dict[str, dict[str, Any]] = {
    "transformer": {"kind": "transformer", "width": 128, "layers": 2, "feedforward": 512},
    "recurrent": {"kind": "recurrent", "width": 128},
}


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The fastest of a few goes, after one that is not counted."""
    work()
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)


def measure() -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found: dict[str, Any] = {}
    for kind, part in PARTS.items():
        config = ModelConfig.model_validate({"encoder": part, "decoder": part})
        model = build_model(config, Signature(Tokens(2_000), Tokens(2_000), shared=True)).eval()
        by_length = [seconds(partial(_decode, model, 4, n)) for n in LENGTHS]
        by_width = [seconds(partial(_decode, model, k, 64)) for k in WIDTHS]
        found[kind] = {
            "output length": {"sizes": LENGTHS, "seconds": by_length},
            "beam width": {"sizes": WIDTHS, "seconds": by_width},
        }
        if kind == "transformer":
            by_span = [seconds(partial(_encode, model, n)) for n in SPANS]
            found["attention"] = {"source length": {"sizes": SPANS, "seconds": by_span}}
    return found


@torch.inference_mode()
def _decode(model: Model, width: int, length: int) -> None:
    """Outputs of exactly this length: END is forbidden until the last position."""
    source = Padded(torch.full((SOURCES, READ), 5), torch.full((SOURCES,), READ))
    search = Beam(width, width, 1.0, Rules(min_length=length - 1))
    search(model.decoder, model.encode(source, SOURCES), SearchRequest([length] * SOURCES))


@torch.inference_mode()
def _encode(model: Model, length: int) -> None:
    """A whole encoder: what is linear in the length is part of it."""
    model.encode(Padded(torch.full((1, length), 5), torch.tensor([length])), 1)

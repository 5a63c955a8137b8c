"""Decoding time as a function of output length and beam width, encoding time of source length."""

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

OUTPUT_LENGTHS = (16, 32, 64, 128, 256)
BEAM_WIDTHS = (1, 2, 4, 8, 16)
SOURCE_LENGTHS = (128, 256, 512, 1_024, 2_048)
SOURCES, SOURCE_LENGTH = 8, 20
MODELS: dict[str, dict[str, Any]] = {
    "transformer": {"kind": "transformer", "width": 128, "layers": 2, "feedforward": 512},
    "recurrent": {"kind": "recurrent", "width": 128},
}


def minimum_time(call: Callable[[], object], repeats: int = 3) -> float:
    """The minimum time of a call in seconds, after one warm-up call."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def measure() -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    results: dict[str, Any] = {}
    for kind, settings in MODELS.items():
        config = ModelConfig.model_validate({"encoder": settings, "decoder": settings})
        model = build_model(config, Signature(Tokens(2_000), Tokens(2_000), shared=True)).eval()
        by_length = [minimum_time(partial(_decode, model, 4, n)) for n in OUTPUT_LENGTHS]
        by_width = [minimum_time(partial(_decode, model, k, 64)) for k in BEAM_WIDTHS]
        results[kind] = {
            "output length": {"sizes": OUTPUT_LENGTHS, "seconds": by_length},
            "beam width": {"sizes": BEAM_WIDTHS, "seconds": by_width},
        }
        if kind == "transformer":
            by_source = [minimum_time(partial(_encode, model, n)) for n in SOURCE_LENGTHS]
            results["attention"] = {
                "source length": {"sizes": SOURCE_LENGTHS, "seconds": by_source}
            }
    return results


@torch.inference_mode()
def _decode(model: Model, width: int, length: int) -> None:
    """Decode outputs of exactly this length: END is forbidden before the last position."""
    source = Padded(torch.full((SOURCES, SOURCE_LENGTH), 5), torch.full((SOURCES,), SOURCE_LENGTH))
    search = Beam(width, width, rules=Rules(min_length=length - 1))
    search(model.decoder, model.encode(source, SOURCES), SearchRequest([length] * SOURCES))


@torch.inference_mode()
def _encode(model: Model, length: int) -> None:
    """Run the complete encoder, including its parts with linear cost."""
    model.encode(Padded(torch.full((1, length), 5), torch.tensor([length])), 1)

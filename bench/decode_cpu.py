"""Time decoding on a CPU, alternating with Hugging Face Marian `generate` if it is installed.

    python -m bench.decode_cpu [OUT.json]

Both models have the same size and random weights, and all outputs have the same forced length.
The result is the median time of each.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from bench.marian import MarianSize, build_marian
from seqloom.config.schema.decoding import BeamConfig, GreedyConfig
from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Padded
from seqloom.core.signature import Signature, Tokens
from seqloom.decoding.build import build_search
from seqloom.decoding.search import SearchRequest
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model


@dataclass(frozen=True)
class DecodingShape:
    """The size of a Transformer, its sources and its outputs.

    tokens: length of each output, without END
    """

    layers: int = 3
    width: int = 256
    heads: int = 4
    feedforward: int = 1024
    vocabulary: int = 8000
    source_length: int = 16
    tokens: int = 16


SMALL = DecodingShape()
BASE = DecodingShape(layers=6, width=512, heads=8, feedforward=2048, vocabulary=10_000)


def seqloom_model(shape: DecodingShape) -> Model:
    """The original Transformer (post-norm, ReLU, tied embeddings) with random weights."""
    part = {
        "kind": "transformer",
        "layers": shape.layers,
        "width": shape.width,
        "feedforward": shape.feedforward,
        "norm": "post",
        "attention": {
            "kind": "attention",
            "score": {"kind": "dot", "scale": "sqrt"},
            "projection": "linear",
            "values": "learned",
            "heads": shape.heads,
            "output_projection": True,
        },
    }
    config = ModelConfig.model_validate({"encoder": part, "decoder": part, "tie": "all"})
    ids = Tokens(shape.vocabulary)
    torch.manual_seed(0)
    return build_model(config, Signature(ids, ids, True)).eval().requires_grad_(False)


def random_sources(shape: DecodingShape, batch: int) -> Padded:
    generator = torch.Generator().manual_seed(1)
    size = (batch, shape.source_length)
    values = torch.randint(4, shape.vocabulary, size, generator=generator)
    return Padded(values, torch.full((batch,), shape.source_length))


def make_seqloom_decode(shape: DecodingShape, batch: int, beam: int) -> Callable[[], Any]:
    """A function that encodes and decodes one batch. A beam of 1 is greedy search."""
    model, source = seqloom_model(shape), random_sources(shape, batch)
    limits: dict[str, Any] = {"min_length": shape.tokens, "max_length": shape.tokens + 1}
    search = build_search(GreedyConfig(**limits) if beam == 1 else BeamConfig(width=beam, **limits))
    request = SearchRequest([shape.tokens] * batch)

    def decode() -> Any:
        with torch.inference_mode():
            return search(model.decoder, model.encode(source, batch), request)

    return decode


def marian_model(shape: DecodingShape) -> Any:
    """The same Transformer in Hugging Face transformers."""
    size = MarianSize(
        shape.vocabulary, shape.width, shape.layers, shape.heads, shape.feedforward, dropout=0.0
    )
    torch.manual_seed(0)
    return build_marian(size).eval().requires_grad_(False)


def make_marian_decode(shape: DecodingShape, batch: int, beam: int) -> Callable[[], Any]:
    """The same function for Hugging Face transformers."""
    model = marian_model(shape)
    source = random_sources(shape, batch)

    def decode() -> Any:
        with torch.inference_mode():
            return model.generate(
                input_ids=source.values,
                attention_mask=source.mask.long(),
                num_beams=beam,
                do_sample=False,
                use_cache=True,
                min_new_tokens=shape.tokens,
                max_new_tokens=shape.tokens,
            )

    return decode


def median_times(calls: dict[str, Callable[[], Any]], seconds: float = 6.0) -> dict[str, float]:
    """The median time of each call in seconds. After a warm-up the calls alternate for `seconds`."""
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, times.values())) < 3:
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def compare(shape: DecodingShape, batch: int, beam: int, with_marian: bool) -> dict[str, float]:
    calls = {"seqloom": make_seqloom_decode(shape, batch, beam)}
    if with_marian:
        calls["marian"] = make_marian_decode(shape, batch, beam)
    return median_times(calls)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--alone", action="store_true", help="measure seqloom without Hugging Face")
    arguments = parser.parse_args()
    rows = []
    for batch, beam in [(32, 5), (32, 1), (1, 5), (1, 1)]:
        seconds = compare(SMALL, batch, beam, not arguments.alone)
        rows.append({"batch": batch, "beam": beam, "seconds": seconds, **asdict(SMALL)})
        text = ", ".join(f"{name} {1000 * value:.1f} ms" for name, value in seconds.items())
        ratio = seconds.get("marian", 0.0) / seconds["seqloom"]
        print(f"batch {batch}, beam {beam}: {text}; speed-up {ratio:.2f}", flush=True)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

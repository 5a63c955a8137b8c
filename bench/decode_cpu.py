"""Time decoding on this machine's CPU, beside Hugging Face Marian `generate` if it is installed.

    python -m bench.decode_cpu [OUT.json]

Random weights of one shape on both sides and outputs of a forced length, so that nothing but the
work itself is timed. The two take turns, and the median of each is given.
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

from bench.peer_gpu import MarianSize, marian
from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig
from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Padded
from seqloom.core.signature import Signature, Tokens
from seqloom.decoding.build import build_search
from seqloom.decoding.search import SearchRequest
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model


@dataclass(frozen=True)
class Shape:
    """A Transformer, and what it has to decode."""

    layers: int = 3
    width: int = 256
    heads: int = 4
    feedforward: int = 1024
    vocabulary: int = 8000
    source_length: int = 16
    tokens: int = 16
    """Put out for each source, END never among them."""


SMALL = Shape()
BASE = Shape(layers=6, width=512, heads=8, feedforward=2048, vocabulary=10_000)


def seqloom_model(shape: Shape) -> Model:
    """The Transformer of the paper (post-norm, ReLU, one embedding), with random weights."""
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
            "merge": True,
        },
    }
    config = ModelConfig.model_validate({"encoder": part, "decoder": part, "tie": "all"})
    ids = Tokens(shape.vocabulary)
    torch.manual_seed(0)
    return build_model(config, Signature(ids, ids, True)).eval().requires_grad_(False)


def some_sources(shape: Shape, batch: int) -> Padded:
    generator = torch.Generator().manual_seed(1)
    size = (batch, shape.source_length)
    values = torch.randint(4, shape.vocabulary, size, generator=generator)
    return Padded(values, torch.full((batch,), shape.source_length))


def seqloom_decoding(shape: Shape, batch: int, beam: int) -> Callable[[], Any]:
    """A call that reads and decodes one batch; a beam of 1 is greedy search."""
    model, source = seqloom_model(shape), some_sources(shape, batch)
    limits: dict[str, Any] = {"min_length": shape.tokens, "max_length": shape.tokens + 1}
    config: DecodingConfig = (
        GreedyConfig(**limits) if beam == 1 else BeamConfig(width=beam, **limits)
    )
    search = build_search(config)
    request = SearchRequest([shape.tokens] * batch)

    def decode() -> Any:
        with torch.inference_mode():
            return search(model.decoder, model.encode(source, batch), request)

    return decode


def marian_model(shape: Shape) -> Any:
    """The same Transformer of Hugging Face transformers."""
    size = MarianSize(
        shape.vocabulary, shape.width, shape.layers, shape.heads, shape.feedforward, dropout=0.0
    )
    torch.manual_seed(0)
    return marian(size).eval().requires_grad_(False)


def marian_decoding(shape: Shape, batch: int, beam: int) -> Callable[[], Any]:
    """The same work for Hugging Face transformers."""
    model = marian_model(shape)
    source = some_sources(shape, batch)

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


def medians(calls: dict[str, Callable[[], Any]], seconds: float = 6.0) -> dict[str, float]:
    """The median time of each call, in seconds; they take turns for this long, after one each."""
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, times.values())) < 3:
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(each) for name, each in times.items()}


def compare(shape: Shape, batch: int, beam: int, peers: bool) -> dict[str, float]:
    calls = {"seqloom": seqloom_decoding(shape, batch, beam)}
    if peers:
        calls["marian"] = marian_decoding(shape, batch, beam)
    return medians(calls)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--alone", action="store_true", help="without Hugging Face")
    arguments = parser.parse_args()
    rows = []
    for batch, beam in [(32, 5), (32, 1), (1, 5), (1, 1)]:
        found = compare(SMALL, batch, beam, not arguments.alone)
        rows.append({"batch": batch, "beam": beam, "seconds": found, **asdict(SMALL)})
        text = ", ".join(f"{name} {1000 * each:.1f} ms" for name, each in found.items())
        ratio = found.get("marian", 0.0) / found["seqloom"]
        print(f"batch {batch}, beam {beam}: {text}; {ratio:.2f} times as fast", flush=True)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

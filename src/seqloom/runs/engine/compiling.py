"""The engine 'compiled': torch's own search for one input at a time, as compiled code."""

import time
from collections.abc import Iterator

import torch

from seqloom.config.decoding import DecodingConfig, SearchConfig
from seqloom.core.errors import ConfigError
from seqloom.core.sequences import Images, Padded, Source
from seqloom.core.signature import Pixels, Signature
from seqloom.decoding.beam import Beam
from seqloom.decoding.build import build_search
from seqloom.decoding.compiled import Compiled
from seqloom.decoding.greedy import Greedy
from seqloom.models.interface import StaticDecoder
from seqloom.models.seq2seq import Model
from seqloom.runs.wish import Wish


def compiled_reasons(
    model: Model, decoding: DecodingConfig, wish: Wish, on_cpu: bool
) -> Iterator[str]:
    """What of this request compiled code cannot do; nothing if it can do all."""
    if not on_cpu:
        yield "there is a GPU, on which torch records its searches anyway"
    if model.encoder is None:
        yield "a language model has no source, and stays on torch"
    if not isinstance(model.decoder, StaticDecoder):
        kind = type(model.decoder).__name__
        yield f"the steps of this decoder ({kind}) are not the same operations every time"
    if decoding.kind not in ("greedy", "beam"):
        yield f"decoding.kind: '{decoding.kind}' is done by torch alone"
    if wish.attention:
        yield "attention: where every layer and head looked is known to torch alone"


def compile_search(model: Model, signature: Signature, decoding: SearchConfig) -> float:
    """Compile the steps of a search over a model -> seconds that it took."""
    search = build_search(decoding)
    assert isinstance(search, Greedy | Beam), "nothing else is compiled"
    began = time.perf_counter()
    with torch.inference_mode():
        memory = model.encode(_something_to_read(signature), 1)
    try:
        Compiled(search).prepare(model.decoder, memory)
    except RuntimeError as error:  # torch's own, from half a dozen places and without a common name
        said = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
        raise ConfigError(
            f"the engine 'compiled' could not compile a step of this model: {said.strip()}\n"
            "It needs a C++ compiler (on Debian: apt-get install g++); without one use --engine "
            "auto or torch (engine='auto' in Python)."
        ) from error
    return time.perf_counter() - began


def _something_to_read(signature: Signature) -> Source:
    """One input that any model of this kind can read."""
    if isinstance(signature.source, Pixels):
        pixels = signature.source
        size = (1, pixels.channels, pixels.height, pixels.width)
        return Images(torch.zeros(size, dtype=torch.uint8))
    return Padded(torch.full((1, 2), 4), torch.full((1,), 2))

"""The engine 'compiled': a torch search with a compiled decoder step.

It decodes one input at a time.
"""

import time
from collections.abc import Iterator

import torch

from seqloom.config.schema.decoding import DecodingConfig, SearchConfig
from seqloom.core.errors import ConfigError
from seqloom.core.signature import Signature
from seqloom.decoding.beam import Beam
from seqloom.decoding.build import build_search
from seqloom.decoding.fast.compiled import CompiledSearch, unsupported_reason
from seqloom.decoding.greedy import Greedy
from seqloom.inference.options import PredictionOptions
from seqloom.models.interface import StaticDecoder
from seqloom.models.seq2seq import Model


def unsupported_by_compiled(
    model: Model, decoding: DecodingConfig, options: PredictionOptions, on_cpu: bool
) -> Iterator[str]:
    """Yield the reasons why the compiled engine cannot serve this request.

    Yields nothing if the engine can serve it.
    """
    if reason := unsupported_reason():
        yield reason
    if not on_cpu:
        yield "on a GPU, torch already replays searches as CUDA graphs"
    if model.encoder is None:
        yield "a language model has no source and runs on torch"
    if not isinstance(model.decoder, StaticDecoder):
        kind = type(model.decoder).__name__
        yield f"the decoder ({kind}) does not run the same operations at every step"
    if decoding.kind not in ("greedy", "beam"):
        yield f"decoding.kind: '{decoding.kind}' runs only on torch"
    if decoding.rules:
        yield "decoding.rules: rules outside seqloom cannot be compiled"
    if options.stores_attention:
        yield "attention: only torch returns the weights of all layers and heads"


def compile_search(model: Model, signature: Signature, decoding: SearchConfig) -> float:
    """Compile the decoder step of a search. Returns the compilation time in seconds."""
    search = build_search(decoding)
    assert isinstance(search, Greedy | Beam), "only greedy and beam search can be compiled"
    start = time.perf_counter()
    with torch.inference_mode():
        memory = model.encode(signature.source.blank(1, 2), 1)
    try:
        CompiledSearch(search).prepare(model.decoder, memory)
    except RuntimeError as error:  # torch raises various subclasses of RuntimeError
        reason = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
        raise ConfigError(
            f"the engine 'compiled' failed to compile the decoder step: {reason.strip()}\n"
            "It needs a C++ compiler (on Debian: apt-get install g++); without one, use --engine "
            "auto or torch (engine='auto' in Python)."
        ) from error
    return time.perf_counter() - start

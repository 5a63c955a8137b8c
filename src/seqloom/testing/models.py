"""Checks for attention scores, encoders and decoders outside seqloom."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from seqloom.config.schema.attention import AttentionConfig, ScoreExtensionConfig
from seqloom.config.schema.encoder_decoder import DecoderExtensionConfig, EncoderExtensionConfig
from seqloom.config.schema.model import ModelConfig
from seqloom.config.schema.recurrent import RecurrentDecoderConfig
from seqloom.core.batch import Padded
from seqloom.core.signature import NoSource, Signature, Tokens
from seqloom.models.build import build_encoder
from seqloom.models.check_extension import check_extension_decoder
from seqloom.models.interface import DecoderModule, Memory
from seqloom.nn.build import build_score
from seqloom.testing.settings import section_of
from seqloom.text.vocabulary import START

VOCABULARY = 13
LENGTHS = (5, 2, 4)
"""Number of tokens of each source of the test batch."""
STEPS = 6
TOLERANCE = 1e-4
"""Two results count as equal if they differ by at most this number, because of rounding."""


def check_score(score: Callable[..., Any], width: int = 8, heads: int = 2, **settings: Any) -> None:
    """Check an attention score, a subclass of `seqloom.nn.AttentionScore`.

    - the scores have the shape (B, H, T, S)
    - the score of a query and a key depends on no other query, key or row of the batch. Otherwise
      padding would change outputs, and decoding would differ from training. Scores that depend on
      positions (`is_positional` is True) are not checked for this
    - scores and gradients are finite, also for vectors of zeros
    - if `is_product` is True, the score is q · `prepare(k)` / `divisor`

    width:    width of the queries and keys of one head
    settings: settings of the score in a recipe
    """
    section = section_of(ScoreExtensionConfig, score, settings)
    torch.manual_seed(0)
    built = build_score(AttentionConfig(score=section, heads=heads), width, width).eval()
    queries = torch.randn(3, heads, 4, width, requires_grad=True)
    keys = torch.randn(3, heads, 5, width, requires_grad=True)
    scores = built(queries, keys)
    assert scores.shape == (3, heads, 4, 5), f"the shape is {tuple(scores.shape)}"
    parts = {
        "the other keys": (built(queries, keys[:, :, :3]), scores[..., :3]),
        "the other queries": (built(queries[:, :, :1], keys), scores[:, :, :1]),
        "the other rows of the batch": (built(queries[1:2], keys[1:2]), scores[1:2]),
    }
    if not built.is_positional:
        for other, (alone, together) in parts.items():
            _assert_equal(alone, together, f"the score of a query and a key depends on {other}")
    for name, inputs in {"random": (queries, keys), "zero": (0 * queries, 0 * keys)}.items():
        result = built(*inputs)
        gradients = torch.autograd.grad(result.sum(), (queries, keys), allow_unused=True)
        for values in (result, *(each for each in gradients if each is not None)):
            assert values.isfinite().all(), f"scores or gradients of {name} vectors are not finite"
    if built.is_product:
        product = queries @ built.prepare(keys).transpose(-2, -1) / built.divisor
        _assert_equal(product, scores, "is_product is True, but the score is no dot product")


def check_encoder(encoder: Callable[..., Any], **settings: Any) -> None:
    """Check an encoder of tokens, a subclass of `seqloom.models.EncoderModule`.

    - states, mask and summary have the shapes that `Memory` describes
    - neither the number of padding positions nor their contents change states or summary
    - the result for a source does not depend on the rest of the batch

    settings: settings of the encoder in a recipe
    """
    section = section_of(EncoderExtensionConfig, encoder, settings)
    torch.manual_seed(0)
    signature = Signature(Tokens(VOCABULARY), Tokens(VOCABULARY), shared=False)
    model = ModelConfig(encoder=section, decoder=RecurrentDecoderConfig())
    built = build_encoder(model, signature)
    assert built is not None
    built.eval()
    source = _source()
    with torch.no_grad():
        memory = built(source)
        more_padding = torch.nn.functional.pad(source.values, (0, 3), value=VOCABULARY - 1)
        padded = built(Padded(more_padding, source.lengths))
        first = built(Padded(source.values[:1], source.lengths[:1]))
    assert memory.mask.equal(source.mask), "the mask must be True exactly at real positions"
    is_real = source.mask.unsqueeze(-1)
    length = source.values.shape[1]
    _assert_equal(
        padded.states[:, :length] * is_real, memory.states * is_real, "padding changes states"
    )
    _assert_equal(padded.summary, memory.summary, "padding changes the summary")
    _assert_equal(first.states, memory.states[:1], "states depend on the rest of the batch")
    _assert_equal(first.summary, memory.summary[:1], "the summary depends on the rest of the batch")


def check_decoder(
    decoder: Callable[..., Any], encoder_width: int = 8, has_source: bool = True, **settings: Any
) -> None:
    """Check a decoder of tokens, a subclass of `seqloom.models.DecoderModule`.

    - `start` and `step` return the same logits as `forward`
    - logits do not depend on later tokens
    - padding of the source does not change logits
    - the logits of a source do not change after `State.keep_sources` has removed other sources, or
      `State.select` has repeated its hypothesis

    encoder_width: width of the encoder's states
    has_source:    False for a decoder of language models, which have no encoder
    settings:      settings of the decoder in a recipe
    """
    section = section_of(DecoderExtensionConfig, decoder, settings)
    torch.manual_seed(0)
    tokens = Tokens(VOCABULARY)
    signature = Signature(tokens if has_source else NoSource(), tokens, shared=False)
    width = encoder_width if has_source else 0
    built = section.build_part(target=tokens, signature=signature, encoder_width=width)
    check_extension_decoder(built, section.kind, signature, None)
    built.eval()
    memory = _memory(width)
    inputs = torch.randint(4, VOCABULARY, (len(LENGTHS), STEPS))
    inputs[:, 0] = START
    with torch.no_grad():
        expected = built(inputs, memory).logits()
        shape = (len(LENGTHS), STEPS, VOCABULARY)
        assert expected.shape == shape, f"the shape of the logits is {tuple(expected.shape)}"
        _assert_equal(_step(built, inputs, memory), expected, "`step` differs from `forward`")
        changed = inputs.clone()
        changed[:, 3:] = START
        early = built(changed, memory).logits()[:, :3]
        _assert_equal(early, expected[:, :3], "logits depend on later tokens")
        if has_source:
            garbage = memory.states.masked_fill(~memory.mask.unsqueeze(-1), 1e3)
            other = replace(memory, states=garbage)
            _assert_equal(built(inputs, other).logits(), expected, "padding changes `forward`")
            _assert_equal(_step(built, inputs, other), expected, "padding changes `step`")
        _check_selection(built, inputs, memory, expected)


def _check_selection(
    decoder: DecoderModule, inputs: Tensor, memory: Memory, expected: Tensor
) -> None:
    """Check that logits do not change if a search drops sources and repeats hypotheses."""
    state = decoder.start(memory, STEPS)
    state = decoder.step(inputs[:, 0], state).state
    sources = torch.tensor([0, 2])
    kept = state.keep_sources(sources).select(sources)
    twice = kept.select(torch.tensor([0, 0, 1, 1]))  # two hypotheses of each source
    logits = decoder.step(inputs[sources, 1].repeat_interleave(2), twice).logits
    wanted = expected[sources, 1].repeat_interleave(2, dim=0)
    _assert_equal(logits, wanted, "logits change after State.keep_sources and State.select")


def _step(decoder: DecoderModule, inputs: Tensor, memory: Memory) -> Tensor:
    """Return the logits (B, T, V) that `start` and `step` compute, one position at a time."""
    state = decoder.start(memory, inputs.shape[1])
    logits = []
    for tokens in inputs.unbind(1):
        step = decoder.step(tokens, state)
        state = step.state
        logits.append(step.logits)
    return torch.stack(logits, dim=1)


def _source() -> Padded:
    lengths = torch.tensor(LENGTHS)
    return Padded(torch.randint(4, VOCABULARY, (len(LENGTHS), max(LENGTHS))), lengths)


def _memory(width: int) -> Memory:
    """Return random encoder outputs of this width. If the width is 0, they have no positions."""
    if width == 0:
        count = len(LENGTHS)
        empty = torch.zeros(count, 0, 0)
        return Memory(empty, torch.zeros(count, 0, dtype=torch.bool), empty)
    source = _source()
    states = torch.randn(len(LENGTHS), max(LENGTHS), width) * source.mask.unsqueeze(-1)
    return Memory(states, source.mask, torch.randn(len(LENGTHS), 1, width), source.values)


def _assert_equal(actual: Tensor, expected: Tensor, problem: str) -> None:
    difference = (actual - expected).abs().max().item()
    assert difference <= TOLERANCE, f"{problem} (largest difference {difference:.2g})"

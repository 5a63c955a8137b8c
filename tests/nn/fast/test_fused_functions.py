"""The fused functions and layers compute what the plain ones compute, with the same gradients.

Without a GPU they run in Triton's interpreter, if Triton is installed.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

os.environ.setdefault("TRITON_INTERPRET", "1")
pytest.importorskip("triton", reason="Triton comes with the GPU builds of torch")

from seqloom.config.loading.loader import load_bundled_recipe
from seqloom.core.batch import Batch, Packing, Padded
from seqloom.core.signature import NoSource, Signature, Tokens
from seqloom.models import transformer
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.nn import embedding
from seqloom.nn.fast import dispatch, fused_transformer
from seqloom.nn.fast import fused_functions as fused
from seqloom.nn.fast.fused_functions import (
    NO_DROPOUT,
    AttentionSettings,
    DropoutDraw,
    NormWeights,
    Weights,
)
from seqloom.nn.losses import smoothed_cross_entropy_sum
from seqloom.nn.transformer import EncoderLayer
from seqloom.tasks import losses
from seqloom.tasks.losses import r_drop_loss, symmetric_divergence
from seqloom.text.vocabulary import PAD
from support.token_loss import token_loss

ROWS, WIDTH, EPSILON = 37, 48, 1e-5
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "TRITON_INTERPRETED", True)
    torch.manual_seed(0)


@pytest.fixture
def fused_in_fp32(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Models use fused layers and a fused loss, in fp32."""
    calls = []

    def can_fuse(layers: Sequence[nn.Module], *tensors: Tensor) -> bool:
        calls.append(layers)
        return True

    monkeypatch.setattr(fused_transformer, "PRECISION", torch.float32)
    monkeypatch.setattr(transformer, "can_fuse", can_fuse)
    monkeypatch.setattr(embedding, "on_cpu_without_autocast", lambda features: False)
    monkeypatch.setattr(embedding, "can_fuse_loss", lambda features: True)
    yield
    assert calls


Function = Callable[..., Tensor | tuple[Tensor, ...]]


def assert_same(function: Function, plain: Function, tensors: Sequence[Tensor]) -> None:
    """The results and the gradients of both functions are equal."""
    results: list[list[Tensor]] = []
    factors: list[Tensor] = []
    for each in (function, plain):
        inputs = [tensor.clone().requires_grad_() for tensor in tensors]
        result = each(*inputs)
        outputs = list(result) if isinstance(result, tuple) else [result]
        factors = factors or [torch.randn_like(output) for output in outputs]
        gradients = torch.autograd.grad(outputs, inputs, factors)
        results.append([*outputs, *gradients])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


def three(biases: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Biases of queries, keys and values."""
    query, key, value = biases.chunk(3)
    return query, key, value


def norm(weight: Tensor, bias: Tensor) -> NormWeights:
    return NormWeights(weight, bias, EPSILON)


def plain_norm(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(states, (states.shape[-1],), weight, bias, EPSILON)


def weights_of(*parts: Tensor) -> Weights:
    (weights,) = fused.low_precision([parts], torch.float32)
    return weights


def test_normalisation_without_a_sublayer() -> None:
    assert_same(
        lambda states, *own: fused.add_norm(states, None, None, NO_DROPOUT, norm(*own)),
        lambda states, *own: (states * 1, plain_norm(states, *own)),
        [torch.randn(3, ROWS, WIDTH), torch.randn(WIDTH), torch.randn(WIDTH)],
    )


def mask_of(dropout: DropoutDraw, shape: tuple[int, ...]) -> Tensor:
    """1 for the entries that a dropout keeps, 0 for the others."""
    nothing = torch.zeros(shape[-1])
    states = torch.ones(shape)
    kept, _ = fused.add_norm(torch.zeros(shape), states, nothing, dropout, norm(nothing, nothing))
    return (kept > 0).long()


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("width", [4, WIDTH, 2500])
@pytest.mark.parametrize("programs", [3, 1056])
def test_bias_dropout_residual_connection_and_normalisation(
    rate: float, width: int, programs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With three programs, each one computes the gradients of several blocks of rows."""
    monkeypatch.setattr(fused, "SUM_PROGRAMS", programs)
    shape = (5, 23, width)
    (dropout,) = fused.draw_dropouts(1, rate, CPU)
    mask = mask_of(dropout, shape)
    assert (mask == 0).any() == (rate > 0)

    def plain(skip: Tensor, states: Tensor, bias: Tensor, *own: Tensor) -> tuple[Tensor, Tensor]:
        added = (states + bias) * mask * dropout.scale
        return skip + added, plain_norm(skip + added, *own)

    assert_same(
        lambda skip, states, bias, *own: fused.add_norm(skip, states, bias, dropout, norm(*own)),
        plain,
        [torch.randn(shape), torch.randn(shape), *(torch.randn(width) for _ in range(3))],
    )


def test_gradient_of_the_normalisation_alone() -> None:
    """With normalisation after each sublayer, the sum itself is not used."""
    assert_same(
        lambda skip, states, bias, *own: fused.add_norm(skip, states, bias, NO_DROPOUT, norm(*own))[
            1
        ],
        lambda skip, states, bias, *own: plain_norm(skip + states + bias, *own),
        [
            torch.randn(ROWS, WIDTH),
            torch.randn(ROWS, WIDTH),
            *(torch.randn(WIDTH) for _ in range(3)),
        ],
    )


def test_dropout_masks() -> None:
    shape = (200, 100)
    masks = [mask_of(each, shape) for each in fused.draw_dropouts(3, 0.25, CPU)]
    for mask in masks:
        kept = mask.double().mean()
        assert abs(kept - 0.75) < 0.02  # 6 standard deviations
        for line in (mask[:, 0], mask[:, 57], mask[3], mask[140]):
            assert 0.5 < line.double().mean() < 0.95
        for shift in range(1, 9):  # entries whose random numbers come from one draw, and others
            assert 0.54 < (mask[:, shift:] & mask[:, :-shift]).double().mean() < 0.585  # 0.75²
        assert 0.54 < (mask[1:] & mask[:-1]).double().mean() < 0.585
    first, second, third = masks
    assert 0.54 < (first & second).double().mean() < 0.585
    assert 0.54 < (second & third).double().mean() < 0.585
    assert not torch.equal(first, mask_of(fused.draw_dropouts(1, 0.25, CPU)[0], shape))
    torch.manual_seed(0)
    repeated = mask_of(fused.draw_dropouts(3, 0.25, CPU)[0], shape)
    assert torch.equal(first, repeated), "the seed of torch determines the masks"


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("has_positions", [True, False])
def test_embedding(rate: float, has_positions: bool) -> None:
    tokens, positions = torch.randint(30, (4, ROWS)), torch.randint(ROWS, (4, ROWS))
    table = torch.randn(ROWS, WIDTH)
    (dropout,) = fused.draw_dropouts(1, rate, CPU)
    mask = mask_of(dropout, (4, ROWS, WIDTH))
    located = (positions, table) if has_positions else None

    def plain(weight: Tensor) -> Tensor:
        vectors = F.embedding(tokens, weight) * 3.0
        vectors = vectors + table[positions] if has_positions else vectors
        return vectors * mask * dropout.scale

    assert_same(
        lambda weight: fused.embed(tokens, weight, 3.0, located, dropout, torch.float32),
        plain,
        [torch.randn(30, WIDTH)],
    )


def test_linear_layers_with_the_same_input() -> None:
    assert_same(
        lambda rows, *parts: fused.linear(rows, weights_of(*parts)),
        lambda rows, *parts: F.linear(rows, torch.cat(parts)),
        [torch.randn(ROWS, WIDTH), torch.randn(70, WIDTH), torch.randn(30, WIDTH)],
    )


def test_linear_layer_with_relu() -> None:
    assert_same(
        lambda rows, weight, bias: fused.linear_relu(
            rows, weights_of(weight), weights_of(bias), 0.0
        ),
        lambda rows, weight, bias: F.relu(F.linear(rows, weight, bias)),
        [torch.randn(ROWS, WIDTH), torch.randn(700, WIDTH), torch.randn(700)],
    )


def test_dropout_after_relu() -> None:
    rows = torch.randn(ROWS, WIDTH, requires_grad=True)
    weight, bias = torch.randn(700, WIDTH, requires_grad=True), torch.randn(700, requires_grad=True)
    activated = fused.linear_relu(rows, weights_of(weight), weights_of(bias), 0.5)
    plain = F.relu(F.linear(rows, weight, bias))
    mask = (activated > 0).float() * 2
    torch.testing.assert_close(activated, plain * mask)
    assert 0.45 < (mask[plain > 0] > 0).double().mean() < 0.55
    actual = torch.autograd.grad(activated.sum(), (rows, weight, bias))
    expected = torch.autograd.grad((plain * mask).sum(), (rows, weight, bias))
    for first, second in zip(actual, expected, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-4, atol=1e-4)


HEADS = 3


def plain_attention(
    parts: Sequence[Tensor], biases: Tensor, mask: Tensor | None, is_causal: bool = False
) -> Tensor:
    query, key, value = (
        (part + bias).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        for part, bias in zip(parts, three(biases), strict=True)
    )
    context = F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=is_causal, scale=0.25
    )
    return context.transpose(1, 2).flatten(2)


@pytest.mark.parametrize("length", [1, 13, 30, 64])
@pytest.mark.parametrize("is_causal", [True, False])
def test_self_attention_within_pairs(length: int, is_causal: bool) -> None:
    ids = torch.randint(3, (2, length)).sort(descending=True).values
    mask = (ids.unsqueeze(2) == ids.unsqueeze(1)).unsqueeze(1)
    mask = mask.tril() if is_causal else mask
    settings = AttentionSettings(HEADS, 0.25, is_causal)
    assert_same(
        lambda states, biases: fused.attention(states, None, three(biases), (ids, ids), settings),
        lambda states, biases: plain_attention(states.chunk(3, -1), biases, mask),
        [torch.randn(2, length, 3 * WIDTH), torch.randn(3 * WIDTH)],
    )


def test_rows_that_do_not_fill_a_block_have_finite_gradients_even_if_scores_are_large() -> None:
    """A block has 16 queries here. Those after the last one have only a bias, and large scores."""
    ids = torch.tensor([[1] * 9 + [0] * 3])
    settings = AttentionSettings(HEADS, 0.25, is_causal=False)
    inputs = [torch.randn(1, 12, 3 * WIDTH), torch.full((3 * WIDTH,), 8.0)]
    states, biases = (each.requires_grad_() for each in inputs)
    result = fused.attention(states, None, three(biases), (ids, ids), settings)
    for gradient in torch.autograd.grad(result.square().sum(), inputs):
        assert torch.isfinite(gradient).all()


def test_attention_to_several_parts_of_one_source() -> None:
    """Two layers attend to the same source, whose keys and values one product computes."""
    lengths = torch.tensor([21, 3, 10, 1])
    visible = torch.arange(21) < lengths[:, None]  # (B, S)
    ids = torch.ones(4, 13, dtype=torch.long), visible.long()
    settings = AttentionSettings(HEADS, 0.25, is_causal=False)

    def function(states: Tensor, source: Tensor, weight: Tensor, biases: Tensor) -> Tensor:
        weights = weights_of(*weight.chunk(4))
        first, second = fused.linear_parts(source.flatten(0, 1), weights, 4, 2)
        split = three(biases)
        contexts = [fused.attention(states, part, split, ids, settings) for part in (first, second)]
        return contexts[0] + 2 * contexts[1]

    def plain(states: Tensor, source: Tensor, weight: Tensor, biases: Tensor) -> Tensor:
        first, second = (
            plain_attention((states, *part.chunk(2, -1)), biases, visible[:, None, None])
            for part in F.linear(source, weight).chunk(2, -1)
        )
        return first + 2 * second

    sizes = [(4, 13, WIDTH), (4, 21, WIDTH), (4 * WIDTH, WIDTH), (3 * WIDTH,)]
    assert_same(function, plain, [torch.randn(size) / 4 for size in sizes])


@pytest.mark.parametrize("vocabulary", [30, 2500])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weight", [0.0, 5.0])
def test_r_drop(vocabulary: int, smoothing: float, weight: float) -> None:
    targets = torch.randint(4, vocabulary, (3, 7))
    targets[1, 5:] = PAD
    impossible = torch.arange(vocabulary) < 4

    def masked(*passes: Tensor) -> tuple[Tensor, Tensor]:
        first, second = (each.masked_fill(impossible, -float("inf")) for each in passes)
        return first, second

    def plain(*passes: Tensor) -> Tensor:
        first, second = (logits.log_softmax(-1) for logits in masked(*passes))
        nll = smoothed_cross_entropy_sum(first, targets, smoothing, PAD)
        nll = nll + smoothed_cross_entropy_sum(second, targets, smoothing, PAD)
        return 3.0 * (nll / 2 + weight / 4 * symmetric_divergence(first, second, targets))

    assert_same(
        lambda *passes: 3.0 * fused.r_drop(*masked(*passes), targets, smoothing, weight, PAD),
        plain,
        [torch.randn(3, 7, vocabulary), torch.randn(3, 7, vocabulary)],
    )


def test_a_nan_among_the_logits_makes_the_r_drop_loss_nan() -> None:
    first, second = torch.randn(2, 1, 3, 30)
    second[0, 1, 20] = torch.nan
    assert fused.r_drop(first, second, torch.full((1, 3), 7), 0.1, 5.0, PAD).isnan()


def test_the_loss_with_r_drop_is_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = small_model(), packed_batch()
    expected = r_drop_loss(model, batch, 0.1, 5.0)
    calls = []
    plain_loss = fused.r_drop

    def fused_loss(*given: Any) -> Tensor:
        calls.append(given)
        return plain_loss(*given)

    monkeypatch.setattr(losses, "can_fuse_loss", lambda logits: True)
    monkeypatch.setattr(fused, "r_drop", fused_loss)
    torch.testing.assert_close(r_drop_loss(model, batch, 0.1, 5.0), expected)
    assert calls


@pytest.mark.parametrize("vocabulary", [50, 5000])
@pytest.mark.parametrize("excluded", [0, 4])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(vocabulary: int, excluded: int, smoothing: float) -> None:
    targets = torch.randint(excluded, vocabulary, (ROWS,))
    targets[5] = PAD

    def plain(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        logits = F.linear(features, weight, bias)[:, excluded:]
        real = targets != PAD
        return F.cross_entropy(
            logits[real], targets[real] - excluded, reduction="sum", label_smoothing=smoothing
        )

    assert_same(
        lambda features, weight, bias: fused.linear_cross_entropy(
            features, weight, bias, targets, smoothing, PAD, excluded
        ),
        plain,
        [torch.randn(ROWS, WIDTH), torch.randn(vocabulary, WIDTH), torch.randn(vocabulary)],
    )


def packed_batch() -> Batch:
    """Two rows with two pairs each, and padding."""

    def place(lengths: Sequence[Sequence[int]], length: int) -> tuple[Tensor, Tensor, Tensor]:
        tokens, pairs, positions = (torch.zeros(2, length, dtype=torch.long) for _ in range(3))
        tokens += PAD
        for row, sizes in enumerate(lengths):
            start = 0
            for pair, size in enumerate(sizes, 1):
                place = slice(start, start + size)
                tokens[row, place] = torch.randint(5, 40, (size,))
                pairs[row, place], positions[row, place] = pair, torch.arange(size)
                start += size
        return tokens, pairs, positions

    sources, source_pairs, source_positions = place([[5, 4], [7, 3]], 11)
    targets, target_pairs, target_positions = place([[6, 3], [2, 8]], 13)
    lengths = [torch.tensor(sizes) for sizes in ([9, 10], [9, 10])]
    return Batch(
        source=Padded(sources, lengths[0]),
        inputs=Padded(targets.roll(1, 1), lengths[1]),
        targets=Padded(targets, lengths[1]),
        packing=Packing(source_pairs, target_pairs, source_positions, target_positions),
    )


def padded_batch() -> Batch:
    lengths = torch.tensor([9, 4])
    tokens = torch.randint(5, 40, (3, 2, 9)).masked_fill(torch.arange(9) >= lengths[:, None], PAD)
    source, inputs, targets = (Padded(each, lengths) for each in tokens)
    return Batch(source=source, inputs=inputs, targets=targets)


ENCODER, DECODER = (
    f"model.{side}={{kind='transformer', width=32, layers=2, feedforward=48, dropout=0.0, "
    "attention={heads=2}}"
    for side in ("encoder", "decoder")
)
POST_NORM = ("model.encoder.norm=post", "model.decoder.norm=post")
LEARNED = tuple(
    f"model.{side}.positions={{kind='learned', max_length=20}}" for side in ("encoder", "decoder")
)
COPYING = ("text.shared=true", "model.decoder.copying=true")
LANGUAGE_MODEL = (
    "task.kind=language-model",
    "model.encoder.kind=none",
    "model.tie=output",
    "training.stopping.score=loss",
)


def small_model(*changes: str) -> Model:
    sides = (DECODER,) if changes == LANGUAGE_MODEL else (ENCODER, DECODER)
    config = load_bundled_recipe("demo", [*sides, *changes]).config
    source = NoSource() if changes == LANGUAGE_MODEL else Tokens(40)
    return build_model(config.model, Signature(source, Tokens(40), shared=True)).train()


def encoder_layers(*changes: str) -> Sequence[EncoderLayer]:
    encoder = small_model(*changes).encoder
    assert isinstance(encoder, transformer.TransformerEncoder)
    return encoder.layers


def loss_and_gradients(model: Model, batch: Batch) -> list[Tensor]:
    model.zero_grad()
    loss = token_loss(model, batch, 0.1)
    loss.backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    return [loss.detach(), *(gradient for gradient in gradients if gradient is not None)]


@pytest.mark.parametrize("changes", [(), POST_NORM, LEARNED, COPYING, LANGUAGE_MODEL], ids=str)
@pytest.mark.parametrize("make_batch", [packed_batch, padded_batch])
def test_a_model_with_fused_layers_has_the_same_loss_and_gradients(
    changes: tuple[str, ...], make_batch: Callable[[], Batch], request: pytest.FixtureRequest
) -> None:
    batch = make_batch()
    if changes == LANGUAGE_MODEL:
        batch = replace(padded_batch(), source=None)
    model = small_model(*changes)
    expected = loss_and_gradients(model, batch)
    request.getfixturevalue("fused_in_fp32")
    actual = loss_and_gradients(model, batch)
    assert len(actual) == len(expected)
    for first, second in zip(actual, expected, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-4)


def test_when_layers_are_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = encoder_layers()
    tokens = torch.ones(2, 30, dtype=torch.long)

    def can_fuse(layers: Sequence[nn.Module] = layers, length: int = 30) -> bool:
        return fused_transformer.can_fuse(layers, tokens, torch.ones(2, length))

    assert not can_fuse(), "precision is fp32"
    with torch.autocast("cpu", torch.bfloat16):
        assert can_fuse()
        assert can_fuse(length=fused.MAX_LENGTH)
        assert not can_fuse(length=fused.MAX_LENGTH + 1)
        with torch.no_grad():
            assert not can_fuse()
        for change in (
            "model.encoder.activation=gelu",
            "model.encoder.attention.dropout=0.1",
            "model.encoder.attention.heads=4",  # each head is 8 wide
            "model.encoder.positions={kind='rotary'}",
            "model.encoder.attention.score={kind='additive'}",
            "model.encoder.attention.score={kind='bilinear'}",
            "model.encoder.remove_residual=1",
        ):
            assert not can_fuse(encoder_layers(change)), change
        frozen = encoder_layers()
        frozen[1].feedforward.widen.requires_grad_(False)
        assert not can_fuse(frozen)
        monkeypatch.setattr(dispatch, "TRITON_INTERPRETED", False)
        assert not can_fuse(), "no GPU"


def test_a_recurrent_decoder_can_read_the_states_of_a_fused_encoder() -> None:
    recurrent = "model.decoder={kind='recurrent', cell='gru', width=32, attention={}}"
    model = small_model(recurrent, "model.tie=none")
    assert model.encoder is not None
    batch = padded_batch()
    assert batch.source is not None
    with torch.autocast("cpu", torch.bfloat16):
        assert isinstance(model.encoder, transformer.TransformerEncoder)
        assert fused_transformer.can_fuse(
            model.encoder.layers, batch.inputs.values, batch.inputs.values
        )
        memory = model.encoder(batch.source)
        assert memory.states.dtype == memory.summary.dtype == torch.float32
        token_loss(model, batch, 0.1).backward()
    assert all(parameter.grad is not None for parameter in model.encoder.layers[0].parameters())


def test_dropout_in_fused_layers(fused_in_fp32: None) -> None:
    batch = packed_batch()
    model = small_model("model.encoder.dropout=0.5", "model.decoder.dropout=0.5")
    losses = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        losses.append(token_loss(model, batch, 0.1).item())
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]
    without = small_model()
    without.load_state_dict(model.state_dict())
    model.eval()
    assert token_loss(model, batch, 0.1).item() == token_loss(without, batch, 0.1).item()

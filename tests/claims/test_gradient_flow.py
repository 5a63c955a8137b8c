"""Gradient flow: the gradient at every step is the exact sum of its paths."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from zoo import EVERY_DECODER, Specimen

from seqloom.analysis.gradients import attention_gradients, measure_gradients
from seqloom.config.schema.recurrent import RecurrentDecoderConfig
from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import ConfigError
from seqloom.models.ensemble import build_ensemble
from seqloom.models.recurrent import RecurrentEncoder
from seqloom.models.seq2seq import Model
from seqloom.nn.attention import AttentionScore, DotScore, RbfScore, Selection
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.text.vocabulary import END, PAD, START
from support.token_loss import token_loss

# The measurement does not depend on the kind of model, so a sample of decoders is enough.
some_decoders = pytest.mark.parametrize(
    "specimen", EVERY_DECODER[::4], ids=lambda specimen: specimen.name
)
SOFT = [specimen for specimen in EVERY_DECODER if not specimen.is_hard][::9]
soft_decoders = pytest.mark.parametrize("specimen", SOFT, ids=lambda specimen: specimen.name)
SOURCES, TARGETS = (5, 2, 4), (4, 2, 3)


def batch_of(specimen: Specimen) -> Batch:
    """Rows of different lengths. Label decoders have one label per source position, or one."""
    lengths: tuple[int, ...] = TARGETS
    if specimen.gives_labels:
        per_position = getattr(specimen.config.decoder, "pooling", "") == "none"
        lengths = SOURCES if per_position else (2, 2, 2)
    words = torch.randint(4, 8, (3, max(lengths)), generator=torch.Generator().manual_seed(3))
    targets = Padded(words, torch.tensor(lengths))
    ends = targets.lengths.unsqueeze(1) - 1
    positions = torch.arange(words.shape[1])
    words = words.masked_fill(positions == ends, END).masked_fill(~targets.mask, PAD)
    started = torch.cat((torch.full((3, 1), START), words[:, :-1]), dim=1)
    inputs = started.masked_fill(~targets.mask, PAD)
    return Batch(
        specimen.source(SOURCES), replace(targets, values=inputs), replace(targets, values=words)
    )


def input_gradients(
    model: Model, batch: Batch, compute_loss: Callable[[], Tensor]
) -> list[Tensor | None]:
    """Gradients at the embedded inputs of encoder and decoder, in one backward pass each.

    None for a part that embeds nothing.
    """
    gradients: list[Tensor | None] = []
    handles, leaves = [], {}
    for name, part in (("encoder", model.encoder), ("decoder", model.decoder)):
        embedder = getattr(part, "embedder", None)

        def capture(module: nn.Module, arguments: object, out: Tensor, name: str = name) -> Tensor:
            leaves[name] = out.detach().requires_grad_()
            return leaves[name]

        if embedder is not None:
            handles.append(embedder.register_forward_hook(capture))
    loss = compute_loss()
    for handle in handles:
        handle.remove()
    for name in ("encoder", "decoder"):
        leaf = leaves.get(name)
        gradients.append(
            None if leaf is None else torch.autograd.grad(loss, leaf, retain_graph=True)[0]
        )
    return gradients


@some_decoders
def test_both_paths_add_up_to_the_full_gradient(specimen: Specimen) -> None:
    """The full gradient comes from one backward pass of the training loss."""
    model, batch = specimen.build(), batch_of(specimen)
    flow = measure_gradients(model, batch)
    loss = token_loss(model, batch, 0.0)
    torch.testing.assert_close(flow.loss.sum(), loss)
    source, target = input_gradients(model, batch, lambda: token_loss(model, batch, 0.0))
    if source is not None:
        torch.testing.assert_close(flow.source, source)
    if target is not None:
        torch.testing.assert_close(flow.target, target)
    # Padding receives no gradient.
    if batch.source is not None:
        assert isinstance(batch.source, Padded)
        assert not flow.source[~batch.source.mask].any()
    assert not flow.target[~batch.targets.mask].any()
    # The measurement leaves neither gradients nor hooks behind.
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(part._forward_hooks for part in model.modules())


@soft_decoders
def test_detaching_one_path_leaves_the_gradient_of_the_other(specimen: Specimen) -> None:
    """With detached states only the chain remains; with a detached summary only attention."""
    model, batch = specimen.build(), batch_of(specimen)
    flow = measure_gradients(model, batch)
    for path, detached in ((flow.chain, "states"), (flow.attention, "summary")):

        def loss(detached: str = detached) -> Tensor:
            memory = model.encode(batch.source, batch.size)
            cut = replace(memory, **{detached: getattr(memory, detached).detach()})
            output = model.decoder(batch.inputs.values, cut)
            targets = batch.targets.values
            return output.loss(targets, 0.0, PAD) + 0 * memory.states.sum()

        source, _ = input_gradients(model, batch, loss)
        if source is not None:
            torch.testing.assert_close(path, source)


@soft_decoders
def test_gradients_of_single_steps_add_up_and_are_causal(specimen: Specimen) -> None:
    model, batch = specimen.build(), batch_of(specimen)
    combined = measure_gradients(model, batch)
    steps = batch.targets.values.shape[1]
    single = [measure_gradients(model, batch, step) for step in range(1, steps + 1)]
    for name in ("loss", "chain", "attention", "own", "later"):
        total = torch.stack([getattr(flow, name) for flow in single]).sum(0)
        torch.testing.assert_close(total, getattr(combined, name))
    for step, flow in enumerate(single, start=1):
        assert not flow.target[:, step:].any(), "a later step does not affect this prediction"
        assert not flow.own[:, : step - 1].any(), "an earlier step has another prediction"
        assert not flow.later[:, step - 1 :].any()


@soft_decoders
def test_gradients_equal_finite_differences(specimen: Specimen) -> None:
    """Shift the embedded inputs a little: the loss changes as the gradient predicts."""
    model, batch = specimen.build(), batch_of(specimen)
    flow = measure_gradients(model, batch)
    sides = ((model.encoder, flow.source), (model.decoder, flow.target))
    for part, gradient in sides:
        embedder = getattr(part, "embedder", None)
        if embedder is None:
            continue
        direction = torch.randn(gradient.shape, generator=torch.Generator().manual_seed(4)).double()

        def shifted_loss(
            by: float, embedder: nn.Module = embedder, direction: Tensor = direction
        ) -> float:
            hook = embedder.register_forward_hook(
                lambda module, arguments, out: out + by * direction
            )
            loss = float(token_loss(model, batch, 0.0))
            hook.remove()
            return loss

        slope = (shifted_loss(1e-5) - shifted_loss(-1e-5)) / 2e-5
        assert slope == pytest.approx(float((gradient * direction).sum()), rel=1e-5, abs=1e-7)


BOTTLENECKS = [
    specimen
    for specimen in EVERY_DECODER
    if isinstance(specimen.config.decoder, RecurrentDecoderConfig)
    and specimen.attention is None
    and specimen.config.decoder.initial_state != "zeros"
]


def test_missing_paths_carry_no_gradient() -> None:
    """No attention path without attention; no chain in a Transformer decoder."""
    bottleneck = BOTTLENECKS[0]
    flow = measure_gradients(bottleneck.build(), batch_of(bottleneck))
    assert flow.chain.any()
    assert not flow.attention.any()
    transformer = next(
        specimen
        for specimen in EVERY_DECODER
        if specimen.config.decoder.kind == "transformer" and specimen.config.encoder.kind != "none"
    )
    flow = measure_gradients(transformer.build(), batch_of(transformer))
    assert flow.attention.any()
    assert not flow.chain.any()


def test_the_chain_gradient_decays_at_least_with_the_power_of_the_recurrent_matrix() -> None:
    """h' = tanh(W x + U h), and the slope of tanh is at most 1, so the gradient at a step is at most
    ‖W‖ ‖U‖^distance times the gradient at the last state."""
    specimen = next(each for each in BOTTLENECKS if each.name.startswith("rnn→"))
    model = specimen.build()
    assert isinstance(model.encoder, RecurrentEncoder)
    [layer] = model.encoder.forward_layers
    input_weight, recurrent_weight = (weight.data for weight in layer.weights()[:2])
    recurrent_weight *= 0.5 / torch.linalg.matrix_norm(recurrent_weight, 2)
    steps = 12
    source = Padded(torch.randint(4, 8, (1, steps)), torch.tensor([steps]))
    inputs, targets = (Padded(torch.tensor([[id_]]), torch.tensor([1])) for id_ in (START, 5))
    memory = model.encode(source, 1)
    last = memory.summary.detach().requires_grad_()
    output = model.decoder(inputs.values, replace(memory, summary=last))
    [at_last_state] = torch.autograd.grad(output.loss(targets.values, 0.0, PAD), last)
    norms = measure_gradients(model, Batch(source, inputs, targets)).chain[0].norm(dim=-1)  # (S,)
    bound = torch.linalg.matrix_norm(input_weight, 2) * at_last_state.norm()
    for distance in range(steps):
        assert 0 < norms[steps - 1 - distance] <= bound * 0.5**distance


@pytest.mark.parametrize(
    ("score", "selection"),
    [(DotScore("sqrt", 4), "softmax"), (DotScore("one", 4), "argmax"), (RbfScore(1.0), "argmax")],
    ids=["soft", "best score", "nearest key"],
)
def test_hard_attention_gives_no_gradient_to_queries_and_keys(
    score: AttentionScore, selection: Selection
) -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(4, score=score, output_projection=False, selection=selection)
    states, source = torch.randn(1, 2, 4), torch.randn(1, 3, 4)
    mask = torch.ones(1, 1, 1, 3, dtype=torch.bool)
    gradients = attention_gradients(attention, states, source, mask)
    is_soft = selection == "softmax"
    assert bool(gradients["queries"].any()) == bool(gradients["keys"].any()) == is_soft
    assert gradients["values"].any()


def test_an_ensemble_has_no_gradient() -> None:
    specimen = EVERY_DECODER[0]
    with pytest.raises(ConfigError, match="measure each member by itself"):
        measure_gradients(build_ensemble([specimen.build(), specimen.build()]), batch_of(specimen))

"""Gradients through time: what reaches a step is exactly the sum of its ways there."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from zoo import EVERY_DECODER, Specimen

from seqloom.config.schema.recurrent import RecurrentDecoderConfig
from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import ConfigError
from seqloom.inside.flow import look_gradients, measure
from seqloom.models.ensemble import ensemble
from seqloom.models.recurrent import RecurrentEncoder
from seqloom.models.seq2seq import Model
from seqloom.nn.attention import DotScore, RbfScore, Score, Selection
from seqloom.nn.multihead import AttentionPlan, MultiHeadAttention
from seqloom.text.vocabulary import END, PAD, START
from token_loss import token_loss

# What is measured knows nothing of the model: a few of every family are enough.
some_decoders = pytest.mark.parametrize("specimen", EVERY_DECODER[::4], ids=lambda one: one.name)
SOFT = [one for one in EVERY_DECODER if not one.is_hard][::9]
soft_decoders = pytest.mark.parametrize("specimen", SOFT, ids=lambda one: one.name)
SOURCES, TARGETS = (5, 2, 4), (4, 2, 3)


def batch_of(specimen: Specimen) -> Batch:
    """Rows of unequal length on both sides. Labels come in step with the source, or alone."""
    lengths: tuple[int, ...] = TARGETS
    if specimen.gives_labels:
        each = getattr(specimen.config.decoder, "reads", "") == "positions"
        lengths = SOURCES if each else (2, 2, 2)
    words = torch.randint(4, 8, (3, max(lengths)), generator=torch.Generator().manual_seed(3))
    targets = Padded(words, torch.tensor(lengths))
    ends = targets.lengths.unsqueeze(1) - 1
    places = torch.arange(words.shape[1])
    words = words.masked_fill(places == ends, END).masked_fill(~targets.mask, PAD)
    started = torch.cat((torch.full((3, 1), START), words[:, :-1]), dim=1)
    inputs = started.masked_fill(~targets.mask, PAD)
    return Batch(
        specimen.source(SOURCES), replace(targets, values=inputs), replace(targets, values=words)
    )


def taken_in(model: Model, batch: Batch, loss_of: Callable[[], Tensor]) -> list[Tensor | None]:
    """The plain gradient of a loss at what encoder and decoder take in; None: at nothing."""
    found: list[Tensor | None] = []
    handles, kept = [], {}
    for name, part in (("encoder", model.encoder), ("decoder", model.decoder)):
        embedder = getattr(part, "embedder", None)

        def keep(module: nn.Module, given: object, out: Tensor, name: str = name) -> Tensor:
            kept[name] = out.detach().requires_grad_()
            return kept[name]

        if embedder is not None:
            handles.append(embedder.register_forward_hook(keep))
    loss = loss_of()
    for handle in handles:
        handle.remove()
    for name in ("encoder", "decoder"):
        leaf = kept.get(name)
        found.append(
            None if leaf is None else torch.autograd.grad(loss, leaf, retain_graph=True)[0]
        )
    return found


@some_decoders
def test_the_parts_of_a_gradient_add_up_to_the_whole(specimen: Specimen) -> None:
    """The whole is taken back in one piece, by the loss that training uses."""
    model, batch = specimen.build(), batch_of(specimen)
    flow = measure(model, batch)
    loss = token_loss(model, batch, 0.0)
    torch.testing.assert_close(flow.loss.sum(), loss)
    source, target = taken_in(model, batch, lambda: token_loss(model, batch, 0.0))
    if source is not None:
        torch.testing.assert_close(flow.source, source)
    if target is not None:
        torch.testing.assert_close(flow.target, target)
    # Nothing behind the padding has any part in it.
    if batch.source is not None:
        assert isinstance(batch.source, Padded)
        assert not flow.source[~batch.source.mask].any()
    assert not flow.target[~batch.targets.mask].any()
    # And nothing is left behind.
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(part._forward_hooks for part in model.modules())


@soft_decoders
def test_detaching_one_way_leaves_the_other(specimen: Specimen) -> None:
    """The chain is what is left when nothing looked at carries a gradient, and the other way round."""
    model, batch = specimen.build(), batch_of(specimen)
    flow = measure(model, batch)
    for part, cut in ((flow.chain, "states"), (flow.attention, "summary")):

        def loss(cut: str = cut) -> Tensor:
            memory = model.encode(batch.source, batch.size)
            severed = replace(memory, **{cut: getattr(memory, cut).detach()})
            taught = model.decoder(batch.inputs.values, severed)
            answers = batch.targets.values
            return taught.loss(answers, 0.0, PAD) + 0 * memory.states.sum()

        source, _ = taken_in(model, batch, loss)
        if source is not None:
            torch.testing.assert_close(part, source)


@soft_decoders
def test_the_answers_of_all_steps_add_up_and_none_looks_ahead(specimen: Specimen) -> None:
    model, batch = specimen.build(), batch_of(specimen)
    whole = measure(model, batch)
    steps = batch.targets.values.shape[1]
    alone = [measure(model, batch, step) for step in range(1, steps + 1)]
    for name in ("loss", "chain", "attention", "own", "later"):
        total = torch.stack([getattr(one, name) for one in alone]).sum(0)
        torch.testing.assert_close(total, getattr(whole, name))
    for step, one in enumerate(alone, start=1):
        assert not one.target[:, step:].any(), "a later step had no part in this answer"
        assert not one.own[:, : step - 1].any(), "an earlier step's own answer is another"
        assert not one.later[:, step - 1 :].any()


@soft_decoders
def test_finite_differences_agree(specimen: Specimen) -> None:
    """Move what a side takes in a little: the loss moves as the gradient says."""
    model, batch = specimen.build(), batch_of(specimen)
    flow = measure(model, batch)
    sides = ((model.encoder, flow.source), (model.decoder, flow.target))
    for part, gradient in sides:
        embedder = getattr(part, "embedder", None)
        if embedder is None:
            continue
        way = torch.randn(gradient.shape, generator=torch.Generator().manual_seed(4)).double()

        def moved(by: float, embedder: nn.Module = embedder, way: Tensor = way) -> float:
            hook = embedder.register_forward_hook(lambda module, given, out: out + by * way)
            loss = float(token_loss(model, batch, 0.0))
            hook.remove()
            return loss

        slope = (moved(1e-5) - moved(-1e-5)) / 2e-5
        assert slope == pytest.approx(float((gradient * way).sum()), rel=1e-5, abs=1e-7)


BOTTLENECKS = [
    one
    for one in EVERY_DECODER
    if isinstance(one.config.decoder, RecurrentDecoderConfig)
    and one.attention is None
    and one.config.decoder.handover != "none"
]


def test_ways_that_are_not_there_carry_nothing() -> None:
    """Without attention nothing comes by looking; a Transformer's decoder has no chain."""
    handed = BOTTLENECKS[0]
    flow = measure(handed.build(), batch_of(handed))
    assert flow.chain.any()
    assert not flow.attention.any()
    looking = next(
        one
        for one in EVERY_DECODER
        if one.config.decoder.kind == "transformer" and one.config.encoder.kind != "none"
    )
    flow = measure(looking.build(), batch_of(looking))
    assert flow.attention.any()
    assert not flow.chain.any()


def test_a_chain_shrinks_at_least_as_fast_as_its_matrix_to_the_power_of_the_distance() -> None:
    """h' = tanh(W x + U h), and tanh is nowhere steeper than 1: of what arrives at the last state,
    no more than ‖W‖ ‖U‖^distance comes back to a step."""
    specimen = next(one for one in BOTTLENECKS if one.name.startswith("rnn→"))
    model = specimen.build()
    assert isinstance(model.encoder, RecurrentEncoder)
    [layer] = model.encoder.forward_layers
    into, along = (weight.data for weight in layer.weights()[:2])
    along *= 0.5 / torch.linalg.matrix_norm(along, 2)
    steps = 12
    source = Padded(torch.randint(4, 8, (1, steps)), torch.tensor([steps]))
    inputs, answers = (Padded(torch.tensor([[one]]), torch.tensor([1])) for one in (START, 5))
    memory = model.encode(source, 1)
    last = memory.summary.detach().requires_grad_()
    taught = model.decoder(inputs.values, replace(memory, summary=last))
    [arrived] = torch.autograd.grad(taught.loss(answers.values, 0.0, PAD), last)
    reached = measure(model, Batch(source, inputs, answers)).chain[0].norm(dim=-1)  # (S,)
    most = torch.linalg.matrix_norm(into, 2) * arrived.norm()
    for distance in range(steps):
        assert 0 < reached[steps - 1 - distance] <= most * 0.5**distance


@pytest.mark.parametrize(
    ("score", "selection"),
    [(DotScore("sqrt", 4), "softmax"), (DotScore("one", 4), "argmax"), (RbfScore(1.0), "argmax")],
    ids=["soft", "best score", "nearest key"],
)
def test_a_hard_choice_gives_no_gradient_to_queries_and_keys(
    score: Score, selection: Selection
) -> None:
    plan = AttentionPlan(4, 4, 4, 1, "linear", learned_values=True, merged_width=None)
    torch.manual_seed(0)
    attention = MultiHeadAttention(plan, score, selection)
    states, source = torch.randn(1, 2, 4), torch.randn(1, 3, 4)
    found = look_gradients(attention, states, source, torch.ones(1, 1, 1, 3, dtype=torch.bool))
    soft = selection == "softmax"
    assert bool(found["queries"].any()) == bool(found["keys"].any()) == soft
    assert found["values"].any()


def test_an_ensemble_has_no_gradient() -> None:
    specimen = EVERY_DECODER[0]
    with pytest.raises(ConfigError, match="ask each by itself"):
        measure(ensemble([specimen.build(), specimen.build()]), batch_of(specimen))

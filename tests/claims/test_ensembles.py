"""What is true of every decoder is true of several that are asked together."""

import itertools

import pytest
import torch
from test_every_decoder import LENGTHS, assert_same, searched, some_inputs, stepped, taught
from zoo import EVERY_DECODER, Specimen

from seqloom.config.schema.decoding import (
    BeamConfig,
    ExhaustiveConfig,
    GreedyConfig,
    SampleConfig,
    SearchConfig,
)
from seqloom.core.batch import Padded
from seqloom.decoding.forced import force
from seqloom.models.ensemble import ensemble, mean_log_probability
from seqloom.models.seq2seq import Model


def kind(specimen: Specimen) -> str:
    config = specimen.config
    alone = "alone" if config.encoder.kind == "none" else "reads"
    attention = "none" if specimen.attention is None else "attention"
    return f"{alone} {config.decoder.kind} {attention}"


SOFT = sorted((one for one in EVERY_DECODER if not one.is_hard), key=kind)
FAMILIES = {name: list(family) for name, family in itertools.groupby(SOFT, key=kind)}
"""Recurrent networks and Transformers, with attention and without, with a source and without."""
TROUPES = {
    "all that read": [family[0] for name, family in FAMILIES.items() if name.startswith("reads")],
    "all alone": [family[0] for name, family in FAMILIES.items() if name.startswith("alone")],
    "those that copy, and one that does not": [
        *(
            next(one for one in SOFT if one.copies and one.config.decoder.kind == kind)
            for kind in ("recurrent", "transformer")
        ),
        FAMILIES["reads recurrent none"][0],
    ],
    "two of a kind": FAMILIES["reads transformer attention"][:2],
    "one": FAMILIES["reads recurrent attention"][:1],
}
every_troupe = pytest.mark.parametrize("name", TROUPES)


def cast(name: str) -> tuple[Model, list[Model], Specimen]:
    """The ensemble, its members, and one of them to make sources with."""
    members = [one.build() for one in TROUPES[name]]
    return ensemble(members), members, TROUPES[name][0]


def test_the_troupes_are_mixed() -> None:
    kinds = {kind(one) for one in TROUPES["all that read"]}
    assert {"reads recurrent attention", "reads recurrent none"} < kinds
    assert "reads transformer attention" in kinds
    assert len(TROUPES["all alone"]) == 2


@every_troupe
def test_its_probabilities_are_the_mean_of_its_members(name: str) -> None:
    model, members, first = cast(name)
    source, inputs = first.source(LENGTHS), some_inputs()
    found = taught(model, inputs, model.encode(source, 3)).exp()
    each = [taught(one, inputs, one.encode(source, 3)).softmax(-1) for one in members]
    torch.testing.assert_close(found, torch.stack(each).mean(0))
    torch.testing.assert_close(found.sum(-1), torch.ones_like(found[..., 0]))


@every_troupe
def test_stepping_and_teaching_agree(name: str) -> None:
    model, _, first = cast(name)
    memory, inputs = model.encode(first.source(LENGTHS), 3), some_inputs()
    torch.testing.assert_close(stepped(model, inputs, memory), taught(model, inputs, memory))


@every_troupe
def test_a_model_that_is_asked_three_times_says_the_same(name: str) -> None:
    _, (one, *_), first = cast(name)
    thrice = ensemble([one, one, one])
    memory = one.encode(first.source(LENGTHS), 3)
    alone = searched(BeamConfig(width=3), one, memory, [6, 6, 6], n_best=2)
    again = searched(
        BeamConfig(width=3), thrice, thrice.encode(first.source(LENGTHS), 3), [6, 6, 6], n_best=2
    )
    for found, expected in zip(again, alone, strict=True):
        assert_same(found, expected)


@every_troupe
def test_a_beam_of_one_is_greedy_and_a_wide_one_finds_the_best_there_is(name: str) -> None:
    model, _, first = cast(name)
    memory = model.encode(first.source((3, 1)), 2)
    greedy = searched(GreedyConfig(), model, memory, [6, 6])
    beam = searched(BeamConfig(width=1), model, memory, [6, 6])
    assert [one.tokens for (one,) in greedy] == [one.tokens for (one,) in beam]
    best = searched(ExhaustiveConfig(), model, memory, [3, 3], n_best=4)
    wide = searched(BeamConfig(width=80), model, memory, [3, 3], n_best=4)
    for exact, found in zip(best, wide, strict=True):
        assert_same(found, exact)


@every_troupe
def test_the_score_of_a_hypothesis_is_the_ensembles_own(name: str) -> None:
    model, _, first = cast(name)
    memory = model.encode(first.source(LENGTHS), 3)
    for (found,), again in zip(
        (outputs := searched(BeamConfig(width=3), model, memory, [12] * 3)),
        force(model.decoder, memory, [one.tokens for (one,) in outputs]),
        strict=True,
    ):
        if found.finished:
            assert again.log_probabilities == pytest.approx(found.log_probabilities)


@every_troupe
@pytest.mark.parametrize(
    "config",
    [GreedyConfig(), BeamConfig(width=3), SampleConfig(samples=2)],
    ids=lambda config: config.kind,
)
def test_an_output_does_not_depend_on_its_batch(name: str, config: SearchConfig) -> None:
    model, _, first = cast(name)
    source = first.source(LENGTHS)
    whole = searched(config, model, model.encode(source, 3), [7, 7, 7])
    for row in range(1 if config.kind == "sample" else 3):  # a sample depends on its number
        alone = (
            None
            if source is None
            else Padded(source.values[row : row + 1, : LENGTHS[row]], source.lengths[row : row + 1])
        )
        (outputs,) = searched(config, model, model.encode(alone, 1), [7])
        assert_same(outputs, whole[row])


@every_troupe
def test_attention_is_a_mean_that_looks_only_at_the_source(name: str) -> None:
    model, members, first = cast(name)
    memory = model.encode(first.source(LENGTHS), 3)
    step = model.decoder.step(some_inputs()[:, 0], model.decoder.start(memory, 1))
    looks = []
    for one in members:
        start = one.decoder.start(one.encode(first.source(LENGTHS), 3), 1)
        own = one.decoder.step(some_inputs()[:, 0], start).attention
        looks += [] if own is None else [own.mean((1, 2))]
    if not looks:
        assert step.attention is None
        return
    assert step.attention is not None
    torch.testing.assert_close(step.attention[:, 0, 0], torch.stack(looks).mean(0))
    assert step.attention.masked_fill(memory.mask[:, None, None], 0).abs().max() == 0
    torch.testing.assert_close(step.attention.sum(-1), torch.ones_like(step.attention.sum(-1)))


def test_a_probability_too_small_to_be_written_down_is_not_lost() -> None:
    sure = torch.tensor([[0.0, -2000.0]], dtype=torch.float64)
    found = mean_log_probability([sure, sure - 5])
    torch.testing.assert_close(found, sure)
    half = mean_log_probability([sure.bfloat16(), sure.bfloat16()])
    assert half.dtype == torch.float32


def test_an_ensemble_reaches_as_far_as_its_shortest_member() -> None:
    members = [one.build() for one in TROUPES["all that read"]]
    limits = [one.max_source_length for one in members if one.max_source_length is not None]
    assert ensemble(members).max_source_length == min(limits, default=None)
    limits = [one.max_target_length for one in members if one.max_target_length is not None]
    assert limits
    assert ensemble(members).max_target_length == min(limits)

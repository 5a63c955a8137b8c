"""Claims about every decoder hold for ensembles of decoders."""

import itertools

import pytest
import torch
from test_every_decoder import (
    LENGTHS,
    assert_same_hypotheses,
    random_inputs,
    search,
    stepwise_logits,
    teacher_forced_logits,
)
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
from seqloom.models.ensemble import build_ensemble, mean_log_probability
from seqloom.models.seq2seq import Model


def kind(specimen: Specimen) -> str:
    config = specimen.config
    source = "language model" if config.encoder.kind == "none" else "encoder"
    attention = "without attention" if specimen.attention is None else "with attention"
    return f"{source} {config.decoder.kind} {attention}"


SOFTMAX = sorted((one for one in EVERY_DECODER if not one.is_hard), key=kind)
FAMILIES = {name: list(family) for name, family in itertools.groupby(SOFTMAX, key=kind)}
"""Recurrent networks and Transformers, with and without attention, with and without an encoder."""
ENSEMBLES = {
    "one of each kind": [
        family[0] for name, family in FAMILIES.items() if name.startswith("encoder")
    ],
    "language models": [
        family[0] for name, family in FAMILIES.items() if name.startswith("language model")
    ],
    "with and without a copy mechanism": [
        *(
            next(one for one in SOFTMAX if one.copies and one.config.decoder.kind == kind)
            for kind in ("recurrent", "transformer")
        ),
        FAMILIES["encoder recurrent without attention"][0],
    ],
    "two of one kind": FAMILIES["encoder transformer with attention"][:2],
    "a single member": FAMILIES["encoder recurrent with attention"][:1],
}
every_ensemble = pytest.mark.parametrize("name", ENSEMBLES)


def build(name: str) -> tuple[Model, list[Model], Specimen]:
    """The ensemble, its members, and the specimen that generates sources."""
    members = [one.build() for one in ENSEMBLES[name]]
    return build_ensemble(members), members, ENSEMBLES[name][0]


def test_the_ensembles_mix_kinds_of_models() -> None:
    kinds = {kind(one) for one in ENSEMBLES["one of each kind"]}
    assert {
        "encoder recurrent with attention",
        "encoder recurrent without attention",
        "encoder transformer with attention",
    } <= kinds
    assert len(ENSEMBLES["language models"]) == 2


@every_ensemble
def test_probabilities_are_the_mean_of_those_of_the_members(name: str) -> None:
    model, members, first = build(name)
    source, inputs = first.source(LENGTHS), random_inputs()
    probabilities = teacher_forced_logits(model, inputs, model.encode(source, 3)).exp()
    of_members = [
        teacher_forced_logits(member, inputs, member.encode(source, 3)).softmax(-1)
        for member in members
    ]
    torch.testing.assert_close(probabilities, torch.stack(of_members).mean(0))
    torch.testing.assert_close(probabilities.sum(-1), torch.ones_like(probabilities[..., 0]))


@every_ensemble
def test_stepping_of_an_ensemble_equals_teacher_forcing(name: str) -> None:
    model, _, first = build(name)
    memory, inputs = model.encode(first.source(LENGTHS), 3), random_inputs()
    expected = teacher_forced_logits(model, inputs, memory)
    torch.testing.assert_close(stepwise_logits(model, inputs, memory), expected)


@every_ensemble
def test_an_ensemble_of_three_copies_equals_the_single_model(name: str) -> None:
    _, (member, *_), first = build(name)
    copies = build_ensemble([member, member, member])
    source, beam, limits = first.source(LENGTHS), BeamConfig(width=3), [6, 6, 6]
    single = search(beam, member, member.encode(source, 3), limits, n_best=2)
    of_copies = search(beam, copies, copies.encode(source, 3), limits, n_best=2)
    for hypotheses, expected in zip(of_copies, single, strict=True):
        assert_same_hypotheses(hypotheses, expected)


@every_ensemble
def test_beam_search_of_an_ensemble_equals_greedy_and_exhaustive_search(name: str) -> None:
    model, _, first = build(name)
    memory = model.encode(first.source((3, 1)), 2)
    greedy = search(GreedyConfig(), model, memory, [6, 6])
    beam = search(BeamConfig(width=1), model, memory, [6, 6])
    assert [one.tokens for (one,) in greedy] == [one.tokens for (one,) in beam]
    best = search(ExhaustiveConfig(), model, memory, [3, 3], n_best=4)
    wide = search(BeamConfig(width=80), model, memory, [3, 3], n_best=4)
    for expected, hypotheses in zip(best, wide, strict=True):
        assert_same_hypotheses(hypotheses, expected)


@every_ensemble
def test_the_score_of_a_hypothesis_is_its_log_probability_under_the_ensemble(name: str) -> None:
    model, _, first = build(name)
    memory = model.encode(first.source(LENGTHS), 3)
    results = [best for (best,) in search(BeamConfig(width=3), model, memory, [12] * 3)]
    forced = force(model.decoder, memory, [hypothesis.tokens for hypothesis in results])
    for hypothesis, expected in zip(results, forced, strict=True):
        if hypothesis.finished:
            log_probabilities = hypothesis.log_probabilities
            assert expected.log_probabilities == pytest.approx(log_probabilities)


@every_ensemble
@pytest.mark.parametrize(
    "config",
    [GreedyConfig(), BeamConfig(width=3), SampleConfig(samples=2)],
    ids=lambda config: config.kind,
)
def test_an_output_of_an_ensemble_does_not_depend_on_its_batch(
    name: str, config: SearchConfig
) -> None:
    model, _, first = build(name)
    source = first.source(LENGTHS)
    batched = search(config, model, model.encode(source, 3), [7, 7, 7])
    for row in range(1 if config.kind == "sample" else 3):  # a sample depends on its row
        single = (
            None
            if source is None
            else Padded(source.values[row : row + 1, : LENGTHS[row]], source.lengths[row : row + 1])
        )
        (hypotheses,) = search(config, model, model.encode(single, 1), [7])
        assert_same_hypotheses(hypotheses, batched[row])


@every_ensemble
def test_attention_is_the_mean_of_the_members_with_attention(name: str) -> None:
    model, members, first = build(name)
    memory = model.encode(first.source(LENGTHS), 3)
    step = model.decoder.step(random_inputs()[:, 0], model.decoder.start(memory, 1))
    of_members = []
    for member in members:
        start = member.decoder.start(member.encode(first.source(LENGTHS), 3), 1)
        attention = member.decoder.step(random_inputs()[:, 0], start).attention
        of_members += [] if attention is None else [attention.mean((1, 2))]
    if not of_members:
        assert step.attention is None
        return
    assert step.attention is not None
    torch.testing.assert_close(step.attention[:, 0, 0], torch.stack(of_members).mean(0))
    assert step.attention.masked_fill(memory.mask[:, None, None], 0).abs().max() == 0
    torch.testing.assert_close(step.attention.sum(-1), torch.ones_like(step.attention.sum(-1)))


def test_small_probabilities_do_not_underflow() -> None:
    logits = torch.tensor([[0.0, -2000.0]], dtype=torch.float64)
    torch.testing.assert_close(mean_log_probability([logits, logits - 5]), logits)
    half = mean_log_probability([logits.bfloat16(), logits.bfloat16()])
    assert half.dtype == torch.float32


def test_the_maximum_length_of_an_ensemble_is_the_smallest_of_its_members() -> None:
    members = [one.build() for one in ENSEMBLES["one of each kind"]]
    limits = [one.max_source_length for one in members if one.max_source_length is not None]
    assert build_ensemble(members).max_source_length == min(limits, default=None)
    limits = [one.max_target_length for one in members if one.max_target_length is not None]
    assert limits
    assert build_ensemble(members).max_target_length == min(limits)

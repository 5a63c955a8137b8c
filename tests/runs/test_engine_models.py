"""Whatever CTranslate2 can express, it computes as torch does; the rest it names."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from engine_models import (
    VOCABULARY,
    by_torch,
    engine_of,
    output_bias,
    random_model,
    side,
    some_sources,
    torch_scores,
)
from torch import Tensor

from seqloom.config.schema.decoding import BeamConfig, GreedyConfig, SearchConfig
from seqloom.core.signature import NoSource, Signature, Tokens
from seqloom.decoding.beam import Candidates
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import SearchRequest
from seqloom.models.build import build_model
from seqloom.runs.engine.agreement import measure_agreement
from seqloom.runs.engine.convert import MAX_POSITIONS
from seqloom.runs.engine.support import unsupported_model
from seqloom.tasks.task import ModelInput
from seqloom.text.vocabulary import END, UNKNOWN
from tiny_runs import SPEAKER, recipe

POSITIONS = {
    "sinusoidal": "{kind='sinusoidal'}",
    "learned": "{kind='learned', max_length=24}",
    "one-hot": "{kind='one-hot', max_length=8, join='add'}",
    "rotary": "{kind='rotary'}",
    "no-positions": "{kind='none'}",
}
BOTH_SIDES = {
    f"{norm}-{activation}-{name}": side(
        norm=f"'{norm}'", activation=f"'{activation}'", positions=positions
    )
    for norm in ("pre", "post")
    for activation in ("relu", "gelu")
    for name, positions in POSITIONS.items()
}
BOTH_SIDES |= {
    "not-scaled": side(attention="{heads=2, score={kind='dot', scale='one'}}"),
    "scaled-by-width": side(attention="{heads=2, score={kind='dot', scale='width'}}"),
    "wide-attention": side(attention="{heads=2, width=24}"),
    "one-head": side(attention="{heads=1}"),
}
MODELS = {name: (part, part, "none") for name, part in BOTH_SIDES.items()}
MODELS |= {
    "tied-output": (side(), side(), "output"),
    "all-tied": (side(), side(), "all"),
    "deep-reader": (side(layers="4"), side(layers="1"), "none"),
    "narrow-writer": (side(width="12", feedforward="20"), side(), "output"),
    "unlike-sides": (
        side(width="12", norm="'post'", attention="{heads=3}", positions="{kind='rotary'}"),
        side(activation="'gelu'", positions="{kind='learned', max_length=30}"),
        "none",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_can_be_expressed_computes_the_same(name: str, tmp_path: Path) -> None:
    model = random_model(*MODELS[name])
    assert unsupported_model(model) == []
    engine = engine_of(model, tmp_path)
    longest = min(7, (model.max_source_length or 99) - 1)
    batch = some_sources(longest=longest)
    random = np.random.default_rng(3)
    targets = [random.integers(4, VOCABULARY, n).tolist() for n in random.integers(0, 7, 20)]
    ours = torch_scores(model, batch, targets)
    theirs = engine.score(
        [(one.source or (), row) for one, row in zip(batch, targets, strict=True)]
    )
    for known, scored in zip(ours, theirs, strict=True):
        assert scored == pytest.approx(known, abs=1e-4)

    decoding, request = GreedyConfig(length_penalty=0.7), SearchRequest([8] * len(batch))
    found = engine.search(batch, request, decoding, "tokens")
    best = by_torch(model, batch, request, decoding)
    answered = [(mine[0], other[0]) for mine, other in zip(best, found, strict=True) if other]
    assert answered
    for mine, other in answered:
        assert other.tokens == mine.tokens
        assert other.score == pytest.approx(mine.score, abs=1e-4)
        assert other.log_probabilities == pytest.approx(mine.log_probabilities, abs=1e-4)
    assert measure_agreement(model, engine).is_exact


class OneWider(Candidates):
    """The one point in which its beam is not ours: END does not count among the best tokens."""

    @classmethod
    def of(cls, totals: Tensor, allowed: Tensor, width: int) -> Candidates:
        return Candidates.of(totals, allowed, width + (width > 1))


DECODINGS: dict[str, tuple[SearchConfig, int]] = {
    "greedy": (GreedyConfig(length_penalty=0.5), 1),
    "beam of one": (BeamConfig(width=1), 1),
    "beam": (BeamConfig(width=5), 1),
    "many outputs": (BeamConfig(width=5), 3),
    "first finished": (BeamConfig(width=4, finished=1), 1),
    "many finished": (BeamConfig(width=2, finished=5), 2),
    "no exponent": (BeamConfig(width=4, length_penalty=0.0), 2),
    "large exponent": (BeamConfig(width=4, length_penalty=1.8), 1),
    "unknown allowed": (BeamConfig(width=3, allow_unknown=True), 1),
}


@pytest.mark.parametrize("name", DECODINGS)
@pytest.mark.parametrize("ending", [3.0, 5.0])
def test_what_is_answered_is_what_our_search_finds(
    name: str, ending: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With limits of their own for each source, and tokens that may not be put out."""
    monkeypatch.setattr("seqloom.decoding.beam.Candidates", OneWider)
    decoding, n_best = DECODINGS[name]
    model = random_model(side(), side(), ending=ending)
    engine = engine_of(model, tmp_path)
    batch = some_sources(40)
    limits = [4 + place % 9 for place in range(len(batch))]
    request = SearchRequest(limits, n_best=n_best)
    ours = by_torch(model, batch, request, decoding)
    found = engine.search(batch, request, decoding, "score")
    answered = [(mine, other) for mine, other in zip(ours, found, strict=True) if other is not None]
    assert len(answered) > 5
    for mine, other in answered:
        assert [one.tokens for one in other] == [one.tokens for one in mine]
        assert [one.score for one in other] == pytest.approx([one.score for one in mine], abs=1e-4)
        assert [one.finished for one in other] == [one.finished for one in mine]
        if isinstance(decoding, BeamConfig) and decoding.width > 1:
            assert all(one.finished for one in mine)
    unscored = engine.search(batch, request, decoding, "none")
    assert [tokens_of(one) for one in unscored] == [tokens_of(one) for one in found]


def tokens_of(found: list[Hypothesis] | None) -> list[tuple[int, ...]] | None:
    return None if found is None else [one.tokens for one in found]


def test_a_greedy_output_that_nobody_wants_the_score_of_has_none(tmp_path: Path) -> None:
    engine = engine_of(random_model(side(), side(), ending=5.0), tmp_path)
    batch, request = some_sources(9), SearchRequest([8] * 9)
    for decoding, known in ((GreedyConfig(), False), (BeamConfig(width=3), True)):
        for answer in engine.search(batch, request, decoding, "none"):
            assert all(math.isfinite(one.score) == known for one in answer or ())


def test_what_may_not_be_put_out_is_left_to_torch(tmp_path: Path) -> None:
    model = random_model(side(), side())
    bias = output_bias(model)
    bias[UNKNOWN] += 20.0
    engine = engine_of(model, tmp_path)
    batch = some_sources()
    request = SearchRequest([9] * len(batch))
    assert engine.search(batch, request, GreedyConfig(), "none") == [None] * len(batch)
    bias[END] += 40.0
    engine = engine_of(model, tmp_path)
    assert None not in engine.search(batch, request, GreedyConfig(), "none")


def test_what_is_too_long_for_the_stored_positions_is_left_to_torch(tmp_path: Path) -> None:
    model = random_model(side(), side(), ending=20.0)
    engine = engine_of(model, tmp_path)
    (short,) = some_sources(1)
    long = ModelInput((5,) * MAX_POSITIONS, ())
    found = engine.search([short, long], SearchRequest([9, 9]), GreedyConfig(), "tokens")
    assert found[0] is not None
    assert found[1] is None
    found = engine.search(
        [short, short], SearchRequest([MAX_POSITIONS + 1, 9]), GreedyConfig(), "tokens"
    )
    assert found[0] is None
    assert found[1] is not None
    just = ModelInput((5,) * (MAX_POSITIONS - 1), ())
    (answer,) = engine.search([just], SearchRequest([9]), GreedyConfig(), "tokens")
    (ours,) = by_torch(model, [just], SearchRequest([9]), GreedyConfig())
    assert answer is not None
    assert answer[0].log_probabilities == pytest.approx(ours[0].log_probabilities, abs=1e-4)


def test_a_source_of_no_tokens_is_left_to_torch(tmp_path: Path) -> None:
    model = random_model(side(), side())
    engine = engine_of(model, tmp_path)
    assert engine.search([ModelInput((), ())], SearchRequest([9]), GreedyConfig(), "tokens") == [
        None
    ]


INEXPRESSIBLE = {
    "score={kind='additive'}": "model.decoder.attention.score: only dot products .* 'additive'",
    "score={kind='bilinear'}": "model.decoder.attention.score: only dot products .* 'bilinear'",
    "score={kind='rbf'}": "model.decoder.attention.score: only dot products .* 'rbf'",
    "projection='tanh'": "model.decoder.attention.projection: only 'linear' .* 'tanh'",
    "projection='none'": "model.decoder.attention.projection: only 'linear' .* 'none'",
    "values='states'": "model.decoder.attention.values: only 'learned' .* 'states'",
    "output_projection=false": "model.decoder.attention.output_projection: heads that are not merged",
    "selection='argmax'": "model.decoder.attention.selection: only 'softmax'",
}


@pytest.mark.parametrize("change", INEXPRESSIBLE)
def test_an_attention_that_cannot_be_expressed_is_named(change: str) -> None:
    model = random_model(side(), side(attention=f"{{heads=2, {change}}}"))
    (reason,) = unsupported_model(model)
    assert re.match(INEXPRESSIBLE[change], reason)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"embedding": "{kind='one-hot'}"},
            ["model.encoder.embedding: one-hot", "embedding.width"],
        ),
        ({"embedding": "{width=6}"}, ["model.encoder.embedding.width: a width of its own"]),
        ({"positions": "{kind='one-hot'}"}, ["model.encoder.positions: appended"]),
        ({"positions": "{kind='learned', join='append'}"}, ["model.encoder.positions: appended"]),
    ],
)
def test_an_embedding_that_cannot_be_expressed_is_named(
    changes: dict[str, str], words: list[str]
) -> None:
    reasons = unsupported_model(random_model(side(**changes), side()))
    assert len(reasons) == len(words)
    assert all(word in reason for word, reason in zip(words, reasons, strict=True))


def test_a_gap_in_the_ways_around_cannot_be_expressed() -> None:
    (reason,) = unsupported_model(random_model(side(remove_residual="1"), side()))
    assert (
        reason
        == "model.encoder.remove_residual: a layer without a way around it cannot be expressed"
    )


def test_copying_cannot_be_expressed() -> None:
    model = random_model(side(), side(copying="true"), tie="all")
    (reason,) = unsupported_model(model)
    assert reason.startswith("model.decoder.copying: a mixture with the source's tokens cannot")


def test_every_reason_is_given_at_once() -> None:
    hard = "{heads=2, score={kind='rbf'}, selection='argmax', output_projection=false}"
    model = random_model(side(attention=hard), side(positions="{kind='one-hot'}"))
    assert len(unsupported_model(model)) == 4


def test_recurrent_models_and_language_models_say_why_they_stay() -> None:
    plain = build_model(recipe().model, Signature(Tokens(9), Tokens(9), shared=False))
    assert [reason.partition(",")[0] for reason in unsupported_model(plain)] == [
        "model.encoder is recurrent",
        "model.decoder is recurrent",
    ]
    speaker = build_model(recipe(*SPEAKER).model, Signature(NoSource(), Tokens(9), shared=False))
    assert unsupported_model(speaker) == ["a language model has no encoder, and stays on torch"]

"""Search with CTranslate2: the same outputs as torch, and None where they could differ."""

import math
from pathlib import Path

import pytest
from engine_models import (
    convert_and_load,
    output_bias,
    random_model,
    random_sources,
    search_with_torch,
    side,
)

from seqloom.config.schema.decoding import BeamConfig, GreedyConfig, SearchConfig
from seqloom.data.modalities.text import TextInput
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import SearchRequest
from seqloom.inference.engine.convert import MAX_POSITIONS
from seqloom.tasks.task import ModelInput
from seqloom.text.vocabulary import END, UNKNOWN

DECODINGS: dict[str, tuple[SearchConfig, int]] = {
    "greedy": (GreedyConfig(length_penalty=0.5), 1),
    "beam width 1": (BeamConfig(width=1), 1),
    "beam": (BeamConfig(width=5), 1),
    "n-best": (BeamConfig(width=5), 3),
    "first finished": (BeamConfig(width=4, finished=1), 1),
    "many finished": (BeamConfig(width=2, finished=5), 2),
    "no length penalty": (BeamConfig(width=4, length_penalty=0.0), 2),
    "large length penalty": (BeamConfig(width=4, length_penalty=1.8), 1),
    "unknown allowed": (BeamConfig(width=3, allow_unknown=True), 1),
    "unfinished outputs ranked": (BeamConfig(width=3, rank_unfinished=True), 2),
}


@pytest.mark.parametrize("name", DECODINGS)
@pytest.mark.parametrize("end_bias", [3.0, 5.0])
@pytest.mark.parametrize("counts_end", [False, True])
def test_search_finds_the_same_outputs_as_torch(
    name: str, end_bias: float, counts_end: bool, tmp_path: Path
) -> None:
    """Each source has a length limit of its own, and some tokens are forbidden."""
    decoding, n_best = DECODINGS[name]
    settings = {"length_counts_end": counts_end}
    if isinstance(decoding, BeamConfig):
        settings["extra_candidate"] = True
    decoding = decoding.model_copy(update=settings)
    model = random_model(side(), side(), end_bias=end_bias)
    engine = convert_and_load(model, tmp_path)
    batch = random_sources(40)
    limits = [4 + index % 9 for index in range(len(batch))]
    request = SearchRequest(limits, n_best=n_best)
    expected = search_with_torch(model, batch, request, decoding)
    found = engine.search(batch, request, decoding, "score")
    answered = [pair for pair in zip(expected, found, strict=True) if pair[1] is not None]
    if counts_end or n_best == 1 or decoding.length_penalty == 0:
        assert len(answered) > 5
    for ours, theirs in answered:
        assert theirs is not None
        assert [one.tokens for one in theirs] == [one.tokens for one in ours]
        assert [one.score for one in theirs] == pytest.approx([one.score for one in ours], abs=1e-4)
        assert [one.finished for one in theirs] == [one.finished for one in ours]
        if isinstance(decoding, BeamConfig) and decoding.width > 1:
            assert all(one.finished for one in ours)
    without_scores = engine.search(batch, request, decoding, "none")
    assert [tokens_of(one) for one in without_scores] == [tokens_of(one) for one in found]


def test_hypotheses_are_ranked_again_if_end_does_not_count(tmp_path: Path) -> None:
    """CTranslate2 counts END. Here the best output changes for some sources if END does not."""
    model = random_model(side(), side(), end_bias=3.0)
    engine = convert_and_load(model, tmp_path)
    batch = random_sources(60)
    request = SearchRequest([12] * len(batch))
    without_end, with_end = (
        engine.search(batch, request, BeamConfig(width=5, length_counts_end=counts_end), "score")
        for counts_end in (False, True)
    )
    pairs = [pair for pair in zip(without_end, with_end, strict=True) if None not in pair]
    assert len(pairs) > 10
    assert any(tokens_of(ours) != tokens_of(other) for ours, other in pairs)


def tokens_of(hypotheses: list[Hypothesis] | None) -> list[tuple[int, ...]] | None:
    return None if hypotheses is None else [one.tokens for one in hypotheses]


def test_greedy_outputs_have_no_score_unless_requested(tmp_path: Path) -> None:
    engine = convert_and_load(random_model(side(), side(), end_bias=5.0), tmp_path)
    batch, request = random_sources(9), SearchRequest([8] * 9)
    for decoding, has_score in ((GreedyConfig(), False), (BeamConfig(width=3), True)):
        for hypotheses in engine.search(batch, request, decoding, "none"):
            assert all(math.isfinite(one.score) == has_score for one in hypotheses or ())


def test_outputs_with_forbidden_tokens_are_left_to_torch(tmp_path: Path) -> None:
    model = random_model(side(), side())
    bias = output_bias(model)
    bias[UNKNOWN] += 20.0
    engine = convert_and_load(model, tmp_path)
    batch = random_sources()
    request = SearchRequest([9] * len(batch))
    assert engine.search(batch, request, GreedyConfig(), "none") == [None] * len(batch)
    bias[END] += 40.0
    engine = convert_and_load(model, tmp_path)
    assert None not in engine.search(batch, request, GreedyConfig(), "none")


def test_texts_longer_than_the_stored_positions_are_left_to_torch(tmp_path: Path) -> None:
    model = random_model(side(), side(), end_bias=20.0)
    engine = convert_and_load(model, tmp_path)
    (short,) = random_sources(1)
    too_long = ModelInput(TextInput((5,) * MAX_POSITIONS), ())
    found = engine.search([short, too_long], SearchRequest([9, 9]), GreedyConfig(), "tokens")
    assert found[0] is not None
    assert found[1] is None
    request = SearchRequest([MAX_POSITIONS + 1, 9])
    found = engine.search([short, short], request, GreedyConfig(), "tokens")
    assert found[0] is None
    assert found[1] is not None
    longest = ModelInput(TextInput((5,) * (MAX_POSITIONS - 1)), ())
    (answer,) = engine.search([longest], SearchRequest([9]), GreedyConfig(), "tokens")
    (expected,) = search_with_torch(model, [longest], SearchRequest([9]), GreedyConfig())
    assert answer is not None
    assert answer[0].log_probabilities == pytest.approx(expected[0].log_probabilities, abs=1e-4)


def test_empty_sources_are_left_to_torch(tmp_path: Path) -> None:
    engine = convert_and_load(random_model(side(), side()), tmp_path)
    assert engine.search(
        [ModelInput(TextInput(), ())], SearchRequest([9]), GreedyConfig(), "tokens"
    ) == [None]

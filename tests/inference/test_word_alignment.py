"""Word alignment by attention: the heads that align best are found, saved and then used."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from seqloom.core.errors import ConfigError, DataError, StorageError
from seqloom.inference.alignment import (
    ScoredHeads,
    check_gold_links,
    find_heads,
    load_alignment_heads,
    save_alignment_heads,
    word_alignment,
)
from seqloom.inference.attention_maps import ALL_HEADS, HeadChoice
from seqloom.inference.options import PredictionOptions
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run, load
from seqloom.metrics.alignment_error import parse_gold
from seqloom.training.loop import train
from support.tiny_runs import TRANSFORMER, tiny_config

TEXTS = ["abcd", "ba", "dcab"]


def prediction_with_aligned_head(layer: int, head: int, shift: int, seed: int) -> Prediction:
    """Five words of one piece each. One head has the alignment i-i, the others are random."""
    heads = np.random.default_rng(seed).dirichlet(np.ones(6), size=(6, 2, 3))
    heads[:, layer, head] = np.roll(np.eye(6), shift, axis=0)
    words = (*range(5), -1)
    return Prediction(
        "a b c d e",
        0.0,
        tuple("abcde$"),
        tuple("abcde$"),
    ).with_attention(heads=torch.from_numpy(heads), word_of=words, source_word_of=words)


@pytest.mark.parametrize(
    ("layer", "head", "shift"), list(itertools.product((0, 1), (0, 2), (0, 1)))
)
def test_find_heads_ranks_the_aligned_head_and_shift_first(
    layer: int, head: int, shift: int
) -> None:
    outputs = [prediction_with_aligned_head(layer, head, shift, seed) for seed in range(8)]
    gold = [parse_gold("0-0 1-1 2-2 3-3 4-4")] * 8
    scored = find_heads(outputs, gold)
    assert scored[0].choice == HeadChoice(((layer, head),), shift)
    assert scored[0].scores.error_rate == 0
    error_rates = [candidate.scores.error_rate for candidate in scored]
    assert error_rates == sorted(error_rates)
    choices = [candidate.choice for candidate in scored]
    assert len(choices) == len(set(choices))
    all_heads = tuple(itertools.product(range(2), range(3)))
    assert HeadChoice(all_heads, 0) in choices
    assert HeadChoice(all_heads[:3], 1) in choices  # a layer


def test_predictions_without_attention_are_an_error() -> None:
    with pytest.raises(ConfigError, match="no attention, so it cannot align words"):
        word_alignment(Prediction("a", 0.0))
    with pytest.raises(ConfigError, match="no attention, so it has no heads to choose from"):
        find_heads([Prediction("a", 0.0)], [parse_gold("0-0")])


def test_gold_links_beyond_the_sentence_are_an_error_that_lists_all() -> None:
    pairs = [("a b", "c d"), ("a", "b"), ("a b", "c")]
    gold = [parse_gold(line) for line in ("0-0 2-1 1p2", "0-0", "0-1")]
    with pytest.raises(
        DataError, match=r"(?s)g\.txt: some links refer.*line 1: 1-2, 2-1\n  line 3: 0-1$"
    ):
        check_gold_links(gold, pairs, "g.txt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two layers of two heads. Each letter is a word."""
    folder = tmp_path_factory.mktemp("alignment") / "run"
    two_layers = tuple(setting.replace("layers=1", "layers=2") for setting in TRANSFORMER)
    train(tiny_config(*two_layers, "training.steps=1", "training.evaluate_every=1"), folder)
    return folder


@pytest.fixture
def run(folder: Path) -> Run:
    run = load(folder)
    torch.manual_seed(0)
    for parameter in run.model.parameters():  # all heads differ
        nn.init.normal_(parameter, std=0.7)
    return run


@pytest.mark.slow
def test_saved_heads_are_used_for_alignment(folder: Path, run: Run) -> None:
    (before,) = run.score(["abcd"], ["dcba"], heads=True)
    assert before.heads is not None
    assert before.attention is not None
    choice = HeadChoice(((1, 0),), shift=1)
    scores = find_heads([before], [parse_gold("0-0")])[0].scores
    save_alignment_heads(folder, ScoredHeads(choice, scores), run.weights_digest)
    reloaded = load(folder)
    assert reloaded.predictor.head_choice == choice
    assert reloaded.heads_note == ""
    reloaded.model.load_state_dict(run.model.state_dict())
    (after,) = reloaded.score(["abcd"], ["dcba"])
    assert after.alignment_weights is not None
    assert after.attention is not None
    torch.testing.assert_close(after.attention, before.attention)  # the mean of all heads
    shifted = before.heads[[1, 2, 3, 4, 4], 1, 0]
    torch.testing.assert_close(after.alignment_weights, shifted)
    ((output, *_),) = reloaded.predict(["abcd"], PredictionOptions(heads=True))
    assert output.heads is not None
    assert output.alignment_weights is not None
    assert output.alignment_weights.shape == output.heads[:, 0, 0].shape


@pytest.mark.slow
def test_heads_of_other_weights_are_ignored_with_a_note(folder: Path, run: Run) -> None:
    scores = find_heads(run.score(["ab"], ["ba"], heads=True), [parse_gold("0-0")])[0].scores
    save_alignment_heads(folder, ScoredHeads(HeadChoice(((0, 0),)), scores), "other weights")
    choice, note = load_alignment_heads(folder, run.weights_digest)
    assert choice == ALL_HEADS
    assert "were chosen for other weights, so all heads are averaged" in note
    assert load(folder).heads_note == note


@pytest.mark.slow
def test_damaged_heads_file_is_an_error(folder: Path, run: Run) -> None:
    scores = find_heads(run.score(["ab"], ["ba"], heads=True), [parse_gold("0-0")])[0].scores
    best = ScoredHeads(HeadChoice(((0, 0),)), scores)
    path = save_alignment_heads(folder, best, run.weights_digest)
    content = json.loads(path.read_bytes())
    path.write_text(json.dumps({**content, "shift": 1}), encoding="utf-8")
    with pytest.raises(StorageError, match=r"(?s)is damaged:.*Remove this folder and choose"):
        load(folder)
    save_alignment_heads(folder, best, run.weights_digest)
    assert load(folder).predictor.head_choice.heads == ((0, 0),)


@pytest.mark.slow
def test_links_point_to_the_largest_weight_of_each_row(run: Run) -> None:
    for output in run.score(TEXTS, [text[::-1] for text in TEXTS]):
        aligned = word_alignment(output)
        assert aligned.weights.shape == (len(aligned.targets), len(aligned.sources))
        assert (aligned.weights.sum(axis=1) <= 1 + 1e-6).all()
        best = [aligned.sources[int(column)] for column in aligned.weights.argmax(axis=1)]
        assert aligned.links == list(zip(best, aligned.targets, strict=True))

"""The heads that align best: found, stored, and used from then on."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from seqloom.core.errors import ConfigError, DataError, StorageError
from seqloom.metrics.alignment_error import parse_gold
from seqloom.runs.alignment import (
    ScoredHeads,
    check_gold_links,
    find_heads,
    load_alignment_heads,
    save_alignment_heads,
    word_alignment,
)
from seqloom.runs.attention_maps import ALL_HEADS, HeadChoice, choose_heads
from seqloom.runs.options import PredictionOptions
from seqloom.runs.prediction import Prediction
from seqloom.runs.run import Run, load
from seqloom.training.loop import train
from tiny_runs import TRANSFORMER, recipe

TEXTS = ["abcd", "ba", "dcab"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two layers of two heads each, of one letter a word."""
    folder = tmp_path_factory.mktemp("aligning") / "run"
    deep = tuple(change.replace("layers=1", "layers=2") for change in TRANSFORMER)
    train(recipe(*deep, "training.steps=1", "training.evaluate_every=1"), folder)
    return folder


@pytest.fixture
def run(folder: Path) -> Run:
    run = load(folder)
    torch.manual_seed(0)
    for parameter in run.model.parameters():  # heads that all look somewhere else
        nn.init.normal_(parameter, std=0.7)
    return run


def looking(layer: int, head: int, shift: int, seed: int) -> Prediction:
    """Five words of one piece each, in whose attention one head alone knows the alignment i-i."""
    noise = np.random.default_rng(seed).dirichlet(np.ones(6), size=(6, 2, 3))
    noise[:, layer, head] = np.roll(np.eye(6), shift, axis=0)
    words = (*range(5), -1)
    return Prediction(
        "a b c d e",
        0.0,
        tuple("abcde$"),
        tuple("abcde$"),
        heads=torch.from_numpy(noise),
        word_of=words,
        source_word_of=words,
    )


@pytest.mark.parametrize(
    ("layer", "head", "shift"), list(itertools.product((0, 1), (0, 2), (0, 1)))
)
def test_the_head_that_knows_is_found_and_the_step_at_which_it_does(
    layer: int, head: int, shift: int
) -> None:
    outputs = [looking(layer, head, shift, seed) for seed in range(8)]
    gold = [parse_gold("0-0 1-1 2-2 3-3 4-4")] * 8
    candidates = find_heads(outputs, gold)
    best = candidates[0]
    assert best.choice == HeadChoice(((layer, head),), shift)
    assert best.scores.error_rate == 0
    rates = [one.scores.error_rate for one in candidates]
    assert rates == sorted(rates)
    choices = [one.choice for one in candidates]
    assert len(choices) == len(set(choices))
    every = tuple(itertools.product(range(2), range(3)))
    assert HeadChoice(every, 0) in choices
    assert HeadChoice(every[:3], 1) in choices  # a layer


def test_what_is_stored_is_used_from_then_on(folder: Path, run: Run) -> None:
    (before,) = run.score(["abcd"], ["dcba"], heads=True)
    assert before.heads is not None
    assert before.attention is not None
    choice = HeadChoice(((1, 0),), shift=1)
    scores = find_heads([before], [parse_gold("0-0")])[0].scores
    save_alignment_heads(folder, ScoredHeads(choice, scores), run.weights_digest)
    again = load(folder)
    assert again.predictor.head_choice == choice
    assert again.heads_note == ""
    again.model.load_state_dict(run.model.state_dict())
    (after,) = again.score(["abcd"], ["dcba"])
    assert after.aligning is not None
    assert after.attention is not None
    torch.testing.assert_close(after.attention, before.attention)  # still the mean of all
    later = before.heads[[1, 2, 3, 4, 4], 1, 0]
    torch.testing.assert_close(after.aligning, later)
    (found,) = again.predict(["abcd"], PredictionOptions(heads=True))
    assert found[0].heads is not None
    assert found[0].aligning is not None
    assert found[0].aligning.shape == found[0].heads[:, 0, 0].shape


def test_heads_of_other_weights_are_not_used_and_that_is_told(folder: Path, run: Run) -> None:
    scores = find_heads(run.score(["ab"], ["ba"], heads=True), [parse_gold("0-0")])[0].scores
    save_alignment_heads(folder, ScoredHeads(HeadChoice(((0, 0),)), scores), "other weights")
    choice, note = load_alignment_heads(folder, run.weights_digest)
    assert choice == ALL_HEADS
    assert "were found for other weights, so all heads are averaged" in note
    assert load(folder).heads_note == note


def test_damage_to_what_is_stored_is_told(folder: Path, run: Run) -> None:
    scores = find_heads(run.score(["ab"], ["ba"], heads=True), [parse_gold("0-0")])[0].scores
    place = save_alignment_heads(
        folder, ScoredHeads(HeadChoice(((0, 0),)), scores), run.weights_digest
    )
    content = json.loads(place.read_bytes())
    place.write_text(json.dumps({**content, "shift": 1}), encoding="utf-8")
    with pytest.raises(StorageError, match=r"(?s)is damaged:.*Remove that folder, and find"):
        load(folder)
    save_alignment_heads(folder, ScoredHeads(HeadChoice(((0, 0),)), scores), run.weights_digest)
    assert load(folder).predictor.head_choice.heads == ((0, 0),)


def test_the_weights_of_an_alignment_are_those_its_links_are_the_largest_of(run: Run) -> None:
    for output in run.score(TEXTS, [text[::-1] for text in TEXTS]):
        found = word_alignment(output)
        assert found.weights.shape == (len(found.targets), len(found.sources))
        assert (found.weights.sum(axis=1) <= 1 + 1e-6).all()
        best = [found.sources[int(column)] for column in found.weights.argmax(axis=1)]
        assert found.links == list(zip(best, found.targets, strict=True))


def test_without_attention_there_is_nothing_to_align_by() -> None:
    with pytest.raises(ConfigError, match="no attention, and nothing to align words by"):
        word_alignment(Prediction("a", 0.0))
    with pytest.raises(ConfigError, match="no attention, and no heads to choose among"):
        find_heads([Prediction("a", 0.0)], [parse_gold("0-0")])


def test_a_layer_and_a_head_are_counted_from_one() -> None:
    assert choose_heads(2, 3, 2, 1).heads == ((1, 0),)
    assert choose_heads(2, 3, 2, None).heads == ((1, 0), (1, 1), (1, 2))
    assert choose_heads(2, 3, None, 3).heads == ((0, 2), (1, 2))
    with pytest.raises(ConfigError, match=r"(?s)no layer 3; this model has 2.*no head 4; this"):
        choose_heads(2, 3, 3, 4)


def test_gold_links_that_lead_nowhere_are_all_told() -> None:
    pairs = [("a b", "c d"), ("a", "b"), ("a b", "c")]
    gold = [parse_gold(line) for line in ("0-0 2-1 1p2", "0-0", "0-1")]
    with pytest.raises(
        DataError, match=r"(?s)g\.txt: links lead.*line 1: 1-2, 2-1\n  line 3: 0-1$"
    ):
        check_gold_links(gold, pairs, "g.txt")

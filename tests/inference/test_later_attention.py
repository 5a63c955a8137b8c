"""Attention that is computed when it is first read equals the attention that a search stores."""

import copy
import gc
import pickle
import shutil
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from seqloom.config.schema.decoding import (
    BeamConfig,
    DecodingConfig,
    GreedyConfig,
    MinimumBayesRiskConfig,
    SampleConfig,
)
from seqloom.core.errors import ConfigError
from seqloom.inference.engine.select import EngineChoice, Engines
from seqloom.inference.prediction import Prediction
from seqloom.inference.predictor import Predictor
from seqloom.inference.run import Run, load
from seqloom.models.interface import Memory
from seqloom.tasks.task import ModelInput
from seqloom.training.loop import train
from support.tiny_runs import tiny_config

pytestmark = pytest.mark.slow

TEXTS = ["abc", "ba. dcb! a", "", "abz 😀 dcba", "see https://x.org/a now", "  ab ", "http://a.b"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("attention") / "run"
    splits = ("text.split_sentences=true", "text.pass_through=true")
    train(tiny_config("training.steps=40", "training.evaluate_every=40", *splits), folder)
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return load(folder)


def assert_same_attention(later: Prediction, stored: Prediction) -> None:
    assert (later.text, later.tokens) == (stored.text, stored.tokens)
    assert (later.attention is None) == (stored.attention is None)
    if later.attention is not None and stored.attention is not None:
        torch.testing.assert_close(later.attention, stored.attention, atol=1e-5, rtol=1e-4)
    assert later.alignment == stored.alignment
    assert (later.word_of, later.source_word_of) == (stored.word_of, stored.source_word_of)
    assert later.source_text == stored.source_text
    for part, other in zip(later.segments, stored.segments, strict=True):
        assert_same_attention(part, other)


@pytest.mark.parametrize(
    "decoding",
    [
        GreedyConfig(),
        BeamConfig(width=3),
        SampleConfig(samples=2, seed=3),
        MinimumBayesRiskConfig(samples=3, beam=2),
    ],
    ids=lambda each: each.kind,
)
def test_attention_computed_later_equals_stored_attention(
    run: Run, decoding: DecodingConfig
) -> None:
    count = 1 if decoding.kind == "greedy" else 2
    later = run.translate_n_best(TEXTS, count, decoding=decoding)
    stored = run.translate_n_best(TEXTS, count, decoding=decoding, attention=True)
    for outputs, others in zip(later, stored, strict=True):
        for output, other in zip(outputs, others, strict=True):
            assert_same_attention(output, other)


def test_attention_of_scored_targets_is_computed_later(run: Run) -> None:
    later, stored = (
        run.score(["abc", "d"], ["cba", "d"], attention=attention) for attention in (None, True)
    )
    for output, other in zip(later, stored, strict=True):
        assert_same_attention(output, other)


def count_forwards(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    encode, sizes = Predictor.encode, []

    def counting_encode(self: Predictor, batch: Sequence[ModelInput]) -> Memory:
        sizes.append(len(batch))
        return encode(self, batch)

    monkeypatch.setattr(Predictor, "encode", counting_encode)
    return sizes


def test_neighbours_are_computed_together_and_only_when_read(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["abc", "ba", "dcb", "a", "cd"]
    outputs = run.translate(texts, split=False)
    sizes = count_forwards(monkeypatch)
    assert not any(output.attention is None for output in reversed(outputs))
    assert sizes == [len(texts)]
    run.translate(texts, split=False)
    assert len(sizes) == 2, "the attention of unread outputs was computed"


def test_attention_false_computes_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    [output] = run.translate(["abc"], attention=False)
    sizes = count_forwards(monkeypatch)
    assert output.attention is None
    assert output.alignment == ()
    assert not sizes


def test_an_unread_output_does_not_keep_the_model_but_loads_it_again(folder: Path) -> None:
    own = load(folder)
    unread, expected = own.translate(["abc"])[0], own.translate(["abc"], attention=True)[0]
    model = weakref.ref(own.model)
    del own
    gc.collect()
    assert model() is None
    assert_same_attention(unread, expected)


def test_a_run_with_other_weights_is_not_used_for_attention(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "run")
    [unread] = load(tmp_path / "run").translate(["abc"])
    shutil.rmtree(tmp_path / "run")
    train(tiny_config(), tmp_path / "run")
    gc.collect()
    with pytest.raises(ConfigError, match="has other weights than those that generated"):
        _ = unread.attention


def test_outputs_can_be_pickled_and_copied(run: Run) -> None:
    read, unread = run.translate(["abc"])[0], run.translate(["abc"])[0]
    assert read.attention is not None
    copied = pickle.loads(pickle.dumps(read))
    assert torch.equal(copied.attention, read.attention)
    pickled = pickle.loads(pickle.dumps(unread))
    assert pickled == unread
    with pytest.raises(ConfigError, match="was not computed before the output was pickled"):
        _ = pickled.attention
    assert copy.deepcopy(unread).attention is not None


def test_the_default_is_served_by_the_engine_of_text_only_requests(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[bool] = []
    choose = Engines.choose_for_inputs

    def recorded(self: Engines, count: int, *others: Any) -> EngineChoice:
        chosen.append(others[-1].stores_attention)
        return choose(self, count, *others)

    monkeypatch.setattr(Engines, "choose_for_inputs", recorded)
    run.translate(["abc"])
    run.translate(["abc"], attention=True)
    assert chosen == [False, True]

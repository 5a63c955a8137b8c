"""Attention maps of predictions: the mean over all layers and heads, and chosen heads."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.decoding import GreedyConfig
from seqloom.core.errors import ConfigError
from seqloom.data.batching.collate import pad_ids
from seqloom.data.readers.splits import read_split
from seqloom.decoding.forced import force
from seqloom.inference.attention_maps import choose_heads
from seqloom.inference.options import PredictionOptions
from seqloom.inference.run import Run, load
from seqloom.text.vocabulary import END
from seqloom.training.loop import train
from support.tiny_runs import TRANSFORMER, tiny_config

TEXT = "abcd"
LENGTH = 6
LETTERS = {"kind": "synthetic", "min_length": LENGTH, "max_length": LENGTH, "symbols": 12}
SINGLE_HEAD = {
    "kind": "transformer",
    "width": 24,
    "layers": 1,
    "feedforward": 48,
    "dropout": 0.0,
    "attention": {"heads": 1},
    "positions": {"kind": "learned", "max_length": 16},
}


def test_layers_and_heads_are_counted_from_1() -> None:
    assert choose_heads(2, 3, 2, 1).heads == ((1, 0),)
    assert choose_heads(2, 3, 2, None).heads == ((1, 0), (1, 1), (1, 2))
    assert choose_heads(2, 3, None, 3).heads == ((0, 2), (1, 2))
    with pytest.raises(ConfigError, match=r"(?s)no layer 3; this model has 2.*no head 4; this"):
        choose_heads(2, 3, 3, 4)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two layers of two heads with random weights, so that all heads differ."""
    folder = tmp_path_factory.mktemp("attention") / "run"
    two_layers = tuple(setting.replace("layers=1", "layers=2") for setting in TRANSFORMER)
    train(tiny_config(*two_layers, "training.steps=1"), folder)
    run = load(folder)
    torch.manual_seed(0)
    for parameter in run.model.parameters():
        nn.init.normal_(parameter, std=0.7)
    return run


def all_heads(run: Run, target: str) -> Tensor:
    """(T, L, H, S) attention of the tokens of a target and of END over TEXT."""
    model_input = run.task.prepare(TEXT)
    source = pad_ids([np.array(model_input.source_tokens, dtype=np.int32)], last=END)
    target_ids = tuple(run.task.target_tokenizer.encode(target))
    with torch.inference_mode():
        memory = run.model.encode(source, 1)
        (forced,) = force(run.model.decoder, memory, [target_ids], lambda attention: attention)
    assert forced.attention is not None
    return forced.attention


@pytest.mark.slow
def test_attention_of_a_prediction_is_the_mean_over_layers_and_heads(run: Run) -> None:
    heads = all_heads(run, "dcba")
    assert heads.shape == (5, 2, 2, 5)
    mean = heads.mean((1, 2))
    for layer in range(2):
        for head in range(2):
            assert not torch.allclose(heads[:, layer, head], mean, atol=0.01)
    (scored,) = run.score([TEXT], ["dcba"])
    assert scored.attention is not None
    assert torch.allclose(scored.attention, mean, atol=1e-5)


@pytest.mark.slow
def test_search_and_scoring_return_the_same_attention(run: Run) -> None:
    (output,) = run.translate([TEXT], decoding=GreedyConfig(max_length=6), attention=True)
    assert output.attention is not None
    mean = all_heads(run, output.text).mean((1, 2))
    assert torch.allclose(output.attention, mean[: len(output.pieces)], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("task", [pytest.param("copy", marks=pytest.mark.long), "reverse"])
def test_attention_follows_the_known_alignment_of_copying_and_reversing(
    task: str, tmp_path: Path
) -> None:
    """Beam search on 100 unseen strings of six letters."""
    letters = {**LETTERS, "task": task}
    tables: dict[str, Any] = {
        "data": {
            "train": {**letters, "examples": 3000},
            "dev": {**letters, "examples": 20},
            "test": {**letters, "examples": 100},
        },
        "text": {"tokenizer": {"kind": "characters"}},
        "model": {"encoder": SINGLE_HEAD, "decoder": SINGLE_HEAD},
        "training": {
            "steps": 150,
            "batch_tokens": 512,
            "evaluate_every": 150,
            "optimizer": {"learning_rate": 0.01},
            "schedule": {"kind": "cosine", "warmup": 20},
        },
    }
    config = load_recipe(tables).config
    train(config, tmp_path / "run")
    texts = [example.source for example in read_split(config.data, "test")]
    run = load(tmp_path / "run")
    alignment = np.arange(LENGTH) if task == "copy" else np.arange(LENGTH)[::-1]
    is_aligned: list[bool] = []
    for output, *_ in run.predict(texts, PredictionOptions(heads=True), beam=3):
        assert output.attention is not None
        attention_map = output.attention_map(output.attention, merged=False)
        assert attention_map.weights.sum(axis=1) == pytest.approx(1, abs=1e-5)
        letters_only = attention_map.weights[:LENGTH, :LENGTH]
        is_aligned += (letters_only.argmax(axis=1) == alignment[: len(letters_only)]).tolist()
    assert np.mean(is_aligned) >= 0.95

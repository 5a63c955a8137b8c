"""What is shown of attention is the mean over all layers and heads."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.data.batching.collate import pad_ids
from seqloom.decoding.forced import force
from seqloom.runs.run import Run, load
from seqloom.text.vocabulary import END
from seqloom.training.loop import train
from tiny_runs import TRANSFORMER, recipe

TEXT = "abcd"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two layers of two heads each, all of which look somewhere else."""
    folder = tmp_path_factory.mktemp("attention") / "run"
    deep = tuple(change.replace("layers=1", "layers=2") for change in TRANSFORMER)
    train(recipe(*deep, "training.steps=1"), folder)
    run = load(folder)
    torch.manual_seed(0)
    for parameter in run.model.parameters():
        nn.init.normal_(parameter, std=0.7)
    return run


def every_head(run: Run, target: str) -> Tensor:
    """(T, L, H, S) where each token of a given target, and its END, looked in TEXT."""
    prepared = run.task.prepare(TEXT)
    source = pad_ids([np.array(prepared.source, dtype=np.int32)], last=END)
    answer = tuple(run.task.target_tokenizer.encode(target))
    with torch.inference_mode():
        memory = run.model.encode(source, 1)
        (forced,) = force(run.model.decoder, memory, [answer], lambda attention: attention)
    assert forced.attention is not None
    return forced.attention


def test_the_attention_of_a_prediction_is_the_mean_over_layers_and_heads(run: Run) -> None:
    heads = every_head(run, "dcba")
    assert heads.shape == (5, 2, 2, 5)
    mean = heads.mean((1, 2))
    for layer in range(2):
        for head in range(2):
            assert not torch.allclose(heads[:, layer, head], mean, atol=0.01)
    (scored,) = run.score([TEXT], ["dcba"])
    assert scored.attention is not None
    assert torch.allclose(scored.attention, mean, atol=1e-5)


def test_searching_and_scoring_show_the_same_attention(run: Run) -> None:
    (found,) = run.translate([TEXT], decoding=GreedyConfig(max_length=6))
    assert found.attention is not None
    mean = every_head(run, found.text).mean((1, 2))
    shown = len(found.pieces)
    assert torch.allclose(found.attention, mean[:shown], atol=1e-5)

"""Runs with rarely used model settings train, decode and can be analysed like all others."""

from pathlib import Path

import numpy as np
import pytest

from seqloom.analysis.explanation import explain
from seqloom.analysis.gradients import trace_gradients
from seqloom.config.schema.decoding import BeamConfig, GreedyConfig, SampleConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.inference.run import Run, load
from seqloom.training.loop import train
from support.tiny_runs import tiny_config

pytestmark = pytest.mark.slow

POSITION_SCORE = "{kind='position', max_source_length=9, max_target_length=7}"
SETTINGS = {
    "positions only": (
        f"model.decoder.attention={{score={POSITION_SCORE}}}",
        "model.decoder.context=['input', 'readout']",
        "model.encoder.self_attention={kind='attention', heads=2}",
    ),
    "fixed weights": (
        "model.decoder.attention={score={kind='fixed', max_length=9}}",
        "model.decoder.initial_state_layers=2",
        "model.encoder.positions={kind='sinusoidal', frequencies='vaswani', layout='halves'}",
    ),
    "hash table": (
        "model.decoder.attention={score={kind='dot'}, projection='tanh', projection_layers=2, "
        "selection='exact', tolerance=0.5}",
    ),
    "no feedback": ("model.decoder.feed_output=false",),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_run_is_trained_decoded_and_analysed(name: str, tmp_path: Path) -> None:
    train(tiny_config(*SETTINGS[name], "training.steps=4"), tmp_path / "run")
    run = load(tmp_path / "run")
    for decoding in (GreedyConfig(max_length=6), BeamConfig(width=3), SampleConfig(max_length=6)):
        [prediction] = run.translate(["abcd"], decoding=decoding, attention=True)
        assert prediction.attention is not None
        assert prediction.attention.shape[1] == 5
        sums = np.asarray(prediction.attention).sum(-1)
        assert ((np.abs(sums - 1) < 1e-5) | (name == "hash table")).all()
    assert explain(run, "abcd", target="dcba", step=2).find("scores").values.shape == (5,)
    gradients = trace_gradients(run, "abcd", target="dcba")
    assert max(gradients.source.whole) > 0
    with pytest.raises(ConfigError, match="CTranslate2 runs only Transformers"):
        load(tmp_path / "run", engine="ctranslate2").translate(["abcd"])


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """At most 9 source tokens and 7 target tokens, END included."""
    folder = tmp_path_factory.mktemp("limits") / "run"
    train(tiny_config(*SETTINGS["positions only"], "training.steps=4"), folder)
    return load(folder)


def test_lines_longer_than_the_table_are_an_error_that_names_the_setting(limited: Run) -> None:
    with pytest.raises(DataError) as caught:
        limited.translate(["a" * 8, "a" * 9])
    message = str(caught.value)
    assert "reads at most 9 tokens per line" in message
    assert "train with a larger model.decoder.attention.score.max_source_length" in message
    assert message.endswith("line 2: 10 tokens")
    with pytest.raises(DataError, match=r"larger model.decoder.attention.score.max_target_length"):
        limited.score(["a"], ["b" * 7])


def test_outputs_end_with_the_table(limited: Run) -> None:
    # END is forbidden, so that the output would go on.
    [prediction] = limited.translate(["abcd"], decoding=GreedyConfig(min_length=30))
    assert len(prediction.text) <= 7


def test_training_lines_longer_than_the_table_are_rejected_before_training(tmp_path: Path) -> None:
    score = "{kind='position', max_source_length=4, max_target_length=3}"
    with pytest.raises(DataError) as caught:
        train(tiny_config(f"model.decoder.attention={{score={score}}}"), tmp_path / "run")
    for words in (
        "set model.decoder.attention.score.max_source_length = 5, or drop them with "
        "data.filter.max_source_tokens = 3",
        "set model.decoder.attention.score.max_target_length = 5",
    ):
        assert words in str(caught.value)
    assert not (tmp_path / "run").exists()

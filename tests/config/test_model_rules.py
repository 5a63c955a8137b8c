"""Settings of a model that do not fit together are rejected, all at once and with a remedy."""

from typing import Any

import pytest

from seqloom.config.loading.loader import load_bundled_recipe, load_recipe
from seqloom.core.errors import ConfigError

ATTENTION = "model.decoder.attention="
CASES: dict[str, list[str]] = {
    ATTENTION + '{score={kind="fixed"}, projection="linear"}': [
        "score 'fixed' depends only on positions",
        "set projection = 'none', not 'linear'",
    ],
    ATTENTION + '{score={kind="fixed", max_length=0}}': ["max_length"],
    ATTENTION + '{score={kind="position", max_source_length=-1, max_target_length=0}}': [
        "max_source_length",
        "max_target_length",
    ],
    ATTENTION + '{score={kind="position"}, selection="nearest"}': ["use score 'dot'"],
    ATTENTION + '{score={kind="bilinear"}, selection="exact"}': [
        "selection 'exact' measures the distance",
        "use score 'dot'",
    ],
    ATTENTION + '{score={kind="dot"}, selection="exact"}': [
        "compares encoder states of width 384 with decoder states of width 192",
    ],
    ATTENTION + '{score={kind="dot"}, projection="linear", tolerance=0.1}': [
        "tolerance applies to selection 'exact' only, but selection is 'softmax'",
    ],
    ATTENTION + "{tolerance=-1.0}": ["tolerance"],
    ATTENTION + '{projection="linear", projection_layers=2}': [
        "projection_layers = 2 needs projection 'sigmoid' or 'tanh', not 'linear'",
    ],
    ATTENTION + "{projection_layers=0}": ["projection_layers"],
    "model.decoder.initial_state=flattened": [
        "decoder.initial_state 'flattened' needs an image encoder",
        "use 'mlp'",
    ],
    "model.decoder.initial_state_layers=0": ["initial_state_layers"],
    "model.encoder.self_attention={heads=5}": ["self_attention"],
    'model.encoder.self_attention={kind="attention", heads=5}': [
        "self_attention: width 384 cannot be split into 5 heads",
    ],
    'model.encoder.self_attention={kind="attention", values="learned", width=64}': [
        "self_attention returns vectors of width 64, which cannot replace states of width 384",
        "set self_attention.output_projection = true",
    ],
    "model.encoder.self_attention_residual=true": [
        "there is no self-attention to add the states to",
    ],
    'model.encoder.positions={kind="sinusoidal", frequencies="marian"}': ["frequencies"],
    'model.encoder.positions={kind="sinusoidal", layout="mixed"}': ["layout"],
    'model.encoder.positions={kind="sinusoidal", offset=-1}': ["offset"],
}


def error_of(*settings: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_bundled_recipe("demo", list(settings))
    return " ".join(str(caught.value).split())


@pytest.mark.parametrize("setting", CASES)
def test_a_setting_that_does_not_fit_is_rejected_with_a_reason(setting: str) -> None:
    message = error_of(setting)
    for words in CASES[setting]:
        assert words in message


def test_positional_scores_cannot_replace_the_state() -> None:
    message = error_of(ATTENTION + '{score={kind="fixed"}}', 'model.decoder.context=["state"]')
    assert "context 'state' would replace the state by a context that does not depend" in message


@pytest.mark.parametrize("kind", ["fixed", "position"])
@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_a_transformer_rejects_positional_scores(kind: str, side: str) -> None:
    attention = f'{{score={{kind="{kind}"}}, projection="none"}}'
    message = error_of(f'model.{side}={{kind="transformer", attention={attention}}}')
    assert f"attention.score '{kind}' is for recurrent networks" in message


@pytest.mark.parametrize("initial_state", ["zeros", "copy"])
def test_only_a_learned_initial_state_has_layers(initial_state: str) -> None:
    message = error_of(
        "model.encoder.width=96",
        f"model.decoder.initial_state={initial_state}",
        "model.decoder.initial_state_layers=2",
    )
    assert f"'{initial_state}' has no layers" in message


def test_all_settings_that_need_the_previous_token_are_listed() -> None:
    message = error_of(
        "model.decoder.feed_output=false",
        "model.decoder.readout_input=true",
        "model.decoder.embedding.word_dropout=0.1",
    )
    assert "readout_input: the readout cannot read the previous token" in message
    assert "embedding: no token is embedded" in message
    assert "embedding: no token" in error_of(
        "model.decoder.feed_output=false", "model.decoder.embedding.kind=one-hot"
    )
    tied = error_of("model.decoder.feed_output=false", "model.tie=output")
    assert "tie: the decoder has no embedding to share" in tied
    width = ["model.decoder.feed_output=false", "model.decoder.embedding.width=7"]
    assert load_bundled_recipe("demo", width).config


def test_a_language_model_must_be_fed_its_output() -> None:
    lines = {"kind": "lines", "path": "a.txt"}
    tables: dict[str, Any] = {
        "task": {"kind": "language-model"},
        "data": {"train": lines, "dev": lines},
        "model": {"decoder": {"kind": "recurrent", "feed_output": False}},
        "training": {"steps": 10},
    }
    with pytest.raises(ConfigError, match=r"decoder.feed_output: without an encoder"):
        load_recipe(tables)

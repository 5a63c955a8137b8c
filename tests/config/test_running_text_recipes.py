"""Which recipes of running text can be used, and what is said of the others."""

from typing import Any

import pytest

from seqloom.config.load import resolve
from seqloom.config.run import RunConfig
from seqloom.core.errors import ConfigError

TEXT = {"kind": "running-text", "path": "a.txt"}


def recipe(*changes: str, **data: Any) -> RunConfig:
    tables = {
        "task": {"kind": "language-model"},
        "data": {"train": TEXT, "dev": TEXT, **data},
        "model": {"decoder": {"kind": "recurrent"}},
        "training": {"steps": 10},
    }
    return resolve(tables, changes).config


def test_a_recipe_of_running_text() -> None:
    config = recipe()
    assert config.data.is_running_text
    assert config.model.encoder.kind == "none"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (("data.dev={kind='hold-out'}",), "would tear running text apart; hold out its end"),
        (("data.dev={kind='lines', path='b'}",), "lines cannot be mixed with data.train"),
        (("data.train={kind='lines', path='b'}",), "running-text cannot be mixed"),
        (("data.filter.max_target_tokens=9",), "a line left out would tear running text apart"),
        (("training.batching=padded",), "always comes in windows of one length"),
        (("text.sampling={}",), "running text is cut into subwords in one way"),
        (("data.train.begin=0.5", "data.train.end=0.5"), "leaves nothing before end"),
        (("data.dev.length=8", "data.dev.context=8"), "leaves nothing to answer in a window"),
        (("task.kind=translation", "model.encoder.kind=recurrent"), "has no source side"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(changes: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        recipe(*changes)
    assert words in " ".join(str(caught.value).split())


def test_files_of_one_split_are_one_text_of_one_shape() -> None:
    with pytest.raises(ConfigError, match="they have one length and one context"):
        recipe(train=[TEXT, {**TEXT, "length": 9}])
    assert len(recipe(train=[TEXT, TEXT]).data.train) == 2


def test_only_running_text_has_several_lines() -> None:
    sentences = {"kind": "lines", "path": "a.txt"}
    assert recipe("decoding.one_line=true").decoding.one_line
    with pytest.raises(ConfigError, match="only running text has several lines"):
        recipe("decoding.one_line=true", train=sentences, dev=sentences)


def test_what_is_taught_one_position_at_a_time_has_no_dropout_of_a_whole_pass() -> None:
    tables = {
        "data": {"train": {"kind": "bundled", "source": "de", "target": "en"}},
        "model": {
            "encoder": {"kind": "recurrent"},
            "decoder": {"kind": "recurrent", "context": ["input"], "locked_dropout": True},
        },
        "training": {"steps": 10},
    }
    with pytest.raises(ConfigError, match="are taught one position at a time"):
        resolve(tables)
    resolve(tables, ["model.decoder.context=['readout']"])


def test_an_output_layer_is_tied_without_a_tanh_where_widths_allow_it() -> None:
    assert recipe("model.tie=output").model.tie == "output"
    for changes in ("model.decoder.embedding.width=9", "model.decoder.readout_input=true"):
        with pytest.raises(ConfigError, match="needs features as wide as the embedding"):
            recipe("model.tie=output", changes)

"""Rules between the sections of a recipe, above all those for long text."""

from typing import Any

import pytest

from seqloom.config.loading.loader import load_bundled_recipe, load_recipe
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import ConfigError

TEXT = {"kind": "long-text", "path": "a.txt"}


def recipe(*changes: str, **data: Any) -> RunConfig:
    tables = {
        "task": {"kind": "language-model"},
        "data": {"train": TEXT, "dev": TEXT, **data},
        "model": {"decoder": {"kind": "recurrent"}},
        "training": {"steps": 10},
    }
    return load_recipe(tables, changes).config


def test_a_recipe_of_long_text_is_valid() -> None:
    config = recipe()
    assert config.data.is_long_text
    assert config.model.encoder.kind == "none"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            ("data.dev={kind='hold-out'}",),
            "single lines cannot be held out of long text; hold out its end",
        ),
        (
            ("data.dev={kind='lines', path='b'}",),
            "lines cannot be mixed with the kind of data.train",
        ),
        (("data.train={kind='lines', path='b'}",), "long-text cannot be mixed"),
        (("data.filter.max_target_tokens=9",), "single lines cannot be dropped from long text"),
        (("training.batching=padded",), "always read in windows of one length"),
        (("text.sampling={}",), "long text does not support subword sampling"),
        (("data.train.begin=0.5", "data.train.end=0.5"), "must be below end"),
        (("data.dev.length=8", "data.dev.context=8"), "leaves nothing to predict in a window"),
        (
            ("task.kind=translation", "model.encoder.kind=recurrent"),
            "which has no sources; use kind = 'parallel'",
        ),
    ],
)
def test_invalid_combinations_are_rejected_with_a_reason(
    changes: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        recipe(*changes)
    assert message in " ".join(str(caught.value).split())


def test_the_files_of_a_split_must_have_equal_windows() -> None:
    with pytest.raises(ConfigError, match="they must have the same length and context"):
        recipe(train=[TEXT, {**TEXT, "length": 9}])
    assert len(recipe(train=[TEXT, TEXT]).data.train) == 2


def test_only_long_text_can_stop_at_a_newline() -> None:
    sentences = {"kind": "lines", "path": "a.txt"}
    assert recipe("decoding.stop_at_newline=true").decoding.stop_at_newline
    with pytest.raises(ConfigError, match="only long text has several lines"):
        recipe("decoding.stop_at_newline=true", train=sentences, dev=sentences)


def test_decoders_computed_one_position_at_a_time_reject_sequence_dropout() -> None:
    tables = {
        "data": {"train": {"kind": "bundled", "source": "de", "target": "en"}},
        "model": {
            "encoder": {"kind": "recurrent"},
            "decoder": {"kind": "recurrent", "context": ["input"], "locked_dropout": True},
        },
        "training": {"steps": 10},
    }
    with pytest.raises(ConfigError, match="are computed one position at a time"):
        load_recipe(tables)
    load_recipe(tables, ["model.decoder.context=['readout']"])


def test_the_output_layer_can_be_tied_if_widths_match() -> None:
    assert recipe("model.tie=output").model.tie == "output"
    for changes in ("model.decoder.embedding.width=9", "model.decoder.readout_input=true"):
        with pytest.raises(ConfigError, match="needs inputs as wide as the embedding"):
            recipe("model.tie=output", changes)


@pytest.mark.parametrize("name", ["split_sentences", "pass_through"])
def test_only_translation_splits_and_passes_through(name: str) -> None:
    with pytest.raises(ConfigError, match=f"text.{name}: only translation can do this"):
        recipe(f"text.{name}=true")
    recipe(f"text.{name}=false")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (["text.tokenizer.kind=subwords"], (True, True)),
        (["text.tokenizer.kind=words"], (True, True)),
        (["text.tokenizer.kind=characters"], (False, False)),
        (["text.split_sentences=false"], (False, False)),
        (["text.split_sentences=true", "text.pass_through=false"], (True, False)),
        (["text.split_sentences=false", "text.pass_through=true"], (False, True)),
    ],
)
def test_runs_of_earlier_versions_split_words_and_subwords(
    settings: list[str], expected: tuple[bool, bool]
) -> None:
    config = load_bundled_recipe("demo", settings).config
    assert (config.splits_sentences, config.passes_through) == expected

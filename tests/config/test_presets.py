"""Presets: named settings that a recipe builds on."""

from typing import Any

import pytest

from seqloom.config.loading.bundled import bundled_presets
from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.presets import merge_tables
from seqloom.config.loading.toml import format_recipe, parse_toml
from seqloom.config.schema.transformer import TransformerDecoderConfig
from seqloom.core.errors import ConfigError
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model

DATA = {"data": {"train": {"kind": "bundled", "source": "de", "target": "en"}}}
every_preset = pytest.mark.parametrize("name", sorted(bundled_presets()))


def test_the_names_of_the_presets() -> None:
    assert set(bundled_presets()) == {"tiny", "small", "base", "low-resource", "exportable"}


@every_preset
def test_data_and_a_preset_are_a_complete_recipe(name: str) -> None:
    resolved = load_recipe({"preset": name, **DATA})
    given = parse_toml(bundled_presets()[name].read_bytes())
    assert set(given) - {"decoding"} == {"text", "model", "training"}
    assert resolved.origins["training.steps"] == "preset"
    assert resolved.origins["model.encoder.width"] == "preset"
    assert resolved.origins["data.train.source"] == "recipe"
    assert resolved.origins["model.encoder.embedding.noise"] == "default"
    assert load_recipe({**DATA, **given}).config == resolved.config


@every_preset
def test_a_formatted_recipe_needs_no_preset(name: str) -> None:
    config = load_recipe({"preset": name, **DATA}).config
    tables = parse_toml(format_recipe(config).encode())
    assert "preset" not in tables
    assert load_recipe(tables).config == config


def test_presets_are_ordered_by_model_size() -> None:
    sizes = []
    for name in ("tiny", "small", "base"):
        config = load_recipe({"preset": name, **DATA}).config
        tokens = Tokens(config.text.tokenizer.size)  # type: ignore[attr-defined]
        model = build_model(config.model, Signature(tokens, tokens, shared=True))
        sizes.append(sum(parameter.numel() for parameter in model.parameters()))
    assert sizes == sorted(sizes)
    assert sizes[2] > 10 * sizes[0]


def test_the_recipe_replaces_the_preset_and_overrides_replace_both() -> None:
    tables: dict[str, Any] = {
        "preset": "small",
        **DATA,
        "training": {"steps": 77_000, "optimizer": {"learning_rate": 3e-4}},
        "model": {"encoder": {"layers": 5}},
    }
    resolved = load_recipe(tables, ["model.encoder.layers=7", "model.decoder.dropout=0.4"])
    config, origins = resolved.config, resolved.origins
    assert (config.training.steps, origins["training.steps"]) == (77_000, "recipe")
    assert config.training.optimizer.learning_rate == 3e-4
    assert config.model.encoder.layers == 7  # type: ignore[attr-defined]
    assert origins["model.encoder.layers"] == "--set"
    assert isinstance(config.model.decoder, TransformerDecoderConfig)
    assert (config.model.decoder.dropout, origins["model.decoder.dropout"]) == (0.4, "--set")
    assert config.model.decoder.layers == 4
    assert origins["model.decoder.layers"] == "preset"


def test_a_table_of_another_kind_replaces_that_of_the_preset() -> None:
    tables = {
        "preset": "small",
        **DATA,
        "model": {"encoder": {"kind": "recurrent", "width": 256}, "decoder": {"kind": "recurrent", "readout": "tanh"}},
        "text": {"tokenizer": {"kind": "characters"}},
        "training": {"schedule": {"kind": "constant"}},
    }  # fmt: skip
    config = load_recipe(tables).config
    assert config.model.encoder.kind == "recurrent"
    assert config.model.tie == "all"  # a setting of [model], not of the encoder
    assert config.text.tokenizer.kind == "characters"
    assert config.training.schedule.warmup == 0


def test_overrides_can_choose_the_preset_and_change_its_kinds() -> None:
    config = load_recipe({"preset": "small", **DATA}, ["preset=tiny"]).config
    assert config == load_recipe({"preset": "tiny", **DATA}).config
    assert config == load_recipe(dict(DATA), ['preset = "tiny"']).config
    changed = load_recipe({"preset": "tiny", **DATA}, ["training.schedule.kind=constant"])
    assert changed.config.training.schedule.kind == "constant"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("smal", "did you mean 'small'?"),
        ("huge", "the presets are base, exportable"),
        (3, "the presets are"),
    ],
)
def test_an_unknown_preset_is_reported_together_with_other_problems(
    name: object, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_recipe({"preset": name, **DATA, "decoding": {"widht": 3}})
    assert f"preset: there is no preset {name!r}; {hint}" in str(caught.value)
    assert "decoding.widht: there is no such setting" in str(caught.value)


def test_merging_does_not_change_its_arguments() -> None:
    base, update = {"a": {"kind": "x", "b": 1}, "c": 2}, {"a": {"b": 3}, "d": [1]}
    assert merge_tables(base, update) == {"a": {"kind": "x", "b": 3}, "c": 2, "d": [1]}
    assert base == {"a": {"kind": "x", "b": 1}, "c": 2}
    assert update == {"a": {"b": 3}, "d": [1]}


@pytest.mark.parametrize(
    ("pairs", "preset"),
    [(1, "low-resource"), (100_000, "low-resource"), (100_001, "small"), (1_000_001, "base")],
)
def test_without_a_model_the_number_of_pairs_chooses_the_preset(pairs: int, preset: str) -> None:
    resolved = load_recipe(DATA, count_pairs=lambda data: pairs)
    assert resolved.config == load_recipe({"preset": preset, **DATA}).config
    assert f"the preset '{preset}', which suits {pairs:,} training pairs" in resolved.notes[0]


def test_pairs_are_not_counted_if_the_recipe_has_a_model_or_a_preset() -> None:
    def fail(data: object) -> int:
        raise AssertionError

    assert not load_recipe({"preset": "tiny", **DATA}, count_pairs=fail).notes
    assert not load_recipe(DATA, ["preset=tiny"], count_pairs=fail).notes


def test_without_a_model_other_tasks_are_an_error() -> None:
    with pytest.raises(ConfigError, match="model: is missing"):
        load_recipe({**DATA, "task": {"kind": "labels"}}, count_pairs=lambda data: 1)


@pytest.mark.parametrize("steps", [2, 300, 50_000])
def test_the_warm_up_of_a_preset_is_scaled_with_the_number_of_steps(steps: int) -> None:
    by_override = load_recipe({"preset": "small", **DATA}, [f"training.steps={steps}"])
    by_recipe = load_recipe({"preset": "small", **DATA, "training": {"steps": steps}})
    for resolved in (by_override, by_recipe):
        assert resolved.config.training.schedule.warmup == max(1, steps // 10)
        assert f"in proportion to {steps:,} instead of 10,000 steps" in resolved.notes[-1]


def test_a_warm_up_that_is_given_is_not_scaled() -> None:
    tables = {"preset": "small", **DATA, "training": {"steps": 300, "schedule": {"warmup": 7}}}
    assert load_recipe(tables).config.training.schedule.warmup == 7
    settings = ["training.steps=300", "training.schedule.warmup=8"]
    assert load_recipe({"preset": "small", **DATA}, settings).config.training.schedule.warmup == 8


def test_fewer_steps_scale_the_warm_up_of_a_recipe_and_more_steps_do_not() -> None:
    training = {"steps": 1000, "schedule": {"kind": "cosine", "warmup": 100}}
    tables = {"preset": "tiny", **DATA, "training": training}
    fewer = load_recipe(tables, ["training.steps=50"])
    assert fewer.config.training.schedule.warmup == 5
    assert "in proportion to 50 instead of 1,000 steps" in fewer.notes[-1]
    more = load_recipe(tables, ["training.steps=2000"])
    assert (more.config.training.schedule.warmup, more.notes) == (100, ())
    given = load_recipe(tables, ["training.steps=50", "training.schedule.warmup=7"])
    assert given.config.training.schedule.warmup == 7

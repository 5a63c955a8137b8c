"""Presets: settings that a recipe builds on."""

from typing import Any

import pytest

from seqloom.config.bundled import bundled_presets
from seqloom.config.load import dump, resolve
from seqloom.config.presets import overlay
from seqloom.config.toml import parse
from seqloom.core.errors import ConfigError
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model

DATA = {"data": {"train": {"kind": "bundled", "source": "de", "target": "en"}}}
every_preset = pytest.mark.parametrize("name", sorted(bundled_presets()))


def test_the_presets_are_these() -> None:
    assert set(bundled_presets()) == {"tiny", "small", "base", "low-resource"}


@every_preset
def test_data_and_a_preset_are_a_whole_recipe(name: str) -> None:
    resolved = resolve({"preset": name, **DATA})
    given = parse(bundled_presets()[name].read_bytes())
    assert set(given) == {"text", "model", "training"}
    assert resolved.origins["training.steps"] == "preset"
    assert resolved.origins["model.encoder.width"] == "preset"
    assert resolved.origins["data.train.source"] == "recipe"
    assert resolved.origins["model.encoder.norm"] == "default"
    assert resolve({**DATA, **given}).config == resolved.config


@every_preset
def test_what_is_written_down_needs_no_preset_any_more(name: str) -> None:
    config = resolve({"preset": name, **DATA}).config
    tables = parse(dump(config).encode())
    assert "preset" not in tables
    assert resolve(tables).config == config


def test_a_larger_preset_is_larger() -> None:
    sizes = []
    for name in ("tiny", "small", "base"):
        config = resolve({"preset": name, **DATA}).config
        tokens = Tokens(config.text.tokenizer.size)  # type: ignore[union-attr]
        model = build_model(config.model, Signature(tokens, tokens, shared=True))
        sizes.append(sum(parameter.numel() for parameter in model.parameters()))
    assert sizes == sorted(sizes)
    assert sizes[2] > 10 * sizes[0]


def test_the_recipe_has_the_last_word_and_overrides_the_very_last() -> None:
    tables: dict[str, Any] = {
        "preset": "small",
        **DATA,
        "training": {"steps": 77_000, "optimizer": {"learning_rate": 3e-4}},
        "model": {"encoder": {"layers": 5}},
    }
    resolved = resolve(tables, ["model.encoder.layers=7", "model.decoder.dropout=0.4"])
    config, origins = resolved.config, resolved.origins
    assert (config.training.steps, origins["training.steps"]) == (77_000, "recipe")
    assert config.training.optimizer.learning_rate == 3e-4
    assert config.model.encoder.layers == 7  # type: ignore[union-attr]
    assert origins["model.encoder.layers"] == "--set"
    assert (config.model.decoder.dropout, origins["model.decoder.dropout"]) == (0.4, "--set")
    assert config.model.decoder.layers == 4  # type: ignore[union-attr]
    assert origins["model.decoder.layers"] == "preset"


def test_a_table_of_another_kind_stands_alone() -> None:
    tables = {
        "preset": "small",
        **DATA,
        "model": {"encoder": {"kind": "recurrent", "width": 256}, "decoder": {"kind": "recurrent", "readout": "tanh"}},
        "text": {"tokenizer": {"kind": "characters"}},
        "training": {"schedule": {"kind": "constant"}},
    }  # fmt: skip
    config = resolve(tables).config
    assert config.model.encoder.kind == "recurrent"
    assert config.model.tie == "all"  # which is a setting of its own
    assert config.text.tokenizer.kind == "characters"
    assert config.training.schedule.warmup == 0


def test_set_can_choose_the_preset_and_change_its_kinds() -> None:
    config = resolve({"preset": "small", **DATA}, ["preset=tiny"]).config
    assert config == resolve({"preset": "tiny", **DATA}).config
    assert config == resolve(dict(DATA), ['preset = "tiny"']).config
    changed = resolve({"preset": "tiny", **DATA}, ["training.schedule.kind=constant"])
    assert changed.config.training.schedule.kind == "constant"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("smal", "did you mean 'small'?"), ("huge", "there are base, low-resource"), (3, "there are")],
)
def test_a_preset_that_is_not_there_is_told_with_all_else_that_is_wrong(
    name: object, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve({"preset": name, **DATA, "decoding": {"widht": 3}})
    assert f"preset: there is no preset {name!r}; {hint}" in str(caught.value)
    assert "decoding.widht: there is no such setting" in str(caught.value)


def test_nothing_that_is_given_is_changed() -> None:
    under, over = {"a": {"kind": "x", "b": 1}, "c": 2}, {"a": {"b": 3}, "d": [1]}
    assert overlay(under, over) == {"a": {"kind": "x", "b": 3}, "c": 2, "d": [1]}
    assert under == {"a": {"kind": "x", "b": 1}, "c": 2}
    assert over == {"a": {"b": 3}, "d": [1]}

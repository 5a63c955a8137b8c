"""The list of settings that `seqloom config` shows: key, value, origin and meaning."""

from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.settings_list import Setting, list_settings

TABLES = {
    "data": {"train": {"kind": "synthetic", "task": "copy", "examples": 10}},
    "model": {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
    "training": {"steps": 10, "clip": "none"},
}


def test_a_setting_has_a_value_an_origin_and_a_meaning() -> None:
    settings = {
        setting.key: setting for setting in list_settings(load_recipe(TABLES, ["training.seed=3"]))
    }
    assert settings["training.steps"] == Setting(
        "training.steps", "10", "recipe", "Number of optimiser steps."
    )
    assert settings["training.seed"].origin == "--set"
    assert settings["data.train.task"].value == '"copy"'
    assert settings["training.clip"].value == '"none"'
    assert settings["training.stopping.patience"].value == ""
    assert settings["decoding.kind"].meaning.startswith("Beam search: keeps the `width` best")
    assert settings["decoding.width"].origin == "default"


def test_every_setting_is_listed_once() -> None:
    resolved = load_recipe(TABLES)
    assert [setting.key for setting in list_settings(resolved)] == list(resolved.origins)


def test_settings_of_a_base_class_keep_their_meaning() -> None:
    settings = {setting.key: setting for setting in list_settings(load_recipe(TABLES))}
    assert settings["decoding.min_length"].meaning.startswith(
        "Minimum number of tokens before END."
    )
    assert settings["decoding.finished"].meaning.startswith("Stop after this many finished hyp")


def test_a_kind_is_described_by_its_own_docstring_if_it_has_one() -> None:
    settings = {setting.key: setting for setting in list_settings(load_recipe(TABLES))}
    assert settings["engine.kind"].meaning.startswith('Engine. "auto" uses "ctranslate2"')

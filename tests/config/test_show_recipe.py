"""What `seqloom config` shows: every setting, its value, its origin and its meaning."""

from seqloom.config.load import resolve
from seqloom.config.show import Line, lines

TABLES = {
    "data": {"train": {"kind": "synthetic", "task": "copy", "examples": 10}},
    "model": {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
    "training": {"steps": 10, "clip": "none"},
}


def test_a_line_says_what_is_set_by_whom_and_what_it_means() -> None:
    shown = {line.key: line for line in lines(resolve(TABLES, ["training.seed=3"]))}
    assert shown["training.steps"] == Line("training.steps", "10", "recipe", "Optimiser steps.")
    assert shown["training.seed"].origin == "--set"
    assert shown["data.train.task"].value == '"copy"'
    assert shown["training.clip"].value == '"none"'
    assert shown["training.stopping.patience"].value == ""
    assert shown["decoding.kind"].meaning == "The `width` best beginnings, extended together."
    assert shown["decoding.width"].origin == "default"


def test_every_setting_is_shown_once() -> None:
    resolved = resolve(TABLES)
    assert [line.key for line in lines(resolved)] == list(resolved.origins)


def test_settings_of_a_parent_class_keep_their_meaning() -> None:
    shown = {line.key: line for line in lines(resolve(TABLES))}
    assert shown["decoding.min_length"].meaning == "Tokens before END is allowed."
    assert shown["decoding.finished"].meaning.startswith("Stop after this many finished hyp")
    assert shown["training.label_smoothing"].meaning == ""

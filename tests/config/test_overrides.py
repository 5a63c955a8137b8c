"""--set a.b=c changes one setting, or reports why it cannot."""

from typing import Any

import pytest

from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import TomlSyntaxError, parse_value
from seqloom.config.schema.transformer import TransformerEncoderConfig
from seqloom.core.errors import ConfigError

TSV = {"kind": "tsv", "path": "a.tsv"}


def tables(**changes: Any) -> dict[str, Any]:
    return {
        "data": {"train": TSV},
        "model": {
            "encoder": {"kind": "recurrent", "cell": "lstm"},
            "decoder": {"kind": "recurrent"},
        },
        "training": {"steps": 10},
    } | changes


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("1e-3", 0.001),
        ("true", True),
        ("beam", "beam"),
        ('"12"', "12"),
        ("", ""),
        ("a=b", "a=b"),
        ("1\nother = 2", "1\nother = 2"),
        ("2024-01-01", "2024-01-01"),
        ("data/train.de", "data/train.de"),
        ('["a", "b"]', ["a", "b"]),
        ('{ kind = "tsv" }', {"kind": "tsv"}),
    ],
)
def test_a_value_is_toml_or_a_plain_string(text: str, value: object) -> None:
    parsed = parse_value(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize("text", ['["a"', "{", '"a', "'a", "[a]"])
def test_incomplete_toml_is_rejected(text: str) -> None:
    with pytest.raises(TomlSyntaxError):
        parse_value(text)


def test_later_overrides_win() -> None:
    config = load_recipe(tables(), ["training.steps=5", "training.steps=6"]).config
    assert config.training.steps == 6


def test_an_override_creates_missing_tables() -> None:
    config = load_recipe(tables(), ["text.tokenizer.kind=characters", "decoding.width=7"]).config
    assert config.text.tokenizer.kind == "characters"
    assert config.decoding.kind == "beam"
    assert config.decoding.width == 7


def test_an_override_can_set_a_table_or_a_list() -> None:
    resolved = load_recipe(
        tables(), ['decoding={kind = "greedy", min_length = 2}', 'text.tags=["<U>"]']
    )
    assert resolved.config.decoding.kind == "greedy"
    assert resolved.config.text.tags == ("<U>",)
    assert resolved.origins["decoding.min_length"] == "--set"


@pytest.mark.parametrize("key", ["data.train.1.path", "data.train[1].path"])
def test_a_list_entry_is_set_by_its_index(key: str) -> None:
    given = tables(data={"train": [TSV, TSV]})
    train = load_recipe(given, [f"{key}=b.tsv"]).config.data.train
    assert [corpus.model_dump()["path"] for corpus in train] == ["a.tsv", "b.tsv"]


@pytest.mark.parametrize("key", ["data.train.path", "data.train.0.path", "data.train[0].path"])
@pytest.mark.parametrize("train", [TSV, [TSV]])
def test_a_single_corpus_needs_no_index(key: str, train: Any) -> None:
    config = load_recipe(tables(data={"train": train}), [f"{key}=b.tsv"]).config
    assert config.data.train[0].model_dump()["path"] == "b.tsv"


def test_another_kind_keeps_shared_settings_and_reports_the_removed_ones() -> None:
    encoder = {"kind": "recurrent", "cell": "lstm", "width": 64, "embedding": {"noise": 0.1}}
    given = tables(model={"encoder": encoder, "decoder": {"kind": "recurrent"}})
    resolved = load_recipe(given, ["model.encoder.kind=transformer", "model.encoder.norm=post"])
    assert isinstance(resolved.config.model.encoder, TransformerEncoderConfig)
    assert resolved.config.model.encoder.width == 64
    assert resolved.config.model.encoder.embedding.model_dump()["noise"] == 0.1
    assert resolved.notes == (
        "--set model.encoder.kind=transformer: removed model.encoder.cell of the recipe, "
        "which kind 'transformer' does not have",
    )


def test_setting_the_same_kind_changes_nothing() -> None:
    resolved = load_recipe(tables(), ["model.encoder.kind=recurrent"])
    assert resolved.config == load_recipe(tables()).config
    assert resolved.notes == ()


def test_settings_of_a_new_kind_may_come_before_the_kind() -> None:
    given = tables(decoding={"kind": "beam", "width": 3})
    resolved = load_recipe(given, ["decoding.top_k=5", "decoding.kind=sample"])
    assert resolved.config.decoding.kind == "sample"
    assert resolved.config.decoding.top_k == 5


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("steps", "must have the form section.key=value, for example training.steps=500"),
        ("=5", "must have the form section.key=value, for example training.steps=500"),
        ("a..b=5", "must have the form section.key=value, for example training.steps=500"),
        ("training.steps.x=5", "training.steps is not a table, so it has no settings inside"),
        ("training.0.x=5", "training is not a list, so it has no entry 0"),
        ("data.train.2.path=x", "data.train has no entry 2; it has 2 entries, counted from 0"),
        ("data.train.path=x", "data.train has 2 entries; choose one, as in data.train.0.path=…"),
        ('text.tags=["a"', "unclosed array"),
    ],
)
def test_an_override_that_cannot_be_applied_is_reported(override: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_recipe(tables(data={"train": [TSV, TSV]}), [override], "run.toml")
    heading, first, *_ = str(caught.value).split("\n")
    assert heading == "run.toml cannot be used:"
    assert first == f"  --set {override}: {problem}"


def test_a_mistyped_override_is_reported_like_a_mistyped_recipe() -> None:
    with pytest.raises(ConfigError, match=r"training\.stps: there is no such.*'steps'"):
        load_recipe(tables(), ["training.stps=5"])

"""--set a.b=c changes one setting, or says why it cannot."""

from typing import Any

import pytest

from seqloom.config.load import resolve
from seqloom.config.toml import SyntaxProblem, parse_value
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
def test_a_value_is_toml_or_a_bare_word(text: str, value: object) -> None:
    parsed = parse_value(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize("text", ['["a"', "{", '"a', "'a", "[a]"])
def test_what_begins_as_toml_must_end_as_toml(text: str) -> None:
    with pytest.raises(SyntaxProblem):
        parse_value(text)


def test_later_overrides_win() -> None:
    config = resolve(tables(), ["training.steps=5", "training.steps=6"]).config
    assert config.training.steps == 6


def test_an_override_makes_the_tables_it_needs() -> None:
    config = resolve(tables(), ["text.tokenizer.kind=characters", "decoding.width=7"]).config
    assert config.text.tokenizer.kind == "characters"
    assert config.decoding.kind == "beam"
    assert config.decoding.width == 7


def test_a_table_and_a_list_can_be_set_whole() -> None:
    resolved = resolve(
        tables(), ['decoding={kind = "greedy", min_length = 2}', 'text.tags=["<U>"]']
    )
    assert resolved.config.decoding.kind == "greedy"
    assert resolved.config.text.tags == ("<U>",)
    assert resolved.origins["decoding.min_length"] == "--set"


@pytest.mark.parametrize("key", ["data.train.1.path", "data.train[1].path"])
def test_an_entry_of_a_list_is_set_by_its_number(key: str) -> None:
    given = tables(data={"train": [TSV, TSV]})
    train = resolve(given, [f"{key}=b.tsv"]).config.data.train
    assert [corpus.model_dump()["path"] for corpus in train] == ["a.tsv", "b.tsv"]


@pytest.mark.parametrize("key", ["data.train.path", "data.train.0.path", "data.train[0].path"])
@pytest.mark.parametrize("train", [TSV, [TSV]])
def test_a_single_corpus_needs_no_number(key: str, train: Any) -> None:
    config = resolve(tables(data={"train": train}), [f"{key}=b.tsv"]).config
    assert config.data.train[0].model_dump()["path"] == "b.tsv"


def test_another_kind_keeps_what_it_knows_and_says_what_it_does_not() -> None:
    encoder = {"kind": "recurrent", "cell": "lstm", "width": 64, "embedding": {"noise": 0.1}}
    given = tables(model={"encoder": encoder, "decoder": {"kind": "recurrent"}})
    resolved = resolve(given, ["model.encoder.kind=transformer", "model.encoder.norm=post"])
    assert resolved.config.model.encoder.kind == "transformer"
    assert resolved.config.model.encoder.width == 64
    assert resolved.config.model.encoder.embedding.model_dump()["noise"] == 0.1
    assert resolved.notes == (
        "--set model.encoder.kind=transformer: left out model.encoder.cell of the recipe, "
        "which kind 'transformer' does not have",
    )


def test_the_same_kind_again_changes_nothing() -> None:
    resolved = resolve(tables(), ["model.encoder.kind=recurrent"])
    assert resolved.config == resolve(tables()).config
    assert resolved.notes == ()


def test_settings_of_the_new_kind_may_come_before_it() -> None:
    given = tables(decoding={"kind": "beam", "width": 3})
    resolved = resolve(given, ["decoding.top_k=5", "decoding.kind=sample"])
    assert resolved.config.decoding.kind == "sample"
    assert resolved.config.decoding.top_k == 5


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("steps", "must look like section.key=value, for example training.steps=500"),
        ("=5", "must look like section.key=value, for example training.steps=500"),
        ("a..b=5", "must look like section.key=value, for example training.steps=500"),
        ("training.steps.x=5", "training.steps is not a table, so nothing inside it can be set"),
        ("training.0.x=5", "training is not a list of that many entries"),
        ("data.train.2.path=x", "data.train has 2 entries, numbered from 0"),
        ("data.train.path=x", "data.train has 2 entries; say which: data.train.0.path=…"),
        ('text.tags=["a"', "unclosed array"),
    ],
)
def test_an_override_that_cannot_be_carried_out_is_told(override: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(tables(data={"train": [TSV, TSV]}), [override], "run.toml")
    heading, first, *_ = str(caught.value).split("\n")
    assert heading == "run.toml cannot be used:"
    assert first == f"  --set {override}: {problem}"


def test_a_mistyped_override_is_told_like_a_mistyped_recipe() -> None:
    with pytest.raises(ConfigError, match=r"training\.stps: there is no such.*'steps'"):
        resolve(tables(), ["training.stps=5"])

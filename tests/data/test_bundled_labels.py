"""Labels that the bundled sentences carry in themselves."""

from collections import Counter
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from seqloom.config.schema.corpora import BundledLabelsConfig, Language
from seqloom.config.schema.data import DataConfig
from seqloom.data.bundled_labels import read_bundled_labels, without_capitals
from seqloom.data.example import Example, Split
from seqloom.data.fingerprint import fingerprint

LANGUAGE = BundledLabelsConfig(labels="language")


@cache
def examples(split: Split) -> list[Example]:
    return list(read_bundled_labels(LANGUAGE, split))


@given(st.text())
def test_capitals_can_be_put_back_one_label_a_character(text: str) -> None:
    lower, labels = without_capitals(text)
    names = labels.split()
    assert len(names) == len(lower) == len(text)
    for was, now, name in zip(text, lower, names, strict=True):
        assert (was == now) == (name == "l")
        assert now == was.lower() or name == "l"


def test_a_german_sentence() -> None:
    assert without_capitals("Das Haus.") == ("das haus.", "U l l l U l l l l")


def test_a_capital_that_would_become_two_characters_stays() -> None:
    assert without_capitals("İl") == ("İl", "l l")  # its lower case is i and a dot above


@pytest.mark.parametrize("split", ["dev", "test"])
def test_every_sentence_is_there_once_with_its_language(split: Split) -> None:
    found = examples(split)
    counts = Counter(example.target for example in found)
    assert set(counts) == {"de", "en", "fr"}
    assert min(counts.values()) > 900
    assert len({(one.source, one.target) for one in found}) == len(found)
    assert {one.target for one in found[:3]} == {"de", "en", "fr"}  # the first few are of all


def test_splits_share_no_sentence() -> None:
    dev, test = ({one.source for one in examples(split)} for split in ("dev", "test"))
    assert not dev & test


def test_languages_can_be_chosen_and_their_order_does_not_matter() -> None:
    def read(*languages: Language) -> list[Example]:
        config = BundledLabelsConfig(labels="capitals", languages=languages)
        return list(read_bundled_labels(config, "dev"))

    assert read("fr", "de") == read("de", "fr")
    assert {one.source for one in read("de")} < {one.source for one in read("de", "fr")}
    assert all(one.source == one.source.lower() for one in read("de"))


def test_one_language_cannot_be_told_apart() -> None:
    with pytest.raises(ValidationError, match="needs two languages or more"):
        BundledLabelsConfig(labels="language", languages=("de", "de"))


def test_what_is_read_decides_what_is_cached() -> None:
    digests = {
        fingerprint(DataConfig(train=(corpus,), dev=(corpus,)), split)
        for corpus in (LANGUAGE, BundledLabelsConfig(labels="capitals"))
        for split in ("train", "dev")
    }
    assert len(digests) == 4

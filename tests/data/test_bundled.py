"""Bundled sentence pairs and the labels derived from them."""

from collections import Counter
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from seqloom.config.schema.corpora import BundledConfig, BundledLabelsConfig, Language
from seqloom.config.schema.data import DataConfig
from seqloom.data.example import Example, Split
from seqloom.data.preparation.request import fingerprint
from seqloom.data.readers.bundled import read_bundled, without_capitals
from seqloom.data.readers.splits import read_corpus

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
PAIRS = [BundledConfig(source="de", target="en"), BundledConfig(source="en", target="fr")]
LANGUAGE_LABELS = BundledLabelsConfig(labels="language")


def normalised(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())


@cache
def sentences(language: Literal["de", "en", "fr"], split: Split) -> set[str]:
    return {
        normalised(text)
        for config in PAIRS
        for example in read_bundled(config, split)
        for name, text in ((config.source, example.source), (config.target, example.target))
        if name == language
    }


@cache
def labelled_examples(split: Split) -> list[Example]:
    return list(read_corpus(LANGUAGE_LABELS, ".", split, "data.train"))


class TestSentencePairs:
    @pytest.mark.parametrize("language", ["de", "en", "fr"])
    def test_splits_share_no_sentence_even_across_pairs(
        self, language: Literal["de", "en", "fr"]
    ) -> None:
        for first, second in combinations(SPLITS, 2):
            assert not sentences(language, first) & sentences(language, second)

    @pytest.mark.parametrize("config", PAIRS, ids=["de-en", "en-fr"])
    def test_splits_have_the_documented_sizes_and_no_duplicates(
        self, config: BundledConfig
    ) -> None:
        for split, size in zip(SPLITS, (40_000, 1_000, 1_000), strict=True):
            examples = list(read_bundled(config, split))
            assert len({(e.source, e.target) for e in examples}) == len(examples) == size

    def test_pair_can_be_read_in_both_directions(self) -> None:
        forward = read_bundled(BundledConfig(source="de", target="en"), "test")
        backward = read_bundled(BundledConfig(source="en", target="de"), "test")
        assert all(
            (a.source, a.target) == (b.target, b.source)
            for a, b in zip(forward, backward, strict=True)
        )

    def test_demo_sentence_is_in_the_training_split(self) -> None:
        pairs = {(e.source, e.target) for e in read_bundled(PAIRS[0], "train")}
        assert ("Das gefällt mir.", "I like it.") in pairs

    def test_sentences_are_clean_and_have_a_licence_file(self) -> None:
        for config in PAIRS:
            for example in read_bundled(config, "dev"):
                for text in (example.source, example.target):
                    assert text == " ".join(text.split())
                    assert text[-1] in ".?!"
        licence = (files("seqloom.bundled") / "ATTRIBUTION.md").read_text(encoding="utf-8")
        assert "CC BY 2.0 FR" in licence
        assert "https://tatoeba.org" in licence


class TestLabels:
    @given(st.text())
    def test_labels_restore_capitals_one_label_per_character(self, text: str) -> None:
        lower, joined = without_capitals(text)
        labels = joined.split()
        assert len(labels) == len(lower) == len(text)
        for before, after, label in zip(text, lower, labels, strict=True):
            assert (before == after) == (label == "l")
            assert after == before.lower() or label == "l"

    def test_german_sentence(self) -> None:
        assert without_capitals("Das Haus.") == ("das haus.", "U l l l U l l l l")

    def test_capital_whose_lower_case_has_two_characters_is_kept(self) -> None:
        assert without_capitals("İl") == ("İl", "l l")  # its lower case is i and a dot above

    @pytest.mark.parametrize("split", ["dev", "test"])
    def test_every_sentence_occurs_once_with_its_language(self, split: Split) -> None:
        examples = labelled_examples(split)
        counts = Counter(example.target for example in examples)
        assert set(counts) == {"de", "en", "fr"}
        assert min(counts.values()) > 900
        assert len({(example.source, example.target) for example in examples}) == len(examples)
        assert {example.target for example in examples[:3]} == {"de", "en", "fr"}

    def test_splits_share_no_sentence(self) -> None:
        dev, test = (
            {example.source for example in labelled_examples(split)} for split in ("dev", "test")
        )
        assert not dev & test

    def test_languages_can_be_selected_in_any_order(self) -> None:
        def read(*languages: Language) -> list[Example]:
            config = BundledLabelsConfig(labels="capitals", languages=languages)
            return list(read_corpus(config, ".", "dev", "data.train"))

        german, both = read("de"), read("de", "fr")
        assert read("fr", "de") == both
        assert {example.source for example in german} < {example.source for example in both}
        assert all(example.source == example.source.lower() for example in german)

    def test_language_labels_require_two_languages(self) -> None:
        with pytest.raises(ValidationError, match="two"):
            BundledLabelsConfig(labels="language", languages=("de", "de"))

    def test_fingerprint_depends_on_labels_and_split(self) -> None:
        digests = {
            fingerprint(DataConfig(train=(corpus,), dev=(corpus,)), split)
            for corpus in (LANGUAGE_LABELS, BundledLabelsConfig(labels="capitals"))
            for split in ("train", "dev")
        }
        assert len(digests) == 4

from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import Literal

import pytest

from seqloom.config.schema.corpora import BundledConfig
from seqloom.data.bundled import read_bundled
from seqloom.data.example import Split

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
PAIRS = [BundledConfig(source="de", target="en"), BundledConfig(source="en", target="fr")]


def folded(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())


@cache
def sentences(language: Literal["de", "en", "fr"], split: Split) -> set[str]:
    return {
        folded(text)
        for config in PAIRS
        for example in read_bundled(config, split)
        for name, text in ((config.source, example.source), (config.target, example.target))
        if name == language
    }


@pytest.mark.parametrize("language", ["de", "en", "fr"])
def test_no_sentence_is_in_two_splits_even_of_different_pairs(
    language: Literal["de", "en", "fr"],
) -> None:
    for one, other in combinations(SPLITS, 2):
        assert not sentences(language, one) & sentences(language, other)


@pytest.mark.parametrize("config", PAIRS, ids=["de-en", "en-fr"])
def test_there_are_as_many_pairs_as_promised_and_all_differ(config: BundledConfig) -> None:
    for split, size in zip(SPLITS, (40_000, 1_000, 1_000), strict=True):
        examples = list(read_bundled(config, split))
        assert len({(e.source, e.target) for e in examples}) == len(examples) == size


def test_a_pair_can_be_read_both_ways() -> None:
    there = read_bundled(BundledConfig(source="de", target="en"), "test")
    back = read_bundled(BundledConfig(source="en", target="de"), "test")
    assert all(
        (a.source, a.target) == (b.target, b.source) for a, b in zip(there, back, strict=True)
    )


def test_the_sentence_of_the_demo_can_be_learned() -> None:
    pairs = {(e.source, e.target) for e in read_bundled(PAIRS[0], "train")}
    assert ("Das gefällt mir.", "I like it.") in pairs


def test_the_sentences_are_clean_and_their_licence_is_beside_them() -> None:
    for config in PAIRS:
        for example in read_bundled(config, "dev"):
            for text in (example.source, example.target):
                assert text == " ".join(text.split())
                assert text[-1] in ".?!"
    licence = (files("seqloom.bundled") / "ATTRIBUTION.md").read_text(encoding="utf-8")
    assert "CC BY 2.0 FR" in licence
    assert "https://tatoeba.org" in licence

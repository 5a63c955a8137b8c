"""The made-up languages: what is known about them is true."""

from itertools import islice, permutations
from pathlib import Path
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from seqloom.lab.made_languages import (
    ENGLISH,
    FRENCH,
    GERMAN,
    LANGUAGES,
    Clause,
    Language,
    alignment,
    clauses,
    draw_clause,
    sentence,
    write_pairs,
)

Pair = tuple[Language, Language]
drawn = st.integers(0, 10_000).map(lambda seed: draw_clause(Random(seed), 6))
both = st.sampled_from(list(permutations(LANGUAGES, 2)))


@given(drawn, both)
def test_aligned_words_mean_the_same(clause: Clause, pair: Pair) -> None:
    source, target = pair
    words, others = sentence(clause, source).split(), sentence(clause, target).split()
    found = alignment(clause, source, target)
    assert [words[place].split(".")[0] for place in found] == [
        word.split(".")[0] for word in others
    ]


@given(drawn, both)
def test_every_word_is_aligned_once_and_the_same_both_ways(clause: Clause, pair: Pair) -> None:
    there, back = alignment(clause, *pair), alignment(clause, *reversed(pair))
    assert [back[place] for place in there] == list(range(len(there)))


def test_adjectives_follow_in_reverse() -> None:
    clause = Clause(("the", "european", "economic", "area"), "has", ("a", "law"))
    assert sentence(clause, ENGLISH).replace(".en", "") == "the european economic area has a law"
    assert sentence(clause, FRENCH).replace(".fr", "") == "the area economic european has a law"


def test_training_and_test_share_no_clause() -> None:
    train, test = (set(islice(clauses(split, 1, 2), 300)) for split in ("train", "test"))
    assert not train & test


def test_every_pair_has_sentences_of_its_own(tmp_path: Path) -> None:
    write_pairs(tmp_path, [(ENGLISH, FRENCH), (ENGLISH, GERMAN)], 50, seed=1, words=20)
    english = [
        set((tmp_path / f"{pair}.en").read_text().splitlines()) for pair in ("en-fr", "de-en")
    ]
    assert len(english[0] & english[1]) < 5  # a few short ones may come up twice
    lines = (tmp_path / "en-fr.fr").read_text().splitlines()
    assert len(lines) == 50


def test_the_same_seed_says_the_same() -> None:
    first, second = (list(islice(clauses("train", 3, 10), 5)) for _ in range(2))
    assert first == second

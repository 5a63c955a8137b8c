"""Toy languages: alignments, word order, and disjoint data."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from itertools import islice, permutations
from pathlib import Path
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from seqloom.lab.models.toy_languages import (
    ENGLISH,
    FRENCH,
    GERMAN,
    LANGUAGES,
    Clause,
    ToyLanguage,
    alignment,
    clauses,
    draw_clause,
    sentence,
    write_pairs,
)

Direction = tuple[ToyLanguage, ToyLanguage]
random_clauses = st.integers(0, 10_000).map(lambda seed: draw_clause(Random(seed), 6))
directions = st.sampled_from(list(permutations(LANGUAGES, 2)))


@given(random_clauses, directions)
def test_aligned_words_have_the_same_meaning(clause: Clause, direction: Direction) -> None:
    source, target = direction
    source_words = sentence(clause, source).split()
    target_words = sentence(clause, target).split()
    indices = alignment(clause, source, target)
    assert [source_words[index].split(".")[0] for index in indices] == [
        word.split(".")[0] for word in target_words
    ]


@given(random_clauses, directions)
def test_alignments_of_opposite_directions_are_inverse(
    clause: Clause, direction: Direction
) -> None:
    forward, backward = alignment(clause, *direction), alignment(clause, *reversed(direction))
    assert [backward[index] for index in forward] == list(range(len(forward)))


def test_adjectives_after_the_noun_are_in_reverse_order() -> None:
    clause = Clause(("the", "european", "economic", "area"), "has", ("a", "law"))
    assert sentence(clause, ENGLISH).replace(".en", "") == "the european economic area has a law"
    assert sentence(clause, FRENCH).replace(".fr", "") == "the area economic european has a law"


def test_training_and_test_clauses_are_disjoint() -> None:
    train, test = (set(islice(clauses(split, 1, 2), 300)) for split in ("train", "test"))
    assert not train & test


def test_language_pairs_have_different_sentences(tmp_path: Path) -> None:
    write_pairs(tmp_path, [(ENGLISH, FRENCH), (ENGLISH, GERMAN)], 50, seed=1, nouns=20)
    english = [
        set((tmp_path / f"{pair}.en").read_text().splitlines()) for pair in ("en-fr", "de-en")
    ]
    assert len(english[0] & english[1]) < 5  # a few short sentences may occur twice
    lines = (tmp_path / "en-fr.fr").read_text().splitlines()
    assert len(lines) == 50


def test_the_same_seed_draws_the_same_clauses() -> None:
    first, second = (list(islice(clauses("train", 3, 10), 5)) for _ in range(2))
    assert first == second


def test_several_processes_write_the_same_corpus(tmp_path: Path) -> None:
    """The conditions of a claim are measured at the same time, and all of them write its corpus."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(4, mp_context=context) as pool:
        done = [pool.submit(write_pairs, tmp_path, [(ENGLISH, FRENCH)], 5, 1, 8) for _ in range(80)]
    assert [each.result() for each in done] == [None] * 80
    assert sorted(path.name for path in tmp_path.iterdir()) == ["en-fr.en", "en-fr.fr"]

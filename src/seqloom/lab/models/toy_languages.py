"""Toy languages with a known grammar, so that the alignment of every sentence pair is known.

All languages express the same clauses. They differ in their words, in whether adjectives come before
or after the noun, and in the order of subject, verb and object.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Literal

from seqloom.lab.models.text_files import write_lines

ARTICLES = 3
NumberedConcept = tuple[int, str]
"""A concept, such as "noun3", preceded by its index in the English clause."""


@dataclass(frozen=True)
class ToyLanguage:
    """A language, defined by its word order.

    name:       short name, for example "fr". Every word ends with it, for example "noun3.fr".
    noun_first: True if adjectives follow the noun, in reverse order. Default: False, adjectives
                precede the noun.
    order:      order of subject (s), verb (v) and object (o). Default: "svo".
    """

    name: str
    noun_first: bool = False
    order: Literal["svo", "vos", "osv"] = "svo"


ENGLISH = ToyLanguage("en")
FRENCH = ToyLanguage("fr", noun_first=True)
GERMAN = ToyLanguage("de")
ISLAND = ToyLanguage("isl", noun_first=True)
LANGUAGES = (ENGLISH, FRENCH, GERMAN, ISLAND)
DISTANT, REMOTE = ToyLanguage("dis", order="vos"), ToyLanguage("rem", order="osv")
"""Two languages that share neither words nor word order with the others or with each other."""


@dataclass(frozen=True)
class Clause:
    """Subject, verb and object. Subject and object each have an article, up to two adjectives and a
    noun.
    """

    subject: tuple[str, ...]
    verb: str
    object: tuple[str, ...]


def draw_clause(random: Random, nouns: int) -> Clause:
    """Draw a random clause.

    nouns: number of different nouns. There are half as many adjectives and half as many verbs.
    """

    def noun_phrase() -> tuple[str, ...]:
        adjectives = [
            f"adjective{random.randrange(nouns // 2)}" for _ in range(random.randrange(3))
        ]
        return (
            f"article{random.randrange(ARTICLES)}",
            *adjectives,
            f"noun{random.randrange(nouns)}",
        )

    return Clause(noun_phrase(), f"verb{random.randrange(nouns // 2)}", noun_phrase())


def word_order(clause: Clause, language: ToyLanguage) -> list[NumberedConcept]:
    """Return the concepts (word meanings) of a clause in the word order of the language."""
    concepts = list(enumerate((*clause.subject, clause.verb, *clause.object)))
    verb = len(clause.subject)
    subject, object_ = (
        _order_noun_phrase(phrase, language) for phrase in (concepts[:verb], concepts[verb + 1 :])
    )
    parts = {"s": subject, "v": [concepts[verb]], "o": object_}
    return [concept for part in language.order for concept in parts[part]]


def _order_noun_phrase(
    phrase: list[NumberedConcept], language: ToyLanguage
) -> list[NumberedConcept]:
    """Return the article, adjectives and noun of a phrase in the word order of the language.

    If the noun comes first, the adjectives follow in reverse order. Example: "European economic
    area" becomes "zone économique européenne".
    """
    article, *rest = phrase
    return [article, *(reversed(rest) if language.noun_first else rest)]


def sentence(clause: Clause, language: ToyLanguage) -> str:
    return " ".join(f"{concept}.{language.name}" for _, concept in word_order(clause, language))


def alignment(clause: Clause, source: ToyLanguage, target: ToyLanguage) -> list[int]:
    """Return, for each target word, the index of the source word with the same meaning."""
    source_numbers = [number for number, _ in word_order(clause, source)]
    return [source_numbers.index(number) for number, _ in word_order(clause, target)]


def clauses(split: Literal["train", "test"], seed: int, nouns: int) -> Iterator[Clause]:
    """Generate an unlimited number of random clauses of one split.

    A hash assigns every clause to one of the two splits, so that the splits do not overlap.
    """
    random = Random(f"{split} {seed} {nouns}")
    while True:
        clause = draw_clause(random, nouns)
        tenth = hashlib.sha256(sentence(clause, ENGLISH).encode()).digest()[0] % 10
        if (tenth == 0) == (split == "test"):
            yield clause


def pair_name(first: ToyLanguage, second: ToyLanguage) -> str:
    """Return the name of a language pair. Both directions of a pair have the same name."""
    return "-".join(sorted((first.name, second.name)))


def write_pairs(
    folder: Path,
    pairs: Sequence[tuple[ToyLanguage, ToyLanguage]],
    count: int,
    seed: int,
    nouns: int,
) -> None:
    """Write parallel files <pair>.<language> with `count` sentences per language pair.

    Line n of one file translates line n of the other. Every pair has its own random sentences.
    """
    for first, second in pairs:
        name = pair_name(first, second)
        # Each pair has its own seed. Otherwise all pairs would have the same sentences.
        pair_seed = int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:4], "big")
        drawn = list(islice(clauses("train", pair_seed, nouns), count))
        sides = {
            f"{name}.{language.name}": [sentence(clause, language) for clause in drawn]
            for language in (first, second)
        }
        write_lines(folder, sides)

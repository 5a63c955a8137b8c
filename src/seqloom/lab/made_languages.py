"""Made-up languages with a known grammar, and so with a known alignment of every pair of sentences.

They say the same things with words of their own, and with adjectives before the noun or behind it.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Literal

from seqloom.core.storage import storage_errors, write_file

ARTICLES = 3
Placed = tuple[int, str]
"""A concept, and its number within a clause as English counts."""


@dataclass(frozen=True)
class Language:
    """name: as in the tag <2fr>."""

    name: str
    noun_first: bool = False


ENGLISH = Language("en")
FRENCH = Language("fr", noun_first=True)
GERMAN = Language("de")
ISLAND = Language("isl", noun_first=True)
LANGUAGES = (ENGLISH, FRENCH, GERMAN, ISLAND)


@dataclass(frozen=True)
class Clause:
    """Who does what to whom: each thing is an article, up to two adjectives and a noun."""

    subject: tuple[str, ...]
    verb: str
    object: tuple[str, ...]


def draw_clause(draw: Random, words: int) -> Clause:
    """words: how many nouns there are; of adjectives and verbs there are half as many"""

    def thing() -> tuple[str, ...]:
        adjectives = [f"adjective{draw.randrange(words // 2)}" for _ in range(draw.randrange(3))]
        return (
            f"article{draw.randrange(ARTICLES)}",
            *adjectives,
            f"noun{draw.randrange(words)}",
        )

    return Clause(thing(), f"verb{draw.randrange(words // 2)}", thing())


def ordered(clause: Clause, language: Language) -> list[Placed]:
    """The concepts of a clause in the order in which the language says them."""
    placed = list(enumerate((*clause.subject, clause.verb, *clause.object)))
    verb = len(clause.subject)
    subject, thing = (_thing(one, language) for one in (placed[:verb], placed[verb + 1 :]))
    return [*subject, placed[verb], *thing]


def _thing(placed: list[Placed], language: Language) -> list[Placed]:
    """European economic area, zone économique européenne: behind the noun all is turned round."""
    article, *described = placed
    return [article, *(reversed(described) if language.noun_first else described)]


def sentence(clause: Clause, language: Language) -> str:
    return " ".join(f"{concept}.{language.name}" for _, concept in ordered(clause, language))


def alignment(clause: Clause, source: Language, target: Language) -> list[int]:
    """For each target word the place of the source word that means the same."""
    places = [number for number, _ in ordered(clause, source)]
    return [places.index(number) for number, _ in ordered(clause, target)]


def clauses(split: Literal["train", "test"], seed: int, words: int) -> Iterator[Clause]:
    """Clauses without end. What is said decides the split, so the two never share a clause."""
    draw = Random(f"{split} {seed} {words}")
    while True:
        clause = draw_clause(draw, words)
        tenth = hashlib.sha256(sentence(clause, ENGLISH).encode()).digest()[0] % 10
        if (tenth == 0) == (split == "test"):
            yield clause


def pair_name(one: Language, other: Language) -> str:
    """Of the files of two languages, in whichever direction."""
    return "-".join(sorted((one.name, other.name)))


def write_pairs(
    folder: Path, pairs: Sequence[tuple[Language, Language]], count: int, seed: int, words: int
) -> None:
    """<pair>.<language>: for each pair so many sentences of its own in both languages.

    Line n of one file says the same as line n of the other; no pair shares its lines with another.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for one, other in pairs:
        name = pair_name(one, other)
        # A seed for each pair: lines in three languages would be a bridge between them.
        own = int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:4], "big")
        said = list(islice(clauses("train", own, words), count))
        for language in (one, other):
            lines = "".join(f"{sentence(clause, language)}\n" for clause in said)
            write_file(folder / f"{name}.{language.name}", lines.encode())

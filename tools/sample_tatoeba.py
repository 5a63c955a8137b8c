"""Draw the sentence pairs that come with seqloom from the Tatoeba pairs of manythings.org.

    python tools/sample_tatoeba.py FOLDER

FOLDER holds eng-deu.{train,dev,test}.tsv.gz and eng-fra.{train,dev,test}.tsv.gz, English first.
The same input always gives the same bytes. What is taken:

1.  Clean pairs: letters, apostrophes, hyphens, commas and one closing . ? or ! only; 2 to 10
    English words against 1 to 12 of the other language.
2.  Of those, pairs made of frequent words alone: the COMMON most frequent of each side in the
    training file, so that a small model can learn the language of the sample well.
3.  Of those, a random sample. Training pairs are drawn one by one; dev and test pairs by whole
    families (pairs linked by a common sentence), so that all translations of a sentence that
    are kept in the file are scored together.
"""

import gzip
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

OUTPUT = Path(__file__).parent.parent / "src" / "seqloom" / "bundled"
COMMON = 4_500
SIZES = {"train": 40_000, "dev": 1_000, "test": 1_000}
SEED = 2018
ALWAYS = {("I like it.", "Das gefällt mir.")}
"""Pairs that the demo and the tutorials speak of; they are in the training file."""

CLEAN = re.compile(r"(?:[^\W\d_]|[', -])+ ?[.?!]")
WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*'?")
SPACES = re.compile(r"\s+")

Pair = tuple[str, str]


@dataclass(frozen=True)
class Language:
    file: str
    """The name in the input, after `eng-`."""
    name: str
    """The name of the output."""
    english_first: bool


LANGUAGES = (Language("deu", "de-en", False), Language("fra", "en-fr", True))


def read(path: Path) -> list[Pair]:
    """Pairs with plain spaces and apostrophes: French writes no-break spaces before ? and !."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        rows = [line.rstrip("\r\n").split("\t") for line in file]
    return [(tidy(row[0]), tidy(row[1])) for row in rows]


def tidy(text: str) -> str:
    return SPACES.sub(" ", text).strip().replace("’", "'")


def words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def is_clean(pair: Pair) -> bool:
    english, other = pair
    return (
        CLEAN.fullmatch(english) is not None
        and CLEAN.fullmatch(other) is not None
        and 2 <= len(words(english)) <= 10
        and 1 <= len(words(other)) <= 12
    )


def frequent(sentences: Iterable[str]) -> set[str]:
    counts = Counter(word for sentence in sentences for word in words(sentence))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return set(ranked[:COMMON])


def families(pairs: list[Pair]) -> list[list[Pair]]:
    """Pairs linked by a sentence they have in common, on either side."""
    parent: dict[tuple[int, str], tuple[int, str]] = {}

    def root(node: tuple[int, str]) -> tuple[int, str]:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for english, other in pairs:
        parent[root((0, english.lower()))] = root((1, other.lower()))
    groups: dict[tuple[int, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[root((0, pair[0].lower()))].append(pair)
    return list(groups.values())


def sample(pairs: list[Pair], size: int, *, whole_families: bool, seed: str) -> list[Pair]:
    """`size` pairs; those of ALWAYS first, the others at random."""
    generator = random.Random(seed)
    groups = families(pairs) if whole_families else [[pair] for pair in pairs]
    generator.shuffle(groups)
    groups.sort(key=lambda group: not ALWAYS.intersection(group))
    taken: list[Pair] = []
    for group in groups:
        if len(taken) + len(group) <= size:
            taken.extend(group)
    if len(taken) != size:
        raise SystemExit(f"{seed}: only {len(taken)} of {size} pairs can be had by these rules")
    if not whole_families:
        generator.shuffle(taken)
    return taken


def write(path: Path, rows: Iterable[Pair]) -> None:
    text = "".join(f"{first}\t{second}\n" for first, second in rows)
    path.write_bytes(gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0))


def make(folder: Path, language: Language) -> None:
    splits = {
        name: [
            pair
            for pair in dict.fromkeys(read(folder / f"eng-{language.file}.{name}.tsv.gz"))
            if is_clean(pair)
        ]
        for name in SIZES
    }
    english = frequent(pair[0] for pair in splits["train"])
    other = frequent(pair[1] for pair in splits["train"])
    for name, pairs in splits.items():
        common = [
            pair
            for pair in pairs
            if english.issuperset(words(pair[0])) and other.issuperset(words(pair[1]))
        ]
        seed = f"{SEED} {language.name} {name}"
        taken = sample(common, SIZES[name], whole_families=name != "train", seed=seed)
        rows = taken if language.english_first else [(second, first) for first, second in taken]
        write(OUTPUT / f"tatoeba-{language.name}.{name}.tsv.gz", rows)
        print(
            f"{language.name} {name}: {len(pairs)} clean, {len(common)} common, {len(rows)} taken"
        )


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    for language in LANGUAGES:
        make(Path(sys.argv[1]), language)


if __name__ == "__main__":
    main()

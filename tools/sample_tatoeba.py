"""Sample the bundled sentence pairs from the Tatoeba pairs of manythings.org.

    python tools/sample_tatoeba.py FOLDER

FOLDER contains eng-deu.{train,dev,test}.tsv.gz and eng-fra.{train,dev,test}.tsv.gz, English first.
The same input always produces the same bytes. The sample is selected in three steps:

1.  Clean pairs: only letters, apostrophes, hyphens, commas and one final . ? or !, with 2 to 10
    English words and 1 to 12 words of the other language.
2.  Of those, pairs whose words are among the COMMON_WORDS most frequent words of their side of the
    training file, so that a small model can learn the sample well.
3.  Of those, a random sample. Training pairs are drawn individually. Dev and test pairs are drawn
    in groups of pairs that share a sentence, so that all translations of a sentence are scored
    together.
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
COMMON_WORDS = 4_500
SIZES = {"train": 40_000, "dev": 1_000, "test": 1_000}
SEED = 2018
REQUIRED_PAIRS = {("I like it.", "Das gefällt mir.")}
"""Training pairs that the demo and the tutorials use."""

CLEAN = re.compile(r"(?:[^\W\d_]|[', -])+ ?[.?!]")
WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*'?")
SPACES = re.compile(r"\s+")

Pair = tuple[str, str]


@dataclass(frozen=True)
class LanguagePair:
    """One pair of languages.

    file: name in the input files, after `eng-`
    name: name of the output files
    """

    file: str
    name: str
    english_first: bool


LANGUAGE_PAIRS = (
    LanguagePair("deu", "de-en", english_first=False),
    LanguagePair("fra", "en-fr", english_first=True),
)


def read_pairs(path: Path) -> list[Pair]:
    """Read pairs with normalised spaces and apostrophes."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        rows = [line.rstrip("\r\n").split("\t") for line in file]
    return [(normalise(row[0]), normalise(row[1])) for row in rows]


def normalise(text: str) -> str:
    """Replace all white space by spaces (French has no-break spaces before ? and !), and ’ by '."""
    return SPACES.sub(" ", text).strip().replace("’", "'")


def split_words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def is_clean(pair: Pair) -> bool:
    english, other = pair
    return (
        CLEAN.fullmatch(english) is not None
        and CLEAN.fullmatch(other) is not None
        and 2 <= len(split_words(english)) <= 10
        and 1 <= len(split_words(other)) <= 12
    )


def frequent_words(sentences: Iterable[str]) -> set[str]:
    counts = Counter(word for sentence in sentences for word in split_words(sentence))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return set(ranked[:COMMON_WORDS])


def group_by_sentence(pairs: list[Pair]) -> list[list[Pair]]:
    """Groups of pairs that are connected by common sentences, on either side (union-find)."""
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


def sample(pairs: list[Pair], size: int, *, by_group: bool, seed: str) -> list[Pair]:
    """Draw `size` pairs: REQUIRED_PAIRS first, the others at random."""
    generator = random.Random(seed)
    groups = group_by_sentence(pairs) if by_group else [[pair] for pair in pairs]
    generator.shuffle(groups)
    groups.sort(key=lambda group: not REQUIRED_PAIRS.intersection(group))
    sampled: list[Pair] = []
    for group in groups:
        if len(sampled) + len(group) <= size:
            sampled.extend(group)
    if len(sampled) != size:
        raise SystemExit(f"{seed}: only {len(sampled)} of {size} pairs meet the conditions.")
    if not by_group:
        generator.shuffle(sampled)
    return sampled


def write_pairs(path: Path, rows: Iterable[Pair]) -> None:
    text = "".join(f"{first}\t{second}\n" for first, second in rows)
    path.write_bytes(gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0))


def sample_language_pair(folder: Path, language: LanguagePair) -> None:
    """Write the train, dev and test samples of a language pair."""
    splits = {
        name: [
            pair
            for pair in dict.fromkeys(read_pairs(folder / f"eng-{language.file}.{name}.tsv.gz"))
            if is_clean(pair)
        ]
        for name in SIZES
    }
    english_words = frequent_words(pair[0] for pair in splits["train"])
    other_words = frequent_words(pair[1] for pair in splits["train"])
    for name, pairs in splits.items():
        common = [
            pair
            for pair in pairs
            if english_words.issuperset(split_words(pair[0]))
            and other_words.issuperset(split_words(pair[1]))
        ]
        seed = f"{SEED} {language.name} {name}"
        sampled = sample(common, SIZES[name], by_group=name != "train", seed=seed)
        rows = (
            sampled if language.english_first else [(other, english) for english, other in sampled]
        )
        write_pairs(OUTPUT / f"tatoeba-{language.name}.{name}.tsv.gz", rows)
        print(
            f"{language.name} {name}: {len(pairs)} clean, {len(common)} common, {len(rows)} sampled"
        )


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    for language in LANGUAGE_PAIRS:
        sample_language_pair(Path(sys.argv[1]), language)


if __name__ == "__main__":
    main()

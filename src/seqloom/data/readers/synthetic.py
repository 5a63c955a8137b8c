"""Generates examples of synthetic tasks: copy, reverse, sort, addition and letter case."""

import hashlib
import random
import string
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import assert_never

from seqloom.config.schema.corpora import BundledConfig, SyntheticConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example, Split
from seqloom.data.readers.bundled import read_bundled

VERSION = 1
"""Part of a corpus' cache key. Increase it when a code change gives other examples for the same
seed."""
MAX_MISSES = 20_000
"""`read_synthetic` raises an error if more than this number of consecutive candidates are too short
or belong to another split."""


@dataclass(frozen=True)
class _Candidate:
    """A generated pair. The hash of `key` decides to which split the pair belongs."""

    key: str
    source: str
    target: str


def read_synthetic(config: SyntheticConfig, split: Split) -> Iterator[Example]:
    """Yield `config.examples` pairs.

    Candidates are generated one after the other. Candidates that belong to another split are
    skipped. Candidate n depends only on the settings and n. The hash of its text decides its split,
    so that two splits never share a source, even if they have different seeds and lengths.
    """
    count = 0
    candidate_index = 0
    misses = 0
    while count < config.examples:
        candidate = _generate(
            config, random.Random(f"{config.task} {config.seed} {candidate_index}")
        )
        candidate_index += 1
        if candidate is None or _split_of(candidate.key) != split:
            misses += 1
            if misses > MAX_MISSES:
                raise DataError(
                    f"synthetic {config.task}: {misses:,} candidates in a row were too short or "
                    f"not in the {split} split; there are too few different sources of length "
                    f"{config.min_length} to {config.max_length}, so raise max_length (or symbols)"
                )
            continue
        misses = 0
        count += 1
        target = candidate.target
        yield Example(candidate.source, target, (target,), f"synthetic {config.task}:{count}")


def _split_of(key: str) -> Split:
    """Return the split of a key, chosen by its hash: 10 % dev, 10 % test, 80 % train."""
    tenth = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % 10
    return "dev" if tenth == 0 else "test" if tenth == 1 else "train"


def _generate(config: SyntheticConfig, generator: random.Random) -> _Candidate | None:
    """Generate one candidate. Return None if its text is too short."""
    match config.task:
        case "copy" | "reverse" | "sort":
            source = _letters(config, generator)
            target = _transformed(config.task, source)
        case "addition":
            first, second = (_number(config, generator) for _ in range(2))
            source, target = f"{first}+{second}", str(first + second)
        case "case":
            return _case_candidate(config, generator)
        case _:
            assert_never(config.task)
    return _Candidate(source, source, target)


def _letters(config: SyntheticConfig, generator: random.Random) -> str:
    length = generator.randint(config.min_length, config.max_length)
    return "".join(generator.choices(string.ascii_lowercase[: config.symbols], k=length))


def _transformed(task: str, source: str) -> str:
    if task == "copy":
        return source
    return source[::-1] if task == "reverse" else "".join(sorted(source))


def _number(config: SyntheticConfig, generator: random.Random) -> int:
    """Draw a number with min_length to max_length digits, without leading zeros."""
    digits = generator.randint(config.min_length, config.max_length)
    lowest = 0 if digits == 1 else 10 ** (digits - 1)
    return generator.randrange(lowest, 10**digits)


def _case_candidate(config: SyntheticConfig, generator: random.Random) -> _Candidate | None:
    """Draw an English sentence, and cut it at a word boundary. The target is the sentence in upper
    or lower case.

    The key is the sentence without the tag <U> or <L>, so that both versions of a sentence are in
    the same split.
    """
    text = _cut(generator.choice(_sentences()), config.max_length)
    if len(text) < config.min_length:
        return None
    upper = generator.random() < 0.5
    return _Candidate(
        text, f"{'<U>' if upper else '<L>'} {text}", text.upper() if upper else text.lower()
    )


def _cut(sentence: str, length: int) -> str:
    if len(sentence) <= length:
        return sentence
    # Include one more character. If a word ends exactly at `length`, this is the space after it.
    return sentence[: length + 1].rpartition(" ")[0]


@cache
def _sentences() -> tuple[str, ...]:
    """Return all distinct bundled English training sentences."""
    french = read_bundled(BundledConfig(source="en", target="fr"), "train")
    german = read_bundled(BundledConfig(source="en", target="de"), "train")
    return tuple(dict.fromkeys(example.source for pair in (german, french) for example in pair))

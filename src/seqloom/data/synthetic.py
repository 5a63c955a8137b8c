"""Pairs with a known answer, made up as they are read."""

import hashlib
import random
import string
from collections.abc import Iterator
from functools import cache
from typing import assert_never

from seqloom.config.schema.corpora import BundledConfig, SyntheticConfig
from seqloom.core.errors import DataError
from seqloom.data.bundled import read_bundled
from seqloom.data.example import Example, Split

VERSION = 1
"""Part of the cache key of a corpus: to be raised when the same seed gives other pairs."""
MAX_MISSES = 20_000
"""So many candidates in a row without one for the split: there are (nearly) none."""


def read_synthetic(config: SyntheticConfig, split: Split) -> Iterator[Example]:
    """`config.examples` pairs. Candidate n depends on the seed and n alone; its text decides the
    split it belongs to, so that splits never share a source, whatever their seeds and lengths."""
    found = 0
    candidate = 0
    misses = 0
    while found < config.examples:
        pair = _pair(config, random.Random(f"{config.task} {config.seed} {candidate}"))
        candidate += 1
        if pair is None or _split_of(pair[0]) != split:
            misses += 1
            if misses > MAX_MISSES:
                raise DataError(
                    f"synthetic {config.task}: there are so few different sources of length "
                    f"{config.min_length} to {config.max_length} that none is left for the "
                    f"{split} split; raise max_length (or symbols)"
                )
            continue
        misses = 0
        found += 1
        _, source, target = pair
        yield Example(source, target, (target,), f"synthetic {config.task}:{found}")


def _split_of(key: str) -> Split:
    """A tenth of all sources each for dev and test."""
    tenth = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % 10
    return "dev" if tenth == 0 else "test" if tenth == 1 else "train"


def _pair(config: SyntheticConfig, generator: random.Random) -> tuple[str, str, str] | None:
    """(key, source, target). The key decides the split; None: nothing of that length came up."""
    match config.task:
        case "copy" | "reverse" | "sort":
            source = _letters(config, generator)
            target = _answer(config.task, source)
        case "addition":
            first, second = (_number(config, generator) for _ in range(2))
            source, target = f"{first}+{second}", str(first + second)
        case "case":
            return _case_pair(config, generator)
        case _:
            assert_never(config.task)
    return source, source, target


def _letters(config: SyntheticConfig, generator: random.Random) -> str:
    length = generator.randint(config.min_length, config.max_length)
    return "".join(generator.choices(string.ascii_lowercase[: config.symbols], k=length))


def _answer(task: str, source: str) -> str:
    if task == "copy":
        return source
    return source[::-1] if task == "reverse" else "".join(sorted(source))


def _number(config: SyntheticConfig, generator: random.Random) -> int:
    """Without leading zeros: as many digits as the length says."""
    digits = generator.randint(config.min_length, config.max_length)
    lowest = 0 if digits == 1 else 10 ** (digits - 1)
    return generator.randrange(lowest, 10**digits)


def _case_pair(config: SyntheticConfig, generator: random.Random) -> tuple[str, str, str] | None:
    """An English sentence, cut to the whole words that fit, to be raised or lowered.

    Both tags of one sentence belong to one split: knowing "<L> Tom" would help with "<U> Tom".
    """
    text = _cut(generator.choice(_sentences()), config.max_length)
    if len(text) < config.min_length:
        return None
    raised = generator.random() < 0.5
    return text, f"{'<U>' if raised else '<L>'} {text}", text.upper() if raised else text.lower()


def _cut(sentence: str, length: int) -> str:
    if len(sentence) <= length:
        return sentence
    # A word ends where a space follows, so one character more is looked at.
    return sentence[: length + 1].rpartition(" ")[0]


@cache
def _sentences() -> tuple[str, ...]:
    """All different English training sentences that come with seqloom."""
    french = read_bundled(BundledConfig(source="en", target="fr"), "train")
    german = read_bundled(BundledConfig(source="en", target="de"), "train")
    return tuple(dict.fromkeys(example.source for side in (german, french) for example in side))

"""Assigns generated examples to splits, and draws random numbers for generators.

The random numbers come from `random.Random` with a string as seed. So they are the same in every
process, on every machine and with every version of numpy.
"""

import hashlib
import math
import random
from collections.abc import Callable, Iterator
from typing import TypeVar

from seqloom.core.errors import DataError
from seqloom.data.example import Split

MAX_MISSES = 20_000
"""`generate` raises an error if more than this number of consecutive candidates are rejected or
belong to another split."""
Candidate = TypeVar("Candidate")


def split_of(key: str) -> Split:
    """Return the split of a key, chosen by its hash: 10 % dev, 10 % test, 80 % train."""
    tenth = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % 10
    return "dev" if tenth == 0 else "test" if tenth == 1 else "train"


def generate(
    name: str,
    seed: int,
    count: int,
    split: Split,
    draw: Callable[[random.Random], tuple[str, Candidate] | None],
    remedy: str,
) -> Iterator[Candidate]:
    """Yield `count` generated candidates that belong to `split`.

    Candidates are drawn one after the other. Candidate n depends only on `name`, `seed` and n. Each
    candidate has a key, and the hash of the key decides the split. So two splits never share a key,
    even if they have different seeds. Candidates of other splits are skipped.

    draw:   draws a candidate with the given generator. Returns (key, candidate), or None if the
            candidate is unsuitable; it is then skipped.
    remedy: advice for the error message that is raised if too few candidates belong to the split
    """
    index = misses = found = 0
    while found < count:
        drawn = draw(random.Random(f"{name} {seed} {index}"))
        index += 1
        if drawn is None or split_of(drawn[0]) != split:
            misses += 1
            if misses > MAX_MISSES:
                raise DataError(
                    f"{name}: {misses:,} generated examples in a row cannot be used in the {split} "
                    f"split; {remedy}"
                )
            continue
        misses = 0
        found += 1
        yield drawn[1]


def gaussian(generator: random.Random) -> float:
    """Draw a number with mean 0 and standard deviation 1 (Box and Muller 1958).

    Unlike `random.gauss`, the algorithm cannot change between Python versions.
    """
    radius = math.sqrt(-2 * math.log(1 - generator.random()))
    return radius * math.cos(2 * math.pi * generator.random())

"""Numbers that are read off what was measured. Nothing heavy is imported here."""

import math
from collections.abc import Sequence
from typing import Any


def slope(sizes: Sequence[float], times: Sequence[float]) -> float:
    """k where time grows like size^k, by least squares over the logarithms."""
    x, y = [math.log(size) for size in sizes], [math.log(time) for time in times]
    middle, height = sum(x) / len(x), sum(y) / len(y)
    across = sum((one - middle) * (other - height) for one, other in zip(x, y, strict=True))
    return across / sum((one - middle) ** 2 for one in x)


def between(run: dict[str, Any], first: str, last: str, clock: str = "seconds") -> float:
    """Seconds from the end of one phase to the end of another."""
    return float(run["ends"][last][clock]) - float(run["ends"][first][clock])

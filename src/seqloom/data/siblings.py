"""Examples that have their source in common: several translations of a sentence, captions of an image."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Sizes = NDArray[Any]
"""Of any kind of integer."""


class Siblings:
    """Finds, for every example, all that have the same source.

    keys: (examples,) equal where sources are equal, and seldom elsewhere
    same: are the sources of these two examples really equal?
    """

    def __init__(self, keys: Sizes, same: Callable[[int, int], bool]) -> None:
        self._order = np.argsort(keys, kind="stable")  # so that siblings stay in their order
        self._keys = keys[self._order]
        self._places = np.argsort(self._order)
        self._same = same

    def of(self, index: int) -> list[int]:
        """Itself among them, in the order of the corpus."""
        key = self._keys[self._places[index]]
        first, behind = np.searchsorted(self._keys, key), np.searchsorted(self._keys, key, "right")
        alike = self._order[first:behind].tolist()
        return [other for other in alike if other == index or self._same(index, other)]

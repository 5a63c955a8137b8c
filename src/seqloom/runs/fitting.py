"""Fitting: what is too much for a GPU's memory at once is done in halves."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from seqloom.core.errors import DataError

Whole = TypeVar("Whole")
Result = TypeVar("Result")


def as_it_fits(
    work: Callable[[Whole], Result], whole: Whole, halves: Callable[[Whole], Sequence[Whole]]
) -> list[Result]:
    """What comes of a batch, or of its halves, or of theirs, in order.

    halves: none of what cannot be parted any more
    """
    try:
        return [work(whole)]
    except torch.OutOfMemoryError as error:
        parts = halves(whole)
        if not parts:
            raise DataError(
                f"a single line does not fit into the memory of the GPU: {_first_line(error)}. "
                "Split the line, take a narrower beam or fewer samples, or leave more of the GPU free"
            ) from error
    # Not before what did not fit is forgotten, and the error held on to it.
    torch.cuda.empty_cache()
    return [result for part in parts for result in as_it_fits(work, part, halves)]


def halved(whole: list[int]) -> list[list[int]]:
    """The two halves of some numbers."""
    middle = len(whole) // 2
    return [whole[:middle], whole[middle:]] if middle else []


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].partition(". ")[0]

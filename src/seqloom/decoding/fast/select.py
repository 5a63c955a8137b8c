"""Chooses between the plain version of a search and its faster versions."""

import torch

from seqloom.decoding.beam import Beam
from seqloom.decoding.fast.captured import CapturedSearch
from seqloom.decoding.fast.compiled import CompiledSearch
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.search import Search


def select_fastest(
    search: Search,
    device: torch.device,
    precision: torch.dtype | None = None,
    *,
    compiled: bool = False,
) -> Search:
    """Return the fastest version of a search on a device. All versions find the same hypotheses.

    For greedy and beam search, the result is a `CompiledSearch` if `compiled` is True. If
    `compiled` is False, the result is a `CapturedSearch` (with CUDA graphs) on a GPU, and `search`
    itself on a CPU. Other searches, and searches with user-defined rules, are returned unchanged.

    precision: data type of the decoder in a `CapturedSearch`. Default: None, which means the data
               type of the encoder output.
    compiled:  True to compile the step of the search. Only batches with a single source use the
               compiled step. Default: False.
    """
    if not isinstance(search, Greedy | Beam):
        return search
    if search.rules.extensions:
        return search  # the code of these rules may not be capturable
    if compiled:
        return CompiledSearch(search)
    if device.type == "cuda":
        return CapturedSearch(search, precision)
    return search

"""The choice between the plain and the fast version of a search."""

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
    """The fastest version of a search on a device. All versions find the same hypotheses.

    Greedy and beam search are compiled if `compiled` is set, and captured as CUDA graphs on a GPU.
    Other searches have only the plain version.

    precision: of the decoder in captured steps. Default: that of its weights.
    compiled:  compile the steps of single sources, see `CompiledSearch`. Default: False.
    """
    if not isinstance(search, Greedy | Beam):
        return search
    if compiled:
        return CompiledSearch(search)
    if device.type == "cuda":
        return CapturedSearch(search, precision)
    return search

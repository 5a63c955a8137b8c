"""Linear maps, quick also for the few rows of a step in a search."""

from weakref import ReferenceType, ref

import torch
from torch import Tensor, nn

FEW = 16


class Linear(nn.Linear):
    """W x + b. For a few rows on a CPU, with W laid out the other way round.

    As torch keeps it, W has a row for each number that comes out, and a product with a few rows
    spends most of its time on rearranging it. Rearranged once and kept, such a product takes about
    half the time, and a search makes thousands of them. Only weights that nobody learns are kept
    so: an optimiser may change its weights without leaving a trace. Of the others, what is kept
    is made anew whenever the weights are others, or have been changed.
    """

    def __init__(self, width: int, wanted: int) -> None:
        super().__init__(width, wanted)
        self._kept: tuple[ReferenceType[Tensor], tuple[int, int], Tensor] | None = None

    def forward(self, states: Tensor) -> Tensor:
        few = states.dim() == 2 and states.shape[0] <= FEW and not states.is_cuda
        if not few or self.weight.requires_grad or self.weight.is_inference():
            return super().forward(states)
        return torch.addmm(self.bias, states, self._turned())

    def _turned(self) -> Tensor:
        """(in, out) W the other way round."""
        weight = self.weight
        stamp = (weight.data_ptr(), weight._version)
        if self._kept is None or self._kept[0]() is not weight or self._kept[1] != stamp:
            self._kept = (ref(weight), stamp, weight.detach().t().contiguous())
        return self._kept[2]

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_kept": None}  # a copy of this map keeps its own

"""Linear maps, quick also for the few rows of a step in a search."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FEW = 48
"""Rows up to which weights are packed; with more of them it does not pay."""
PACKS = torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()
"""Does this torch have MKL's products with packed weights?"""


@dataclass(frozen=True)
class Layout:
    """Weights (out, in) and biases (out,) as a product with a few rows likes to meet them.

    As torch keeps them, such a product spends most of its time on rearranging the weights. Packed
    once and kept, they are read in one go, and a search makes thousands of these products. One
    packing serves any number of rows.
    """

    weight: Tensor
    bias: Tensor
    packed: Tensor | None = None

    @classmethod
    def of(cls, maps: Sequence[nn.Linear], pack: bool) -> "Layout":
        """Several maps of the same states side by side; one map alone is met where it lies."""
        if len(maps) == 1:
            weight, bias = maps[0].weight.detach(), maps[0].bias.detach()
        else:
            weight = torch.cat([one.weight for one in maps])
            bias = torch.cat([one.bias for one in maps])
        if not (pack and PACKS and weight.dtype == torch.float32):
            return cls(weight, bias)
        return cls(weight, bias, torch.ops.mkl._mkl_reorder_linear_weight(weight, 1))

    def select(self, rows: Tensor) -> "Layout":
        """It is the same for every row of a decoder's state."""
        return self

    def __call__(self, states: Tensor) -> Tensor:
        """(R, in) -> (R, out)"""
        rows = states.shape[0]
        # MKL knows no gradients.
        learning = states.requires_grad and torch.is_grad_enabled()
        if self.packed is None or rows > FEW or learning:
            return F.linear(states, self.weight, self.bias)
        answers: Tensor = torch.ops.mkl._mkl_linear(
            states, self.packed, self.weight, self.bias, rows
        )
        return answers


@dataclass(frozen=True)
class _Stamp:
    """A tensor as it was."""

    tensor: Tensor
    place: int
    version: int

    def is_of(self, tensor: Tensor) -> bool:
        return (
            tensor is self.tensor
            and not tensor.requires_grad
            and tensor.data_ptr() == self.place
            and tensor._version == self.version
        )


class Kept:
    """The layout of one linear map, or of several of the same states side by side.

    Only weights on a CPU that nobody learns are kept so: an optimiser may change its weights
    without leaving a trace. Of the others, what is kept is made anew whenever the weights are
    others, or have been changed.
    """

    def __init__(self) -> None:
        self._made: tuple[list[_Stamp], Layout] | None = None

    def layout(self, maps: Sequence[nn.Linear]) -> Layout | None:
        """None where nothing may be kept."""
        tensors = [tensor for one in maps for tensor in (one.weight, one.bias)]
        if self._made is not None:
            stamps, layout = self._made
            if all(map(_Stamp.is_of, stamps, tensors)):
                return layout
        if any(one.requires_grad or one.is_inference() or one.is_cuda for one in tensors):
            return None
        with torch.inference_mode(False), torch.no_grad():  # so that it serves in any mode
            layout = Layout.of(maps, pack=True)
        self._made = ([_Stamp(one, one.data_ptr(), one._version) for one in tensors], layout)
        return layout

    def __getstate__(self) -> dict[str, object]:
        return {"_made": None}  # a copy keeps its own


class Linear(nn.Linear):
    """W x + b, with a layout that is kept for the few rows of a step."""

    def __init__(self, width: int, wanted: int) -> None:
        super().__init__(width, wanted)
        self._kept = Kept()

    def forward(self, states: Tensor) -> Tensor:
        few = states.dim() == 2 and states.shape[0] <= FEW and not states.is_cuda
        layout = self._kept.layout([self]) if few else None
        return super().forward(states) if layout is None else layout(states)

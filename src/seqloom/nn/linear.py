"""Linear maps, quick for the few rows of a step in a search and for the many of a step in training."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ARM = platform.machine() == "aarch64"
FEW, FEW_ALONE = (256, 16) if ARM else (64, 64)
"""Rows up to which weights are met the other way round, and the same with a single thread; with
more of them it does not pay. On ARM torch's own product takes two cores also where it has one."""
FEWER = 1 if ARM else 8
"""Rows up to which that does not pay either: on ARM all maps, elsewhere those of more to less."""
LINE = 16
"""Numbers between two rows of such weights: a line of the cache."""
MANY = 512
"""Rows from which on it pays to turn weights round for one product."""


@dataclass(frozen=True)
class Layout:
    """Weights (in, out) and biases (out,) as a product with a few rows likes to meet them.

    torch keeps weights as (out, in), and a product with a few rows spends much of its time on
    turning them round. Turned once and kept, they are read in one go, and a search makes thousands
    of these products. Where `out` is a power of two, all rows would fall on the same few places of
    the cache; a gap between them sees to that.
    """

    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, maps: Sequence[nn.Linear], turn: bool) -> "Layout":
        """Several maps of the same states side by side; turned, or as they lie."""
        weight = torch.cat([one.weight for one in maps])  # (out, in)
        bias = torch.cat([one.bias for one in maps])
        if not turn:
            return cls(weight.T, bias)
        wanted, width = weight.shape
        room = weight.new_empty(width, wanted + LINE)
        return cls(room[:, :wanted].copy_(weight.T), bias)

    def select(self, rows: Tensor) -> "Layout":
        """It is the same for every row of a decoder's state."""
        return self

    def __call__(self, states: Tensor) -> Tensor:
        """(R, in) -> (R, out)"""
        return torch.addmm(self.bias, states, self.weight)


@dataclass(frozen=True, slots=True)
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
        # Weight and bias; asked for by name, a module takes ten times as long to find them.
        both = [one._parameters.values() for one in maps]
        tensors = [tensor for pair in both for tensor in pair if tensor is not None]
        if self._made is not None:
            stamps, layout = self._made
            if all(map(_Stamp.is_of, stamps, tensors)):
                return layout
        if any(one.requires_grad or one.is_inference() or one.is_cuda for one in tensors):
            return None
        with torch.inference_mode(False), torch.no_grad():  # so that it serves in any mode
            layout = Layout.of(maps, turn=True)
        self._made = ([_Stamp(one, one.data_ptr(), one._version) for one in tensors], layout)
        return layout

    def __getstate__(self) -> dict[str, object]:
        return {"_made": None}  # a copy keeps its own


def linear(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """W x + b of any rows: (…, in) -> (…, out)"""
    cpu = states.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    learning = cpu and torch.is_grad_enabled() and weight.requires_grad
    if not learning or states.numel() < MANY * weight.shape[1]:
        return F.linear(states, weight, bias)
    mapped: Tensor = _Learning.apply(  # type: ignore[no-untyped-call]
        states.flatten(0, -2), weight, bias
    )
    return mapped if states.dim() == 2 else mapped.view(*states.shape[:-1], -1)


class _Learning(torch.autograd.Function):
    """W x + b and its way back, as products that a CPU is quickest at.

    Weights are turned round first, and the gradient of the bias, a sum over all rows, is a product
    with ones: torch's own sum goes down the columns.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(rows, weight)
        return torch.addmm(bias, rows, weight.t().contiguous())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (rows, weight), (gradient,) = ctx.saved_tensors, gradients
        to_rows = gradient @ weight if ctx.needs_input_grad[0] else None
        return to_rows, gradient.t() @ rows, gradient.new_ones(len(gradient)) @ gradient


class Linear(nn.Linear):
    """W x + b, with a layout that is kept for the few rows of a step.

    Where the rows begin and end that it pays for was measured on x86_64 (MKL) and on aarch64
    (OpenBLAS), with two cores.
    """

    def __init__(self, width: int, wanted: int) -> None:
        super().__init__(width, wanted)
        self._kept = Kept()
        self._least = FEWER + 1 if ARM or width > wanted else 1

    def forward(self, states: Tensor) -> Tensor:
        if torch.compiler.is_compiling():  # which has layouts of its own
            return super().forward(states)
        most = FEW if torch.get_num_threads() > 1 else FEW_ALONE
        turned = states.dim() == 2 and self._least <= states.shape[0] <= most and not states.is_cuda
        layout = self._kept.layout([self]) if turned else None
        return linear(states, self.weight, self.bias) if layout is None else layout(states)

"""Linear layers for a CPU: fast for the few rows of a decoding step and for many rows in training.

torch.nn.Linear is the plain version. torch stores weights as (out, in). Two costs are avoided:

few rows     A product with few rows spends much of its time transposing the weights. A search makes
             thousands of such products with the same weights, so `PackedLinear` stores them
             transposed, once.
many rows    In training the weights change at every step, so they are transposed for one product,
             and the gradient of the bias is a product instead of a sum (`linear`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqloom.nn.fast.dispatch import IS_ARM, trains_on_cpu

# Measured on x86_64 (MKL) and aarch64 (OpenBLAS) with two cores.
MAX_PACKED_ROWS, MAX_PACKED_ROWS_ONE_THREAD = (256, 16) if IS_ARM else (64, 64)
"""Maximum number of rows for which packed weights are faster, with several threads and with one.
On ARM torch's own product uses two cores even if torch is limited to one thread."""
MAX_UNPACKED_ROWS = 1 if IS_ARM else 8
"""Maximum number of rows for which torch's own product is faster: on ARM for every layer, elsewhere
for layers that reduce the width."""
MIN_TRANSPOSED_ROWS = 512
"""Minimum number of rows for which transposing the weights for one product is faster."""
CACHE_LINE = 16
"""Size of a cache line in float32 numbers."""


@dataclass(frozen=True)
class PackedLinear:
    """W x + b with a transposed copy of the weights. Several layers may be joined side by side.

    weight: (in, out), with unused columns between its rows. If `out` is a power of two, rows without
            a gap would all compete for the same few sets of the processor's cache
    bias:   (out,)
    """

    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, layers: Sequence[nn.Linear], transpose: bool) -> "PackedLinear":
        """Join layers with the same input. Without `transpose`, the weights are only concatenated."""
        weight = torch.cat([layer.weight for layer in layers])  # (out, in)
        bias = torch.cat([layer.bias for layer in layers])
        if not transpose:
            return cls(weight.T, bias)
        outputs, width = weight.shape
        storage = weight.new_empty(width, outputs + CACHE_LINE)
        return cls(storage[:, :outputs].copy_(weight.T), bias)

    def select(self, rows: Tensor) -> "PackedLinear":
        """Weights do not depend on the rows of a decoder state."""
        return self

    def __call__(self, states: Tensor) -> Tensor:
        """(R, in) -> (R, out)"""
        return torch.addmm(self.bias, states, self.weight)


@dataclass(frozen=True, slots=True)
class _TensorVersion:
    """Identifies a tensor and the values it had."""

    tensor: Tensor
    address: int
    version: int

    def is_current(self, tensor: Tensor) -> bool:
        return (
            tensor is self.tensor
            and not tensor.requires_grad
            and tensor.data_ptr() == self.address
            and tensor._version == self.version
        )


class PackedLinearCache:
    """Keeps the packed weights of one layer, or of several joined ones, until the weights change.

    Only weights on a CPU that need no gradient are packed: an optimiser may change weights without
    increasing their version.
    """

    def __init__(self) -> None:
        self._entry: tuple[list[_TensorVersion], PackedLinear] | None = None

    def get(self, layers: Sequence[nn.Linear]) -> PackedLinear | None:
        """The packed weights; None if these weights must not be packed."""
        # Weight and bias. Attribute access by name takes ten times as long in an nn.Module.
        parameters = [layer._parameters.values() for layer in layers]
        tensors = [tensor for pair in parameters for tensor in pair if tensor is not None]
        if self._entry is not None:
            versions, packed = self._entry
            if all(map(_TensorVersion.is_current, versions, tensors)):
                return packed
        if any(one.requires_grad or one.is_inference() or one.is_cuda for one in tensors):
            return None
        with torch.inference_mode(False), torch.no_grad():  # usable in every mode
            packed = PackedLinear.of(layers, transpose=True)
        self._entry = (
            [_TensorVersion(one, one.data_ptr(), one._version) for one in tensors],
            packed,
        )
        return packed

    def __getstate__(self) -> dict[str, object]:
        return {"_entry": None}  # a copy of a module packs its own weights


def linear(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """W x + b for any number of rows: (…, in) -> (…, out)"""
    if not trains_on_cpu(states, weight) or states.numel() < MIN_TRANSPOSED_ROWS * weight.shape[1]:
        return F.linear(states, weight, bias)
    mapped: Tensor = _TransposedLinear.apply(  # type: ignore[no-untyped-call]
        states.flatten(0, -2), weight, bias
    )
    return mapped if states.dim() == 2 else mapped.view(*states.shape[:-1], -1)


class _TransposedLinear(torch.autograd.Function):
    """W x + b and its gradient.

    The gradient of the bias is a sum over all rows. As a product with ones it is faster, because
    torch's sum runs down the columns.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(rows, weight)
        return torch.addmm(bias, rows, weight.t().contiguous())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (rows, weight), (gradient,) = ctx.saved_tensors, gradients
        grad_rows = gradient @ weight if ctx.needs_input_grad[0] else None
        return grad_rows, gradient.t() @ rows, gradient.new_ones(len(gradient)) @ gradient


def joined_linear(states: Tensor, *layers: nn.Module) -> tuple[Tensor, ...]:
    """Several linear layers with the same input as one product, which is faster than several.

    (…, in) -> one tensor (…, out) per layer
    """
    linears = [layer for layer in layers if isinstance(layer, nn.Linear)]
    assert len(linears) == len(layers)
    weight = torch.cat([layer.weight for layer in linears])
    bias = torch.cat([layer.bias for layer in linears])
    return linear(states, weight, bias).split([layer.out_features for layer in linears], dim=-1)


class Linear(nn.Linear):
    """torch.nn.Linear that packs its weights for the few rows of a decoding step."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__(width, outputs)
        self._packed = PackedLinearCache()
        self._min_packed_rows = MAX_UNPACKED_ROWS + 1 if IS_ARM or width > outputs else 1

    def forward(self, states: Tensor) -> Tensor:
        """(…, in) -> (…, out)"""
        if torch.compiler.is_compiling():  # the compiler packs weights itself
            return super().forward(states)
        most = MAX_PACKED_ROWS if torch.get_num_threads() > 1 else MAX_PACKED_ROWS_ONE_THREAD
        few = (
            states.dim() == 2
            and self._min_packed_rows <= states.shape[0] <= most
            and not states.is_cuda
        )
        packed = self._packed.get([self]) if few else None
        return linear(states, self.weight, self.bias) if packed is None else packed(states)

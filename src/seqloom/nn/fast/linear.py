"""Linear layers for a CPU: fast for the few rows of a decoding step and for many rows in training.

torch.nn.Linear is the plain version. It stores weights as (out, in). Products with the transposed
weights are faster in two cases:

few rows     A product with few rows spends much of its time transposing the weights. A search makes
             thousands of such products with the same weights, so `PackedLinear` transposes the
             weights once and stores the result.
many rows    In training the weights change at every step, so `linear` transposes them for each
             product. It also computes the gradient of the bias as a product instead of a sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqloom.nn.fast.dispatch import IS_ARM, PRODUCTS_USE_ONE_THREAD, trains_on_cpu

# Measured on x86_64 (MKL) and aarch64 (OpenBLAS) with two cores.
MAX_PACKED_ROWS = 256 if IS_ARM else 64
"""Maximum number of rows for which packed weights are faster than torch's own product."""
MAX_PACKED_ROWS_ONE_THREAD = 16 if IS_ARM and not PRODUCTS_USE_ONE_THREAD else MAX_PACKED_ROWS
"""The same if torch is limited to one thread. On ARM it is smaller, because torch's own product still
uses several cores, unless OMP_NUM_THREADS was 1 when torch was loaded."""
MAX_UNPACKED_ROWS = 1 if IS_ARM else 8
"""Maximum number of rows for which torch's own product is faster than packed weights. This holds
for every layer on ARM, elsewhere only for layers whose output is narrower than their input."""
MIN_TRANSPOSED_ROWS = 512
"""Minimum number of rows for which a product is faster if the weights are transposed first."""
CACHE_LINE = 16
"""Size of a cache line in float32 numbers."""


@dataclass(frozen=True)
class PackedLinear:
    """Computes W x + b for one linear layer, or for several joined layers with the same input.

    weight: (in, out), the transpose of W
    bias:   (out,)
    """

    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, layers: Sequence[nn.Linear], transpose: bool) -> "PackedLinear":
        """Join several linear layers with the same input into one.

        transpose: True to store the weights transposed in memory, which is faster on a CPU. False
                   to keep their layout
        """
        weight = torch.cat([layer.weight for layer in layers])  # (out, in)
        bias = torch.cat([layer.bias for layer in layers])
        if not transpose:
            return cls(weight.T, bias)
        outputs, width = weight.shape
        # A gap after each row: without gaps, rows whose length is a power of two would compete for
        # the same few places in the processor's cache.
        storage = weight.new_empty(width, outputs + CACHE_LINE)
        return cls(storage[:, :outputs].copy_(weight.T), bias)

    def select(self, rows: Tensor) -> "PackedLinear":
        """Return self. All rows of a decoder state use the same weights."""
        return self

    def __call__(self, states: Tensor) -> Tensor:
        """Compute W x + b for R rows: (R, in) -> (R, out)"""
        return torch.addmm(self.bias, states, self.weight)


@dataclass(frozen=True, slots=True)
class _TensorVersion:
    """Identifies a tensor and its contents at one moment, to detect later changes."""

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
    """Keeps a packed copy of the weights of one or several layers until the weights change.

    Packed weights are joined and transposed, which makes products with few rows faster on a CPU.
    Weights on a GPU are not packed. Weights that need a gradient are not packed either, because an
    optimiser may change them in a way that this class cannot detect.
    """

    def __init__(self) -> None:
        self._entry: tuple[list[_TensorVersion], PackedLinear] | None = None

    def get(self, layers: Sequence[nn.Linear]) -> PackedLinear | None:
        """Return the packed weights of these layers.

        Return None if the weights are on a GPU, need a gradient or were created in inference mode.
        """
        # Weights and biases. Reading `_parameters` is ten times as fast as `layer.weight`.
        parameters = [layer._parameters.values() for layer in layers]
        tensors = [tensor for pair in parameters for tensor in pair if tensor is not None]
        if self._entry is not None:
            versions, packed = self._entry
            if all(map(_TensorVersion.is_current, versions, tensors)):
                return packed
        if any(each.requires_grad or each.is_inference() or each.is_cuda for each in tensors):
            return None
        # A tensor created in inference mode could not be used in other modes.
        with torch.inference_mode(False), torch.no_grad():
            packed = PackedLinear.of(layers, transpose=True)
        self._entry = (
            [_TensorVersion(each, each.data_ptr(), each._version) for each in tensors],
            packed,
        )
        return packed

    def __getstate__(self) -> dict[str, object]:
        return {"_entry": None}  # packed weights are not copied; the copy packs its own weights


def linear(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute W x + b: (…, in) -> (…, out). Fast for many rows in training on a CPU."""
    if not trains_on_cpu(states, weight) or states.numel() < MIN_TRANSPOSED_ROWS * weight.shape[1]:
        return F.linear(states, weight, bias)
    mapped: Tensor = _TransposedLinear.apply(  # type: ignore[no-untyped-call]
        states.flatten(0, -2), weight, bias
    )
    return mapped if states.dim() == 2 else mapped.view(*states.shape[:-1], -1)


def linear_relu(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute ReLU(W x + b) of each row in one GPU kernel: (R, in) -> (R, out)

    `dispatch.can_fuse_relu` says when this is possible.
    """
    return torch._addmm_activation(bias, rows, weight.T)


class _TransposedLinear(torch.autograd.Function):
    """Computes W x + b with transposed weights and a hand-written gradient.

    The gradient of the bias is a sum over all rows. It is computed as a product with a vector of
    ones, because this is faster than torch's sum over the first dimension.
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
    """Apply several linear layers to the same input. One matrix product for all layers is faster
    than one for each.

    (…, in) -> one tensor (…, out) per layer
    """
    linears = [layer for layer in layers if isinstance(layer, nn.Linear)]
    assert len(linears) == len(layers)
    weight = torch.cat([layer.weight for layer in linears])
    bias = torch.cat([layer.bias for layer in linears])
    return linear(states, weight, bias).split([layer.out_features for layer in linears], dim=-1)


class Linear(nn.Linear):
    """A torch.nn.Linear that is faster on a CPU.

    For few rows it keeps a transposed copy of the weights, for many rows it calls `linear`.
    """

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__(width, outputs)
        self._packed = PackedLinearCache()
        self._min_packed_rows = MAX_UNPACKED_ROWS + 1 if IS_ARM or width > outputs else 1

    def forward(self, states: Tensor) -> Tensor:
        """Compute W x + b: (…, in) -> (…, out)"""
        if torch.compiler.is_compiling():  # the compiler packs weights itself
            return super().forward(states)
        max_rows = MAX_PACKED_ROWS if torch.get_num_threads() > 1 else MAX_PACKED_ROWS_ONE_THREAD
        has_few_rows = (
            states.dim() == 2
            and self._min_packed_rows <= states.shape[0] <= max_rows
            and not states.is_cuda
        )
        packed = self._packed.get([self]) if has_few_rows else None
        return linear(states, self.weight, self.bias) if packed is None else packed(states)

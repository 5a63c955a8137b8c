"""Fused operations of Transformer layers, for training on a GPU with Triton kernels.

The plain layers spend half of a training step on operations that only read and write memory. Each of
these functions computes several neighbouring operations, so that tensors are read and written less
often. Gradients of weights and biases are computed in float32.

embed                 embedding, positions and dropout
add_norm              bias, dropout, residual connection and layer normalisation
linear                one matrix product for several linear layers
linear_relu           linear layer, ReLU and dropout
attention             biases of queries, keys and values, and attention, for short rows
linear_cross_entropy  output layer and cross-entropy; the gradient overwrites the logits
r_drop                cross-entropies and divergence of two forward passes

`fused_transformer.py` builds layers from these functions. Matrix products are those of torch.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

MAX_LENGTH = 64
"""Maximum number of queries and of keys in a row for which `attention` can be used. A program keeps a
complete row in shared memory, about 40 KB for heads of width 64."""
LEVELS = 1 << 16
"""The probability of keeping an entry in dropout is rounded to a multiple of 1 / LEVELS."""
ROW_ELEMENTS, NORM_WARPS = 2048, 4
"""Number of entries, and of warps, of a program of `embed_kernel` and of `add_norm_kernel`."""
GRADIENT_ELEMENTS, GRADIENT_WARPS = 1024, 1
"""The same for `add_norm_gradient_kernel`."""
ATTENTION_REGISTERS = 128
"""Maximum number of registers of a thread of the attention kernels. With more, fewer programs run at the
same time."""
SUM_PROGRAMS = 1056
"""Number of programs that compute partial sums. It does not depend on the GPU, so that the results do
not depend on it either."""
RELU_ROWS, RELU_COLUMNS = 4, 512
"""Shape of the blocks that a program of `relu_gradient_kernel` reads."""
SUM_ROWS, SUM_COLUMNS = 128, 8
"""Shape of the blocks in which a program of `add_rows_kernel` reads partial sums."""
ALIGNMENT = 8
"""Matrix products in bf16 are fast if the sizes of their operands are multiples of this number."""
TOKENS_AT_ONCE = 2048
"""Number of logits of a position that a program of the loss kernels reads at a time."""


def _kernels() -> Any:
    """Import the module with the kernels. This happens on first use, because it needs Triton."""
    return importlib.import_module("seqloom.nn.fast.triton_fused_kernels")


def _power_of_two(number: int) -> int:
    """Return the smallest power of two that is at least `number`."""
    return 1 << (number - 1).bit_length()


def _block_size(width: int) -> int:
    """Return the number of columns that a kernel computes for vectors of this width.

    It is at least 8, because dropout draws the random numbers of eight columns at a time.
    """
    return max(8, _power_of_two(width))


def _divide_up(number: int, divisor: int) -> int:
    """Divide and round up."""
    return -(-number // divisor)


def _new_float(like: Tensor, *shape: int) -> Tensor:
    """Return an uninitialised float32 tensor on the device of `like`."""
    return torch.empty(shape, dtype=torch.float32, device=like.device)


def _add_rows(sums: Tensor) -> Tensor:
    """Add up partial sums: (R, …) -> (…)"""
    out = torch.empty_like(sums[0])
    _kernels().add_rows_kernel[(_divide_up(out.numel(), SUM_COLUMNS),)](
        *(sums, out, len(sums), out.numel()), ROWS=SUM_ROWS, BLOCK=SUM_COLUMNS, num_warps=4
    )
    return out


class DropoutDraw(NamedTuple):
    """The settings of one dropout. Kernels compute its mask from them.

    seed:   (1,) the random numbers are derived from it; None: no dropout
    number: number of the dropout. Dropouts with the same seed have different numbers
    levels: probability of keeping an entry, times LEVELS
    scale:  the factor of the entries that are kept
    """

    seed: Tensor | None
    number: int
    levels: int
    scale: float


NO_DROPOUT = DropoutDraw(None, 0, LEVELS, 1.0)


def draw_dropouts(count: int, rate: float, device: torch.device) -> list[DropoutDraw]:
    """Return several dropouts with one random seed."""
    if rate == 0:
        return [NO_DROPOUT] * count
    levels = round((1 - rate) * LEVELS)
    # This draw advances the random state of torch, also when a CUDA graph with it is replayed.
    seed = torch.randint(2**62, (1,), device=device)
    return [DropoutDraw(seed, number, levels, LEVELS / levels) for number in range(count)]


def embed(
    tokens: Tensor,
    table: Tensor,
    scale: float,
    positions: tuple[Tensor, Tensor] | None,
    dropout: DropoutDraw,
    dtype: torch.dtype,
) -> Tensor:
    """Compute dropout(table[token] · scale + position vector): (B, T) -> (B, T, D)

    table:     (V, D) learned vectors
    positions: the position of each token (B, T), and the vectors of all positions (P, D); None: no
               position vectors
    """
    vectors: Tensor = _Embed.apply(  # type: ignore[no-untyped-call]
        tokens, table, scale, positions, dropout, dtype
    )
    return vectors


class _Embed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        tokens: Tensor,
        table: Tensor,
        scale: float,
        positions: tuple[Tensor, Tensor] | None,
        dropout: DropoutDraw,
        dtype: torch.dtype,
    ) -> Tensor:
        width = table.shape[1]
        tokens = tokens.contiguous()
        ids, vectors = (None, None) if positions is None else positions
        out = torch.empty(*tokens.shape, width, dtype=dtype, device=table.device)
        numbers = (tokens.numel(), width, scale, *dropout)
        block = _block_size(width)
        sizes = {
            "DROPS": dropout.seed is not None,
            "ROWS": max(1, ROW_ELEMENTS // block),
            "BLOCK": block,
            "num_warps": NORM_WARPS,
        }
        _kernels().embed_kernel[(_divide_up(tokens.numel(), sizes["ROWS"]),)](
            *(tokens, None if ids is None else ids.contiguous(), table, vectors, out, *numbers),
            HAS_POSITIONS=positions is not None,
            **sizes,
        )
        ctx.save_for_backward(tokens)
        ctx.arguments = numbers, sizes, len(table)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (tokens,), gradient = ctx.saved_tensors, gradients[0].contiguous()
        numbers, sizes, vocabulary = ctx.arguments
        vectors = torch.empty_like(gradient, dtype=torch.float32)
        _kernels().embed_gradient_kernel[(_divide_up(tokens.numel(), sizes["ROWS"]),)](
            gradient, vectors, *numbers, **sizes
        )
        # torch sorts the tokens, which takes less time for 32-bit numbers.
        table_gradient = torch.ops.aten.embedding_dense_backward(
            vectors, tokens.int(), vocabulary, -1, False
        )
        return None, table_gradient, None, None, None, None


class NormWeights(NamedTuple):
    """The parameters of a layer normalisation."""

    weight: Tensor
    bias: Tensor
    epsilon: float


def add_norm(
    skip: Tensor,
    states: Tensor | None,
    bias: Tensor | None,
    dropout: DropoutDraw,
    norm: NormWeights,
) -> tuple[Tensor, Tensor]:
    """Compute x = skip + dropout(states + bias). Return x and its layer normalisation.

    (…, D) -> (…, D), (…, D). All tensors are contiguous.

    states: output of a sublayer; None: x is `skip`
    """
    stream, normalised = _AddNorm.apply(  # type: ignore[no-untyped-call]
        skip, states, bias, dropout, *norm
    )
    return stream, normalised


class _AddNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        skip: Tensor,
        states: Tensor | None,
        bias: Tensor | None,
        dropout: DropoutDraw,
        norm_weight: Tensor,
        norm_bias: Tensor,
        epsilon: float,
    ) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        width = skip.shape[-1]
        rows = skip.numel() // width
        adds = states is not None
        numbers = (rows, width, *dropout)
        sizes = {
            "ADDS": adds,
            "DROPS": dropout.seed is not None,
            "BLOCK": _block_size(width),
        }
        stream = torch.empty_like(skip) if adds else skip.view_as(skip)
        normalised = torch.empty_like(skip)
        mean, inverse = _new_float(skip, rows), _new_float(skip, rows)
        rows_per_program = max(1, ROW_ELEMENTS // sizes["BLOCK"])
        _kernels().add_norm_kernel[(_divide_up(rows, rows_per_program),)](
            *(skip, states, bias, norm_weight, norm_bias),
            *(stream, normalised, mean, inverse, epsilon, *numbers),
            **sizes,
            ROWS=rows_per_program,
            num_warps=NORM_WARPS,
        )
        ctx.save_for_backward(stream, norm_weight, mean, inverse)
        ctx.arguments = numbers, sizes
        return stream, normalised

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        stream, norm_weight, mean, inverse = ctx.saved_tensors
        numbers, sizes = ctx.arguments
        rows, width, *_ = numbers
        stream_gradient, norm_gradient = gradients
        assert norm_gradient is not None, "the normalised stream is always used"
        rows_per_program = max(1, GRADIENT_ELEMENTS // sizes["BLOCK"])
        programs = min(SUM_PROGRAMS, _divide_up(rows, rows_per_program))
        sums = _new_float(stream, programs, 3, width)
        skip_gradient = torch.empty_like(stream)
        input_gradient = torch.empty_like(stream) if sizes["DROPS"] else skip_gradient
        _kernels().add_norm_gradient_kernel[(programs,)](
            *(stream, norm_weight, mean, inverse, norm_gradient.contiguous()),
            None if stream_gradient is None else stream_gradient.contiguous(),
            *(skip_gradient, input_gradient, sums, *numbers),
            **sizes,
            HAS_STREAM=stream_gradient is not None,
            ROWS=rows_per_program,
            num_warps=GRADIENT_WARPS,
        )
        weight_sum, shift_sum, bias_sum = _add_rows(sums)
        if not sizes["ADDS"]:
            return skip_gradient, None, None, None, weight_sum, shift_sum, None
        return skip_gradient, input_gradient, bias_sum, None, weight_sum, shift_sum, None


class Weights(NamedTuple):
    """The weights of one linear layer, or of several with the same input.

    low:   (out, in) all weights in the precision of the states
    parts: the weights of each layer in float32
    """

    low: Tensor
    parts: Sequence[Tensor]


def low_precision(groups: Sequence[Sequence[Tensor]], dtype: torch.dtype) -> list[Weights]:
    """Convert groups of weights to a lower precision, all with one kernel."""
    copies, targets = [], []
    for group in groups:
        rows = [len(weight) for weight in group]
        copy = torch.empty(sum(rows), *group[0].shape[1:], dtype=dtype, device=group[0].device)
        copies.append(copy)
        targets += copy.split(rows)
    with torch.no_grad():
        torch._foreach_copy_(targets, [weight.detach() for group in groups for weight in group])
    return [Weights(copy, group) for copy, group in zip(copies, groups, strict=True)]


def _weight_gradients(gradient: Tensor, rows: Tensor, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    """Return the gradients of the weights of linear layers in float32: (R, out), (R, in) -> (out, in)

    sizes: number of outputs of each layer
    """
    return _product_in_float32(gradient.t(), rows).split(list(sizes))


def _product_in_float32(first: Tensor, second: Tensor) -> Tensor:
    if first.is_cuda and hasattr(torch.ops.aten.mm, "dtype"):  # torch 2.8
        return torch.mm(first, second, out_dtype=torch.float32)
    return (first @ second).float()


def linear(rows: Tensor, weights: Weights) -> Tensor:
    """Compute W x of each row: (R, in) -> (R, out)"""
    mapped: Tensor = _Linear.apply(  # type: ignore[no-untyped-call]
        rows, weights.low, *weights.parts
    )
    return mapped


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, low: Tensor, *parts: Tensor) -> Tensor:
        ctx.save_for_backward(rows, low)
        ctx.sizes = [len(part) for part in parts]
        return torch.mm(rows, low.t())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (rows, low), gradient = ctx.saved_tensors, gradients[0].contiguous()
        return gradient @ low, None, *_weight_gradients(gradient, rows, ctx.sizes)


class SharedGradient:
    """The gradient of a tensor whose last dimension is divided into equal parts.

    Each user of a part writes the gradient of this part directly into one tensor.
    """

    def __init__(self) -> None:
        self._whole: Tensor | None = None
        self._written = 0

    def part(self, index: int, count: int, like: Tensor) -> Tensor:
        """Return the gradient (…, D) of a part, in uninitialised memory.

        count: number of parts
        like:  (…, D) the part
        """
        if self._whole is None:
            *shape, width = like.shape
            self._whole = like.new_empty(*shape, count * width)
        self._written += 1
        return self._whole.chunk(count, dim=-1)[index]

    def take(self, count: int) -> Tensor:
        """Return the whole gradient, when all parts are written."""
        assert self._whole is not None
        assert self._written == count
        whole, self._whole, self._written = self._whole, None, 0
        return whole


@dataclass(frozen=True)
class SourcePart:
    """One of several equal parts of a tensor, and where its gradient is written.

    states:   (B, S, 2 D) keys and values of one layer
    gradient: gradient of all parts
    index:    index of this part
    count:    number of parts
    """

    states: Tensor
    gradient: SharedGradient
    index: int
    count: int


def linear_parts(rows: Tensor, weights: Weights, batch: int, count: int) -> list[SourcePart]:
    """Compute W x of each row and divide the result: (B · S, in) -> `count` times (B, S, out / count)

    In backward, one product computes the gradient of x for all parts.
    """
    shared = SharedGradient()
    parts = _LinearParts.apply(  # type: ignore[no-untyped-call]
        rows, weights.low, shared, batch, count, *weights.parts
    )
    return [SourcePart(part, shared, index, count) for index, part in enumerate(parts)]


class _LinearParts(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        low: Tensor,
        shared: SharedGradient,
        batch: int,
        count: int,
        *parts: Tensor,
    ) -> tuple[Tensor, ...]:
        ctx.save_for_backward(rows, low)
        ctx.shared, ctx.count, ctx.sizes = shared, count, [len(part) for part in parts]
        return torch.mm(rows, low.t()).unflatten(0, (batch, -1)).chunk(count, dim=-1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, low = ctx.saved_tensors
        gradient = ctx.shared.take(ctx.count).flatten(0, 1)  # `gradients` are its parts
        none = (None, None, None, None)
        return gradient @ low, *none, *_weight_gradients(gradient, rows, ctx.sizes)


def linear_relu(rows: Tensor, weights: Weights, biases: Weights, rate: float) -> Tensor:
    """Compute dropout(ReLU(W x + b)) of each row: (R, in) -> (R, out)

    rate: rate of dropout
    """
    (weight,), (bias,) = weights.parts, biases.parts
    activated: Tensor = _LinearReLU.apply(  # type: ignore[no-untyped-call]
        rows, weights.low, biases.low, weight, bias, rate
    )
    return activated


class _LinearReLU(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        low: Tensor,
        low_bias: Tensor,
        weight: Tensor,
        bias: Tensor,
        rate: float,
    ) -> Tensor:
        activated = torch._addmm_activation(low_bias, rows, low.t())
        if rate:
            activated = F.dropout(activated, rate)
        ctx.save_for_backward(rows, low, activated)
        ctx.scale = 1 / (1 - rate)
        return activated

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (rows, low, activated), gradient = ctx.saved_tensors, gradients[0].contiguous()
        count, width = gradient.shape
        blocks = _divide_up(width, RELU_COLUMNS)
        programs = min(max(1, SUM_PROGRAMS // 2 // blocks), _divide_up(count, RELU_ROWS))
        sums = _new_float(gradient, programs, width)
        before = torch.empty_like(gradient)
        _kernels().relu_gradient_kernel[(programs, blocks)](
            *(gradient, activated, before, sums, count, width, ctx.scale),
            ROWS=RELU_ROWS,
            BLOCK=RELU_COLUMNS,
            num_warps=4,
        )
        (weight_gradient,) = _weight_gradients(before, rows, [width])
        return before @ low, None, None, weight_gradient, _add_rows(sums), None


class AttentionSettings(NamedTuple):
    """Settings of `attention`.

    heads:     number of heads
    scale:     factor of the dot products
    is_causal: True if a position attends only to itself and earlier positions
    """

    heads: int
    scale: float
    is_causal: bool


def attention(
    queries: Tensor,
    source: SourcePart | None,
    biases: tuple[Tensor, Tensor, Tensor],
    ids: tuple[Tensor, Tensor],
    settings: AttentionSettings,
) -> Tensor:
    """Multi-head attention of projected states, whose biases are not added yet -> (B, T, D)

    queries: (B, T, D) queries or, in self-attention, (B, T, 3 D) queries, keys and values
    source:  keys and values; None in self-attention
    biases:  biases of queries, keys and values, each (D,)
    ids:     ids of the queries (B, T) and of the keys (B, S), from 0. A query attends to the keys with
             its id
    """
    keys_values = None if source is None else source.states
    context: Tensor = _Attention.apply(  # type: ignore[no-untyped-call]
        queries, keys_values, source, *biases, *ids, settings
    )
    return context


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        keys_values: Tensor | None,
        source: SourcePart | None,
        query_bias: Tensor,
        key_bias: Tensor,
        value_bias: Tensor,
        query_ids: Tensor,
        key_ids: Tensor,
        settings: AttentionSettings,
    ) -> Tensor:
        parts = _attention_parts(queries, keys_values)
        query, key = parts[0], parts[1]
        rows, length, width = query.shape
        keys = key.shape[1]
        out = query.new_empty(rows, length, width)
        normalisers = _new_float(query, rows, settings.heads, length)
        query_ids, key_ids = query_ids.contiguous(), key_ids.contiguous()
        strides = (*query.stride()[:2], *key.stride()[:2])
        lengths = (length, keys, settings.scale)
        sizes = {
            "CAUSAL": settings.is_causal,
            "HEADS": settings.heads,
            "WIDTH": width // settings.heads,
            "QUERIES": max(16, _power_of_two(length)),
            "KEYS": max(16, _power_of_two(keys)),
        }
        sizes["num_warps"] = 4
        if query.is_cuda and torch.version.cuda is not None:
            sizes["maxnreg"] = ATTENTION_REGISTERS
        _kernels().attention_kernel[(rows * settings.heads,)](
            *(*parts, query_bias, key_bias, value_bias, query_ids, key_ids, out, normalisers),
            *(*strides, *lengths),
            **sizes,
        )
        ctx.save_for_backward(
            *(queries, keys_values, query_bias, key_bias, value_bias, query_ids, key_ids),
            normalisers,
        )
        ctx.arguments = strides, lengths, sizes
        if source is not None:
            ctx.part = source.gradient, source.index, source.count
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys_values, *others, normalisers = ctx.saved_tensors  # biases and ids
        strides, lengths, sizes = ctx.arguments
        parts = _attention_parts(queries, keys_values)
        rows, _, width = parts[0].shape
        query_gradient = torch.empty_like(queries)
        source_gradient = None
        if keys_values is not None:
            shared, index, count = ctx.part
            source_gradient = shared.part(index, count, keys_values)
        part_gradients = _attention_parts(query_gradient, source_gradient)
        sums = _new_float(queries, rows, 3, width)
        _kernels().attention_gradient_kernel[(rows * sizes["HEADS"],)](
            *(*parts, *others, normalisers, gradients[0].contiguous()),
            *(*part_gradients, sums, *strides, *lengths),
            **sizes,
        )
        return query_gradient, source_gradient, None, *_add_rows(sums), None, None, None


def _attention_parts(queries: Tensor, keys_values: Tensor | None) -> tuple[Tensor, ...]:
    """Return queries (B, T, D), keys and values (B, S, D) as views of projected states."""
    if keys_values is None:
        return queries.chunk(3, dim=-1)
    return queries, *keys_values.chunk(2, dim=-1)


def linear_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    smoothing: float,
    padding: int,
    excluded: int,
) -> Tensor:
    """Return the cross-entropy of the logits W x + b, summed over the targets -> ()

    features:  (N, D)
    targets:   (N,). Targets that are `padding` have no loss
    smoothing: ε of label smoothing
    excluded:  number of tokens with probability 0. Their ids are 0 to excluded - 1
    """
    loss: Tensor = _FusedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        features, weight, bias, targets, smoothing, padding, excluded
    )
    return loss


class _FusedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        smoothing: float,
        padding: int,
        excluded: int,
    ) -> Tensor:
        low = weight.to(features.dtype)
        logits = torch.addmm(bias.to(features.dtype), features, low.t())  # (N, V)
        losses = _new_float(logits, len(logits))
        _kernels().cross_entropy_kernel[(len(logits),)](
            *(logits, targets.contiguous(), losses, logits.shape[1]),
            *(excluded, padding, smoothing),
            BLOCK=min(TOKENS_AT_ONCE, _power_of_two(logits.shape[1])),
            num_warps=4,
        )
        ctx.save_for_backward(features, weight, logits)
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (features, weight, logit_gradient), (scale,) = ctx.saved_tensors, gradients
        feature_gradient = logit_gradient @ (weight * scale).to(features.dtype)
        # The bias is the weight of a feature that is always 1. Ones are appended to the features, so
        # that one product computes both gradients. There are ALIGNMENT columns of ones, because
        # products are slow if the width is not a multiple of ALIGNMENT.
        width = features.shape[1]
        with_ones = F.pad(features, (0, ALIGNMENT), value=1.0)
        product = _product_in_float32(logit_gradient.t(), with_ones).mul_(scale)
        weight_gradient, bias_gradient = product[:, :width], product[:, width]
        return feature_gradient, weight_gradient, bias_gradient, None, None, None, None


def r_drop(
    first: Tensor, second: Tensor, targets: Tensor, smoothing: float, weight: float, padding: int
) -> Tensor:
    """Return the R-Drop loss of two forward passes -> ()

    The formula is in `tasks.losses.r_drop_loss`.

    first, second: (B, T, V) logits of the two passes. The logit of an impossible token is -inf in both
    targets:       (B, T). Targets that are `padding` have no loss
    smoothing:     ε of label smoothing
    """
    loss: Tensor = _FusedRDrop.apply(  # type: ignore[no-untyped-call]
        first.contiguous(), second.contiguous(), targets.contiguous(), smoothing, weight, padding
    )
    return loss


class _FusedRDrop(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor,
        targets: Tensor,
        smoothing: float,
        weight: float,
        padding: int,
    ) -> Tensor:
        vocabulary = first.shape[-1]
        losses = _new_float(first, targets.numel())
        statistics = _new_float(first, targets.numel(), 5)
        numbers = (vocabulary, padding, smoothing, weight)
        sizes = {"BLOCK": min(TOKENS_AT_ONCE, _power_of_two(vocabulary)), "num_warps": 4}
        _kernels().r_drop_kernel[(targets.numel(),)](
            first, second, targets, losses, statistics, *numbers, **sizes
        )
        ctx.save_for_backward(first, second, targets, statistics)
        ctx.arguments = numbers, sizes
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved = first, second, targets, _ = ctx.saved_tensors
        numbers, sizes = ctx.arguments
        results = torch.empty_like(first), torch.empty_like(second)
        _kernels().r_drop_gradient_kernel[(targets.numel(),)](
            *saved, gradients[0], *results, *numbers, **sizes
        )
        return *results, None, None, None, None

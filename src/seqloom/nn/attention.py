"""Attention, one idea at a time: compare a query with keys, weigh, read values.

    e_ts = score(q_t, k_s)              how well query t and key s match: `Score`
    α_t  = softmax(e_t)                 or all weight on the best match: `weigh`
    a_t  = Σ_s α_ts v_s                 the context vector, what was read: `weights @ values`

Here are the first two; `MultiHeadAttention` puts them together. Every score works for many heads at
once: queries are (B, H, T, Dq), keys (B, H, S, Dk), and each head has parameters of its own.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn

Selection = Literal["softmax", "argmax"]


class Score(nn.Module):
    """How well queries and keys match. Work that needs only the keys is done once, in `prepare`."""

    is_product = False
    """Is it the product of queries and prepared keys over `divisor`, as fused kernels compute it?"""
    divisor = 1.0

    def prepare(self, keys: Tensor) -> Tensor:
        """(B, H, S, Dk) -> whatever `compare` wants to meet, with S in the same place."""
        return keys

    def compare(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """(B, H, T, Dq), (B, H, S, ·) -> (B, H, T, S)"""
        raise NotImplementedError

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """(B, H, T, Dq), (B, H, S, Dk) -> (B, H, T, S)"""
        return self.compare(queries, self.prepare(keys))


class DotScore(Score):
    """score(q, k) = q · k / divisor, the divisor being 1, √d or d.

    The product of two random vectors with unit-variance entries has standard deviation √d, so 1
    saturates the softmax as d grows; dividing by d caps the score, so that no key can ever win all
    the weight; √d keeps it soft and free at the same time.
    """

    is_product = True

    def __init__(self, scale: Literal["one", "sqrt", "width"], width: int) -> None:
        super().__init__()
        self.divisor = {"one": 1.0, "sqrt": math.sqrt(width), "width": float(width)}[scale]

    def compare(self, queries: Tensor, prepared: Tensor) -> Tensor:
        return queries @ prepared.transpose(-2, -1) / self.divisor


class BilinearScore(Score):
    """score(q, k) = q^T W k: linear keys and queries, their two matrices merged into one.

    (Wq q) · (Wk k) = q^T (Wq^T Wk) k. Queries and keys may have different widths.
    """

    is_product = True

    def __init__(self, heads: int, query_width: int, key_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, query_width, key_width))
        for head in self.weight:
            # As small as the scaled dot product at first, or the softmax would begin saturated.
            nn.init.xavier_uniform_(head, gain=1 / math.sqrt(query_width))

    def prepare(self, keys: Tensor) -> Tensor:
        return map_heads(keys, self.weight.transpose(-2, -1))  # W k: (B, H, S, Dq)

    def compare(self, queries: Tensor, prepared: Tensor) -> Tensor:
        return queries @ prepared.transpose(-2, -1)


class AdditiveScore(Score):
    """score(q, k) = v · tanh(Wq q + Wk k + b)    (Bahdanau et al. 2015, appendix A.1.2)

    A network with one hidden layer. Queries and keys may have different widths.
    """

    def __init__(self, heads: int, query_width: int, key_width: int, width: int) -> None:
        super().__init__()
        self.project_query = nn.Parameter(torch.empty(heads, query_width, width))
        self.project_key = nn.Parameter(torch.empty(heads, key_width, width))
        self.bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.to_score = nn.Parameter(torch.empty(heads, width, 1))
        for head in (*self.project_query, *self.project_key, *self.to_score):
            nn.init.xavier_uniform_(head)

    def prepare(self, keys: Tensor) -> Tensor:
        return map_heads(keys, self.project_key) + self.bias  # (B, H, S, width)

    def compare(self, queries: Tensor, prepared: Tensor) -> Tensor:
        q = map_heads(queries, self.project_query).unsqueeze(3)  # (B, H, T, 1, width)
        k = prepared.unsqueeze(2)  # (B, H, 1, S, width)
        hidden = torch.tanh(q + k)  # (B, H, T, S, width)
        return (hidden @ self.to_score.unsqueeze(1)).squeeze(-1)


class RbfScore(Score):
    """score(q, k) = -γ‖q - k‖², the logarithm of the radial basis function exp(-γ‖q - k‖²).

    The softmax of the logarithm is the function itself, normalised over the keys.
    """

    def __init__(self, gamma: float) -> None:
        super().__init__()
        self.gamma = gamma

    def compare(self, queries: Tensor, prepared: Tensor) -> Tensor:
        # ‖q - k‖² = q·q + k·k - 2 q·k: no (T, S, D) tensor of differences is ever built. The terms
        # nearly cancel, and the eight bits of bf16 would leave nothing of what remains.
        with torch.autocast(queries.device.type, enabled=False):
            q, k = (x.float() if x.dtype == torch.bfloat16 else x for x in (queries, prepared))
            squares = q.square().sum(-1, keepdim=True) + k.square().sum(-1).unsqueeze(-2)
            return -self.gamma * (squares - 2 * q @ k.transpose(-2, -1))


def map_heads(states: Tensor, weights: Tensor) -> Tensor:
    """Each head by a matrix of its own: (B, H, S, D), (H, D, E) -> (B, H, S, E)

    One product a head over all rows. Spread over the rows by `@`, the matrices would get a
    gradient of their size from every row, many times the work of adding them up in the product.
    """
    return torch.einsum("bhsd,hde->bhse", states, weights)


def weigh(scores: Tensor, mask: Tensor, selection: Selection) -> Tensor:
    """Turn scores into weights that sum to one over the source and are zero under the padding.

    scores (B, H, T, S), mask broadcast to it and True where a key may be seen -> (B, H, T, S)
    """
    visible = scores.masked_fill(~mask, float("-inf"))
    if selection == "softmax":
        # torch sums in float32 even where the scores are bf16, whose eight bits could not tell
        # apart the weights of a sentence of a few hundred words. Autocast widens the result too.
        return visible.softmax(dim=-1).to(scores.dtype)
    # All weight on the best key. The choice does not change when query or key move a little, so
    # no gradient reaches them; the value that was chosen still gets one.
    best = visible.argmax(dim=-1, keepdim=True)
    return torch.zeros_like(scores).scatter_(-1, best, 1.0)

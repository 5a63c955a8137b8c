"""Attention scores, and the function that converts scores to attention weights.

    e_ts = score(q_t, k_s)        similarity of query t and key s: `AttentionScore`
    α_t  = softmax(e_t)           or all weight on one key: `attention_weights`
    a_t  = Σ_s α_ts v_s           the context vector: `weights @ values`

`MultiHeadAttention` combines the three. Scores accept queries (B, T, Dq) and keys (B, S, Dk), or
several heads at once: (B, H, T, Dq) and (B, H, S, Dk). The parameters of a score, if it has any,
are separate for each head.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.nn.formulas import origin_note
from seqloom.nn.positions import PositionIds, expand_position_ids

Selection = Literal["softmax", "argmax", "exact"]


class AttentionScore(nn.Module):
    """Base class: the similarity of every query to every key.

    A score is computed in two parts. `prepare` does the work that depends only on the keys, and
    `compare` does the rest. Decoding calls `prepare` once per source and `compare` once per step.
    Subclasses implement `compare`, and `prepare` if they need it. They must not override `forward`.

    Explanations of decoder steps show `formula`, `note` and the formulas of the gradients. A
    subclass can define each as a class attribute, for example `formula = "q · k"`. In formulas, q is
    the query, k a key, e the score and L the loss.
    """

    heads: int | None = None
    """Number of heads, each with its own parameters. None: the score has no parameters and accepts
    any number of heads."""
    is_product = False
    """True if the score is the dot product of the query and the prepared key, divided by `divisor`.
    Fused kernels can compute such a score."""
    divisor = 1.0
    """Divisor of the dot product, if `is_product`."""
    compares_directly = False
    """True if the score applies no learned matrix to queries and keys, so that both must have the
    same width."""
    is_positional = False
    """True if the score depends only on positions (`PositionalScore`)."""
    best_key = "best score"
    """Name of the key with the highest score, in the formula of attention that selects this key."""
    gradient_note = ""
    """Definition of the symbols that occur only in the formulas of the gradients."""

    def __init__(self) -> None:
        # This constructor has no parameters, unlike that of nn.Module, which has *args. The
        # parameters of a score's constructor are its settings in a recipe.
        super().__init__()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "forward" in vars(cls):
            raise TypeError(
                f"{cls.__name__}: override compare, not forward; decoding does not call forward"
            )
        # A subclass of a product score that overrides `compare` computes something else. Fused
        # kernels would ignore it.
        if "compare" in vars(cls) and "is_product" not in vars(cls):
            cls.is_product = False
        # Its formulas differ, too. Without its own, it has those of this base class.
        if {"compare", "prepare"} & vars(cls).keys():
            for name in ("formula", "note", "query_gradient", "key_gradient", "gradient_note"):
                if name not in vars(cls):
                    setattr(cls, name, vars(AttentionScore)[name])

    @property
    def formula(self) -> str:
        """Formula of the score, with the options of this score. Default: the name of the class."""
        return f"{type(self).__name__}(q, k)"

    @property
    def note(self) -> str:
        """Remark on the formula. Default: where the class is defined, and its settings."""
        return origin_note(self)

    @property
    def query_gradient(self) -> str:
        """Formula of the gradient of the loss with respect to the query: a sum over the keys."""
        return "Σ ∂L/∂e · ∂e/∂q"

    @property
    def key_gradient(self) -> str:
        """Formula of the gradient of the loss with respect to a key."""
        return "∂L/∂e · ∂e/∂k"

    @property
    def divisor_formula(self) -> str:
        """Formula of `divisor`, for example √64."""
        return f"{self.divisor:g}"

    @property
    def source_limits(self) -> dict[str, int]:
        """The settings that limit the number of keys, such as {"max_length": 100}.

        Empty if the number of keys is unlimited.
        """
        return {}

    @property
    def target_limits(self) -> dict[str, int]:
        """The settings that limit the number of queries, such as {"max_target_length": 100}.

        Empty if the number of queries is unlimited.
        """
        return {}

    def unsupported_by_ctranslate2(self, name: str) -> list[str]:
        """List the reasons why CTranslate2 cannot compute this score. The list is empty if it can.

        It computes dot products of queries and keys, and can divide them by any `divisor`.

        name: the recipe section of the attention, such as "model.encoder.attention"
        """
        if self.is_product and type(self).prepare is AttentionScore.prepare:
            return []
        kind = type(self).__name__.removesuffix("Score").lower()
        return [f"{name}.score: only dot products are supported, not '{kind}'"]

    def prepare(self, keys: Tensor) -> Tensor:
        """Do the work that depends only on the keys: (B, H, S, Dk) -> (B, H, S, ·)

        The score determines the width of the result, "·". This base class returns the keys.
        """
        return keys

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: PositionIds = 0) -> Tensor:
        """Compute the scores. `prepared` is the result of `prepare`.

        (B, H, T, Dq), (B, H, S, ·) -> (B, H, T, S)

        position_ids: positions of the queries in their sequence. Only scores that depend on
                      positions need them. `expand_position_ids` converts them to a tensor. Default:
                      0, which means that the queries are at the positions 0, 1, 2, …
        """
        raise NotImplementedError

    def forward(self, queries: Tensor, keys: Tensor, position_ids: PositionIds = 0) -> Tensor:
        """Compute the score of every query and key.

        With one head:  (B, T, Dq), (B, S, Dk) -> (B, T, S)
        With H heads:   (B, H, T, Dq), (B, H, S, Dk) -> (B, H, T, S)
        """
        if queries.dim() == 4:
            return self.compare(queries, self.prepare(keys), position_ids)
        if self.heads not in (None, 1):
            raise ValueError(
                f"this score has {self.heads} heads and needs queries (B, H, T, D) and keys "
                f"(B, H, S, D), but the queries have the shape {tuple(queries.shape)}"
            )
        prepared = self.prepare(keys.unsqueeze(1))
        return self.compare(queries.unsqueeze(1), prepared, position_ids).squeeze(1)


class DotScore(AttentionScore):
    """score(q, k) = q · k / divisor

    scale:       "one" (divisor 1), "sqrt" (√d) or "width" (d)
    query_width: d, the width of queries and keys

    The dot product of two random vectors with unit-variance entries has standard deviation √d. With
    divisor 1, scores therefore saturate the softmax if d is large. With divisor d, scores are so
    small that no key can get all the weight. Divisor √d avoids both problems (Vaswani et al. 2017,
    section 3.2.1).
    """

    is_product = True
    compares_directly = True
    note = ""

    def __init__(self, scale: Literal["one", "sqrt", "width"], query_width: int) -> None:
        super().__init__()
        self.width = query_width
        divisors = {"one": 1.0, "sqrt": math.sqrt(query_width), "width": float(query_width)}
        self.divisor = divisors[scale]

    @property
    def formula(self) -> str:
        return f"q · k{self._division}"

    @property
    def query_gradient(self) -> str:
        return f"Σ ∂L/∂e · k{self._division}"

    @property
    def key_gradient(self) -> str:
        return f"∂L/∂e · q{self._division}"

    @property
    def divisor_formula(self) -> str:
        return str(self.width) if self.divisor == self.width else f"√{self.width}"

    @property
    def _division(self) -> str:
        return "" if self.divisor == 1 else f" / {self.divisor_formula}"

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: PositionIds = 0) -> Tensor:
        return queries @ prepared.transpose(-2, -1) / self.divisor


class BilinearScore(AttentionScore):
    """score(q, k) = q^T W k    (Luong et al. 2015, "general")

    This equals the dot product of a projected query and a projected key, with W = Wq^T Wk:
    (Wq q) · (Wk k) = q^T (Wq^T Wk) k. Queries and keys may have different widths.
    """

    is_product = True
    formula = "qᵀ W k"
    query_gradient = "Σ ∂L/∂e · W k"
    key_gradient = "∂L/∂e · Wᵀ q"

    def __init__(self, query_width: int, key_width: int, heads: int = 1) -> None:
        super().__init__()
        self.heads = heads
        self.weight = nn.Parameter(torch.empty(heads, query_width, key_width))
        for head in self.weight:
            # This gain makes the initial scores as small as those of the scaled dot product. Larger
            # scores would saturate the softmax at the start of training.
            nn.init.xavier_uniform_(head, gain=1 / math.sqrt(query_width))

    @property
    def note(self) -> str:
        _, rows, columns = self.weight.shape
        return f"W is {rows} × {columns}"

    def prepare(self, keys: Tensor) -> Tensor:
        return map_heads(keys, self.weight.transpose(-2, -1))  # W k: (B, H, S, Dq)

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: PositionIds = 0) -> Tensor:
        return queries @ prepared.transpose(-2, -1)


class AdditiveScore(AttentionScore):
    """score(q, k) = v · tanh(Wq q + Wk k + b)    (Bahdanau et al. 2015, appendix A.1.2)

    A network with one hidden layer of size `width`. Queries and keys may have different widths.
    """

    formula = "v · tanh(Wq q + Wk k + b)"
    query_gradient = "Σ ∂L/∂e · Wqᵀ (v ∘ (1 - u²))"
    key_gradient = "∂L/∂e · Wkᵀ (v ∘ (1 - u²))"
    gradient_note = "u = tanh(Wq q + Wk k + b)"

    def __init__(self, query_width: int, key_width: int, width: int, heads: int = 1) -> None:
        super().__init__()
        self.heads = heads
        self.project_query = nn.Parameter(torch.empty(heads, query_width, width))
        self.project_key = nn.Parameter(torch.empty(heads, key_width, width))
        self.bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.to_score = nn.Parameter(torch.empty(heads, width, 1))
        for head in (*self.project_query, *self.project_key, *self.to_score):
            nn.init.xavier_uniform_(head)

    @property
    def note(self) -> str:
        return f"the hidden layer has width {self.to_score.shape[1]}"

    def prepare(self, keys: Tensor) -> Tensor:
        return map_heads(keys, self.project_key) + self.bias  # (B, H, S, width)

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: PositionIds = 0) -> Tensor:
        q = map_heads(queries, self.project_query).unsqueeze(3)  # (B, H, T, 1, width)
        k = prepared.unsqueeze(2)  # (B, H, 1, S, width)
        hidden = torch.tanh(q + k)  # (B, H, T, S, width)
        return (hidden @ self.to_score.unsqueeze(1)).squeeze(-1)


class RbfScore(AttentionScore):
    """score(q, k) = -γ‖q - k‖², the logarithm of the radial basis function exp(-γ‖q - k‖²).

    The softmax over these scores is therefore exp(-γ‖q - k‖²), normalised over the keys.
    """

    compares_directly = True
    note = "the logarithm of a radial basis function"
    best_key = "nearest key"

    def __init__(self, gamma: float) -> None:
        super().__init__()
        self.gamma = gamma

    @property
    def formula(self) -> str:
        return "-‖q - k‖²" if self.gamma == 1 else f"-{self.gamma:g} ‖q - k‖²"

    @property
    def query_gradient(self) -> str:
        return f"Σ ∂L/∂e · {2 * self.gamma:g} (k - q)"

    @property
    def key_gradient(self) -> str:
        return f"∂L/∂e · {2 * self.gamma:g} (q - k)"

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: PositionIds = 0) -> Tensor:
        # ‖q - k‖² = q·q + k·k - 2 q·k needs no (T, S, D) tensor of differences. The terms nearly
        # cancel, so they need float32: the eight significant bits of bf16 would all be lost.
        with torch.autocast(queries.device.type, enabled=False):
            q, k = (x.float() if x.dtype == torch.bfloat16 else x for x in (queries, prepared))
            squares = q.square().sum(-1, keepdim=True) + k.square().sum(-1).unsqueeze(-2)
            return -self.gamma * (squares - 2 * q @ k.transpose(-2, -1))


class ExactScore(AttentionScore):
    """score(q, k) = 1 if |q_i - k_i| ≤ tolerance for every entry i, else 0

    If attention selects keys with `selection="exact"`, it works like a hash table: it returns the
    value whose key equals the query. Queries and keys get no gradient.

    tolerance: largest difference at which two entries count as equal. Default: 0, which means that
               the entries must be the same number
    """

    note = ""
    query_gradient = key_gradient = "0, because e is piecewise constant"

    def __init__(self, tolerance: float = 0.0) -> None:
        super().__init__()
        self.tolerance = tolerance

    @property
    def formula(self) -> str:
        match = "q = k" if self.tolerance == 0 else f"max |q - k| ≤ {self.tolerance:g}"
        return f"1 if {match}, else 0"

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: PositionIds = 0) -> Tensor:
        differences = queries.unsqueeze(3) - prepared.unsqueeze(2)  # (B, H, T, S, D)
        return (differences.abs() <= self.tolerance).all(-1).to(queries.dtype)


class PositionalScore(AttentionScore):
    """Base class of scores that depend only on positions: score(q_t, k_s) = w[t, s]

    The scores are a learned table. They start at zero, so that the softmax gives every visible
    position the same weight. The contents of queries and keys are ignored.

    table: (H, T, S) scores of each head; (H, 1, S) if the scores are the same for all queries. Only
           padding can lie beyond the table, because `Model.max_source_length` and
           `Model.max_target_length` limit the real positions. Padding uses the last entry
    """

    is_positional = True
    query_gradient = "0, because e does not depend on q"
    key_gradient = "0, because e does not depend on k"

    def __init__(self, heads: int, queries: int, keys: int) -> None:
        super().__init__()
        self.heads = heads
        self.table = nn.Parameter(torch.zeros(heads, queries, keys))

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: PositionIds = 0) -> Tensor:
        (_, rows, columns), device = self.table.shape, self.table.device
        key_ids = torch.arange(prepared.shape[-2], device=device).clamp(max=columns - 1)  # (S,)
        query_ids = expand_position_ids(position_ids, queries.shape[-2], device)
        scores = self.table.index_select(2, key_ids)[:, query_ids.clamp(max=rows - 1)]
        if scores.dim() == 4:  # each row of the batch has its own positions: (H, B, T, S)
            scores = scores.transpose(0, 1)
        return scores.expand(len(queries), -1, -1, -1)  # (B, H, T, S)


class FixedScore(PositionalScore):
    """score(q_t, k_s) = w[s]: one learned score for each source position s, the same at every step.

    The context is c = Σ_s a_s h_s, where a_s is the weight and h_s the value of source position s.
    The context is the same at every step, because the decoder cannot choose where to attend.

    max_length: maximum number of source positions
    """

    formula = "w[s]"
    note = "a learned number for each source position s, the same at every step"

    def __init__(self, max_length: int, heads: int = 1) -> None:
        super().__init__(heads, 1, max_length)

    @property
    def source_limits(self) -> dict[str, int]:
        return {"max_length": self.table.shape[2]}


class PositionScore(PositionalScore):
    """score(q_t, k_s) = w[t, s]: a learned score for each decoder step t and source position s.

    The context is c_t = Σ_s a_ts h_s, where a_ts is the weight and h_s the value of source position
    s. The weights change from step to step, but they are the same for all sources.
    """

    formula = "w[t, s]"
    note = "a learned number for each step t and source position s"

    def __init__(self, max_source_length: int, max_target_length: int, heads: int = 1) -> None:
        super().__init__(heads, max_target_length, max_source_length)

    @property
    def source_limits(self) -> dict[str, int]:
        return {"max_source_length": self.table.shape[2]}

    @property
    def target_limits(self) -> dict[str, int]:
        return {"max_target_length": self.table.shape[1]}


def map_heads(states: Tensor, weights: Tensor) -> Tensor:
    """Multiply the vectors of each head by a matrix: (B, H, S, D), (H, D, E) -> (B, H, S, E)

    E is the output width. einsum computes one product per head for the whole batch. `@` would
    broadcast the matrices over the batch, and the backward pass would then compute their gradients
    separately for each element of the batch.
    """
    return torch.einsum("bhsd,hde->bhse", states, weights)


def attention_weights(
    scores: Tensor, mask: Tensor | None = None, selection: Selection = "softmax"
) -> Tensor:
    """Turn scores into attention weights. Hidden keys get a weight of zero.

    The weights of a query sum to one, except if "exact" finds no key.

    scores:    (…, T, S)
    mask:      broadcastable to the scores, True where a key is visible; None: all keys are visible
    selection: "softmax": the softmax of the scores over the visible keys
               "argmax": the key with the highest score gets all weight
               "exact": as "argmax" if the highest score is positive. Otherwise no key matches the
               query, and all weights are zero (see `ExactScore`)
    """
    visible = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
    if selection == "softmax":
        # torch computes this softmax in float32 even if the scores are bf16. (The eight significant
        # bits of bf16 cannot distinguish the weights of a few hundred keys.) Under autocast the
        # result is float32 as well, so it is converted to the dtype of the scores.
        return visible.softmax(dim=-1).to(scores.dtype)
    # argmax is piecewise constant, so queries and keys get no gradient. The value of the chosen key
    # still gets a gradient, through the product of weights and values.
    best = visible.argmax(dim=-1, keepdim=True)
    if selection == "argmax":
        return torch.zeros_like(scores).scatter_(-1, best, 1.0)
    is_match = (visible.gather(-1, best) > 0).to(scores.dtype)
    return torch.zeros_like(scores).scatter_(-1, best, is_match)

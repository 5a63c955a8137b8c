"""Looks up a query in a table of keys and values, with three methods.

The first method works like a hash table. The last one is attention:

    exact      the value whose key equals the query; zero if there is no such key
    nearest    the value whose key is nearest to the query
    soft       Σ α_i v_i, the mean of all values v_i with the weights α = softmax(e / T)

The score e_i of the query q and the key k_i is q · k_i, or -γ‖q - k_i‖² (the logarithm of a radial
basis function). T is the temperature.

With "exact" and "nearest", a small change of the query or of a key does not change the result.
Therefore the gradients at query and keys are zero, and training cannot improve them. With "soft"
these gradients are not zero.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, assert_never, get_args

import torch
from torch import Tensor

from seqloom.analysis.matrices import Rows, matrix_problems, to_tensor
from seqloom.core.errors import ConfigError
from seqloom.nn.attention import (
    AttentionScore,
    DotScore,
    ExactScore,
    RbfScore,
    Selection,
    attention_weights,
)

KEYS = ((1.0, 1.0), (3.0, 2.0), (2.0, 4.0), (4.0, 4.0))
VALUES = ((10.0,), (20.0,), (30.0,), (40.0,))
QUERY = (2.0, 2.5)
LookupMethod = Literal["exact", "nearest", "soft"]
LookupScore = Literal["dot", "rbf"]
METHODS: tuple[LookupMethod, ...] = get_args(LookupMethod)


@dataclass(frozen=True)
class LookupTable:
    """Keys with their values, a query, and how the query is compared with the keys.

    keys:        (S, D) one row per key. Default: four points in the plane
    values:      (S, V) the value of each key, a vector of width V. Default: 10, 20, 30, 40
    query:       (D,). Default: (2, 2.5)
    score:       score of the soft lookup: "dot" (q · k) or "rbf" (-γ‖q - k‖²). Default: "rbf"
    gamma:       γ of the score "rbf". Larger values favour the nearest keys. Default: 1
    temperature: divisor of the scores in the softmax of the soft lookup. Smaller values favour the
                 key with the highest score. Default: 1
    """

    keys: Rows = KEYS
    values: Rows = VALUES
    query: Sequence[float] = QUERY
    score: LookupScore = "rbf"
    gamma: float = 1.0
    temperature: float = 1.0

    def problems(self) -> list[str]:
        """Return one message for each problem. The list is empty if the table is valid."""
        matrices = {"keys": self.keys, "values": self.values, "query": [self.query]}
        problems = [text for name, rows in matrices.items() for text in matrix_problems(name, rows)]
        if not problems and len(self.query) != len(self.keys[0]):
            problems.append(
                f"the query has {len(self.query)} numbers and a key has {len(self.keys[0])}; give "
                "both the same width"
            )
        if len(self.values) != len(self.keys):
            problems.append(
                f"there are {len(self.keys)} keys and {len(self.values)} values; give one value "
                "per key"
            )
        for name, number in (("γ", self.gamma), ("the temperature", self.temperature)):
            if not 0 < number < math.inf:
                problems.append(f"{name} is {number:g}, but must be a finite number larger than 0")
        return problems


@dataclass(frozen=True)
class LookupResult:
    """The result of one lookup method.

    formula:         how the weights are computed from the query and the keys
    scores:          (S,) score of each key
    weights:         (S,) weight α_i of each key. It is also the derivative of the result with
                     respect to the value of this key
    result:          (V,) Σ α_i v_i, the weighted sum of the values v_i
    query_gradient:  (V, D) gradient of each number of the result with respect to the query
    key_gradients:   (V, S, D) gradient of each number of the result with respect to each key
    """

    method: LookupMethod
    formula: str
    scores: list[float]
    weights: list[float]
    result: list[float]
    query_gradient: list[list[float]]
    key_gradients: list[list[list[float]]]

    def to_json(self) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON."""
        return asdict(self)


def look_up(table: LookupTable, method: LookupMethod) -> LookupResult:
    """Look up the query in the table.

    Raises ConfigError if the table is not valid. The message lists all problems.
    """
    if problems := table.problems():
        raise ConfigError("\n".join(["the lookup cannot be computed:", *problems]))
    score, selection, formula = _method(table, method)
    temperature = table.temperature if method == "soft" else 1.0
    query, keys, values = (to_tensor(rows) for rows in ([table.query], table.keys, table.values))

    def weights_of(query: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Return the score (S,) and the weight (S,) of each key. query: (1, D), keys: (S, D)"""
        scores = score(query.unsqueeze(0), keys.unsqueeze(0))[0]  # (1, S)
        return scores[0], attention_weights(scores / temperature, None, selection)[0]

    def result_of(query: Tensor, keys: Tensor) -> Tensor:
        """Return the result of the lookup: (V,). query: (1, D), keys: (S, D)"""
        return weights_of(query, keys)[1] @ values

    # For hard selections the result does not depend on the inputs, and `jacobian` returns zeros.
    query_gradient, key_gradients = torch.autograd.functional.jacobian(result_of, (query, keys))
    scores, weights = weights_of(query, keys)
    return LookupResult(
        method=method,
        formula=formula,
        scores=scores.tolist(),
        weights=weights.tolist(),
        result=(weights @ values).tolist(),
        query_gradient=query_gradient[:, 0].tolist(),
        key_gradients=key_gradients.tolist(),
    )


def _method(table: LookupTable, method: LookupMethod) -> tuple[AttentionScore, Selection, str]:
    """Return how a lookup method weights the keys.

    Returns the score function, the selection ("exact", "argmax" or "softmax"), and the formula of
    the weights as text.
    """
    match method:
        case "exact":
            return ExactScore(), "exact", "1 for the key that equals q, else 0"
        case "nearest":
            # The score is minus the squared distance, so the nearest key has the highest score.
            return RbfScore(1.0), "argmax", "1 for the key nearest to q, else 0"
        case "soft":
            temperature = "" if table.temperature == 1 else f" / {table.temperature:g}"
            score = soft_score(table)
            return score, "softmax", f"softmax({score.formula}{temperature})"
        case _:
            assert_never(method)


def soft_score(table: LookupTable) -> AttentionScore:
    """Return the score of the soft lookup."""
    return DotScore("one", 1) if table.score == "dot" else RbfScore(table.gamma)

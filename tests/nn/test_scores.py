"""Every score against its formula, and what is made of scores."""

import math
from collections.abc import Callable
from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqloom.nn.attention import (
    AdditiveScore,
    BilinearScore,
    DotScore,
    RbfScore,
    Score,
    Selection,
    weigh,
)

B, H, T, S, D = 2, 3, 4, 5, 6
Formula = Callable[[Tensor, Tensor, int], Tensor]
"""(D,) query, (D,) key, head -> () score"""


def dot(scale: Literal["one", "sqrt", "width"], divisor: float) -> tuple[Score, Formula]:
    return DotScore(scale, D), lambda q, k, head: q.dot(k) / divisor


def bilinear() -> tuple[Score, Formula]:
    score = BilinearScore(H, D, D - 1)
    return score, lambda q, k, head: q @ score.weight[head] @ k


def additive() -> tuple[Score, Formula]:
    score = AdditiveScore(H, D, D - 1, width=7)
    torch.nn.init.normal_(score.bias)

    def formula(q: Tensor, k: Tensor, head: int) -> Tensor:
        hidden = q @ score.project_query[head] + k @ score.project_key[head] + score.bias[head, 0]
        return torch.tanh(hidden) @ score.to_score[head, :, 0]

    return score, formula


def rbf() -> tuple[Score, Formula]:
    return RbfScore(0.3), lambda q, k, head: (-0.3 * (q - k).norm() ** 2).exp().log()


EVERY_SCORE: dict[str, Callable[[], tuple[Score, Formula]]] = {
    "dot": lambda: dot("one", 1),
    "dot / √d": lambda: dot("sqrt", math.sqrt(D)),
    "dot / d": lambda: dot("width", D),
    "bilinear": bilinear,
    "additive": additive,
    "rbf": rbf,
}


@pytest.mark.parametrize("make", EVERY_SCORE.values(), ids=EVERY_SCORE)
def test_a_score_is_its_formula_for_every_pair_of_query_and_key(
    make: Callable[[], tuple[Score, Formula]],
) -> None:
    torch.manual_seed(0)
    score, formula = make()
    key_width = D - 1 if isinstance(score, BilinearScore | AdditiveScore) else D
    queries, keys = torch.randn(B, H, T, D), torch.randn(B, H, S, key_width)
    found = score.compare(queries, score.prepare(keys))
    assert found.shape == (B, H, T, S)
    assert torch.equal(found, score(queries, keys))
    for b, head, t, s in torch.cartesian_prod(*(torch.arange(n) for n in found.shape)).tolist():
        expected = formula(queries[b, head, t], keys[b, head, s], head)
        torch.testing.assert_close(found[b, head, t, s], expected, atol=1e-5, rtol=1e-5)


@settings(deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, S), min_size=1, max_size=4),
    st.sampled_from(["softmax", "argmax"]),
)
def test_weights_sum_to_one_and_are_zero_where_nothing_may_be_seen(
    seed: int, lengths: list[int], selection: Selection
) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = 9 * torch.randn(len(lengths), H, T, S, generator=generator)
    mask = (torch.arange(S) < torch.tensor(lengths)[:, None])[:, None, None]
    weights = weigh(scores, mask, selection)
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(lengths), H, T))
    assert float(weights.masked_fill(mask, 0).abs().max()) == 0
    assert bool((weights >= 0).all())


def test_softmax_is_the_exponential_of_the_score_normalised() -> None:
    scores = torch.tensor([[[[1.0, 3.0, 0.0, 8.0]]]])
    mask = torch.tensor([True, True, True, False])
    total = math.e + math.e**3 + 1
    expected = [math.e / total, math.e**3 / total, 1 / total, 0]
    assert weigh(scores, mask, "softmax").flatten().tolist() == pytest.approx(expected)


def test_argmax_puts_all_weight_on_the_best_key_that_may_be_seen() -> None:
    scores = torch.tensor([[[[1.0, 3.0, 0.0, 8.0]]]])
    mask = torch.tensor([True, True, True, False])
    assert weigh(scores, mask, "argmax").flatten().tolist() == [0, 1, 0, 0]


def test_half_precision_scores_are_weighed_in_single_precision() -> None:
    scores = 5 * torch.randn(1, 1, 8, 300, generator=torch.Generator().manual_seed(0)).bfloat16()
    everything = torch.ones(300, dtype=torch.bool)
    weights = weigh(scores, everything, "softmax")
    assert weights.dtype == torch.bfloat16
    assert torch.equal(weights, scores.float().softmax(-1).bfloat16())


def gradients(selection: Selection) -> list[Tensor | None]:
    """Of the sum of all that is read, with respect to queries, keys and values."""
    torch.manual_seed(0)
    queries, keys, values = (torch.randn(1, 1, n, D, requires_grad=True) for n in (T, S, S))
    weights = weigh(DotScore("one", D)(queries, keys), torch.ones(S, dtype=torch.bool), selection)
    read = (weights @ values).square().sum()
    return list(torch.autograd.grad(read, (queries, keys, values), allow_unused=True))


def test_a_hard_choice_gives_no_gradient_to_queries_and_keys_but_one_to_values() -> None:
    for_queries, for_keys, for_values = gradients("argmax")
    assert for_queries is None
    assert for_keys is None
    assert for_values is not None
    assert float(for_values.abs().max()) > 0


def test_a_soft_choice_gives_a_gradient_to_all_three() -> None:
    for gradient in gradients("softmax"):
        assert gradient is not None
        assert float(gradient.abs().max()) > 0

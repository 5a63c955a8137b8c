"""Attention scores compute their formulas, and weights are normalised over the visible keys."""

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqloom.config.extensions.section import ExtensionConfig
from seqloom.config.schema.attention import ScoreConfig
from seqloom.config.schema.section import kinds_of
from seqloom.nn.attention import (
    AdditiveScore,
    AttentionScore,
    BilinearScore,
    DotScore,
    ExactScore,
    FixedScore,
    PositionalScore,
    PositionScore,
    RbfScore,
    Selection,
    attention_weights,
)

B, H, T, S, D = 2, 3, 4, 5, 6
Formula = Callable[[Tensor, Tensor, int], Tensor]
"""query (D,), key (D,), head -> score ()"""


def dot(scale: Literal["one", "sqrt", "width"], divisor: float) -> tuple[AttentionScore, Formula]:
    return DotScore(scale, D), lambda q, k, head: q.dot(k) / divisor


def bilinear(heads: int) -> tuple[AttentionScore, Formula]:
    score = BilinearScore(D, D - 1, heads)
    return score, lambda q, k, head: q @ score.weight[head] @ k


def additive(heads: int) -> tuple[AttentionScore, Formula]:
    score = AdditiveScore(D, D - 1, width=7, heads=heads)
    torch.nn.init.normal_(score.bias)

    def formula(q: Tensor, k: Tensor, head: int) -> Tensor:
        hidden = q @ score.project_query[head] + k @ score.project_key[head] + score.bias[head, 0]
        return torch.tanh(hidden) @ score.to_score[head, :, 0]

    return score, formula


def rbf() -> tuple[AttentionScore, Formula]:
    return RbfScore(0.3), lambda q, k, head: (-0.3 * (q - k).norm() ** 2).exp().log()


EVERY_SCORE: dict[str, Callable[[int], tuple[AttentionScore, Formula]]] = {
    "dot": lambda heads: dot("one", 1),
    "dot / √d": lambda heads: dot("sqrt", math.sqrt(D)),
    "dot / d": lambda heads: dot("width", D),
    "bilinear": bilinear,
    "additive": additive,
    "rbf": lambda heads: rbf(),
}
every_score = pytest.mark.parametrize("build", EVERY_SCORE.values(), ids=EVERY_SCORE)


def random_queries_keys(score: AttentionScore, *leading: int) -> tuple[Tensor, Tensor]:
    key_width = D - 1 if isinstance(score, BilinearScore | AdditiveScore) else D
    return torch.randn(*leading, T, D), torch.randn(*leading, S, key_width)


@every_score
def test_a_score_is_its_formula_for_every_pair_of_query_and_key(
    build: Callable[[int], tuple[AttentionScore, Formula]],
) -> None:
    torch.manual_seed(0)
    score, formula = build(H)
    queries, keys = random_queries_keys(score, B, H)
    scores = score.compare(queries, score.prepare(keys))
    assert scores.shape == (B, H, T, S)
    assert torch.equal(scores, score(queries, keys))
    for b, head, t, s in torch.cartesian_prod(*(torch.arange(n) for n in scores.shape)).tolist():
        expected = formula(queries[b, head, t], keys[b, head, s], head)
        torch.testing.assert_close(scores[b, head, t, s], expected, atol=1e-5, rtol=1e-5)


@every_score
def test_a_score_accepts_queries_and_keys_without_a_head_dimension(
    build: Callable[[int], tuple[AttentionScore, Formula]],
) -> None:
    score, _ = build(1)
    queries, keys = random_queries_keys(score, B)
    scores = score(queries, keys)
    assert scores.shape == (B, T, S)
    assert torch.equal(scores, score(queries.unsqueeze(1), keys.unsqueeze(1)).squeeze(1))


@pytest.mark.parametrize("build", [bilinear, additive])
def test_a_score_with_several_heads_rejects_tensors_without_a_head_dimension(
    build: Callable[[int], tuple[AttentionScore, Formula]],
) -> None:
    score, _ = build(H)
    with pytest.raises(ValueError, match=r"has 3 heads and needs queries \(B, H, T, D\)"):
        score(*random_queries_keys(score, B))


# Scores that depend only on positions


def random_table(score: PositionalScore) -> PositionalScore:
    torch.manual_seed(0)
    torch.nn.init.normal_(score.table)
    return score


def test_fixed_scores_are_one_number_per_source_position_at_every_step() -> None:
    score = random_table(FixedScore(S + 2, H))
    scores = score(*random_queries_keys(score, B, H))
    assert scores.shape == (B, H, T, S)
    for t in range(T):
        assert torch.equal(scores[:, :, t], score.table[:, 0, :S].expand(B, H, S))


@pytest.mark.parametrize("first", [0, 2, torch.tensor(2)])
def test_position_scores_are_one_number_per_step_and_source_position(first: int | Tensor) -> None:
    score = random_table(PositionScore(S + 2, T + 3, H))
    scores = score(*random_queries_keys(score, B, H), first)
    start = int(first)
    assert torch.equal(scores, score.table[:, start : start + T, :S].expand(B, H, T, S))


def test_position_scores_of_rows_with_different_positions() -> None:
    score = random_table(PositionScore(S, 9, H))
    positions = torch.tensor([[0, 1, 2, 3], [5, 8, 5, 0]])
    scores = score(*random_queries_keys(score, B, H), positions)
    for row, steps in enumerate(positions):
        assert torch.equal(scores[row], score.table[:, steps])


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_positional_scores_ignore_the_contents_of_queries_and_keys(seed: int) -> None:
    score = random_table(PositionScore(S, T, H))
    expected = score(torch.zeros(B, H, T, D), torch.zeros(B, H, S, D))
    torch.manual_seed(seed)
    assert torch.equal(score(*random_queries_keys(score, B, H)), expected)


def test_positional_weights_start_equal() -> None:
    for score in (FixedScore(S), PositionScore(S, T)):
        weights = attention_weights(score(torch.randn(B, T, D), torch.randn(B, S, D)))
        torch.testing.assert_close(weights, torch.full((B, T, S), 1 / S))


# Exact match: an ordinary hash table


def test_exact_match_returns_the_value_of_the_key_that_equals_the_query() -> None:
    keys = torch.tensor([[1.0, 2.0], [3.0, 4.0], [3.0, 4.0], [5.0, 6.0]])
    values = torch.tensor([[10.0], [20.0], [30.0], [40.0]])
    queries = torch.tensor([[3.0, 4.0], [5.0, 6.0], [3.0, 4.5], [1.0, 2.0]])
    mask = torch.tensor([False, True, True, True])
    weights = attention_weights(ExactScore()(queries[None], keys[None])[0], mask, "exact")
    # The first of two equal keys; no value for a query that differs; hidden keys never match.
    assert (weights @ values).flatten().tolist() == [20, 40, 0, 0]
    assert weights.sum(-1).tolist() == [1, 1, 0, 0]


def test_the_tolerance_bounds_the_difference_of_every_entry() -> None:
    keys, queries = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[1.25, 2.0], [1.25, 2.5]]])
    assert ExactScore(0.25)(queries, keys).flatten().tolist() == [1, 0]
    assert ExactScore(0.5)(queries, keys).flatten().tolist() == [1, 1]
    assert ExactScore(0.0)(queries, keys).flatten().tolist() == [0, 0]


def test_exact_match_gives_a_gradient_to_values_but_not_to_queries_and_keys() -> None:
    keys = torch.randn(1, S, D, requires_grad=True)
    queries = keys.detach()[:, :T].clone().requires_grad_()
    values = torch.randn(1, S, D, requires_grad=True)
    weights = attention_weights(ExactScore()(queries, keys), selection="exact")
    loss = (weights @ values).square().sum()
    for_queries, for_keys, for_values = torch.autograd.grad(
        loss, (queries, keys, values), allow_unused=True
    )
    assert for_queries is None
    assert for_keys is None
    assert for_values is not None
    assert for_values[:, :T].abs().min() > 0


# Precision

WIDE, HEADS = 64, 2
SCORES_FOR_BF16: dict[str, Callable[[], AttentionScore]] = {
    **{
        part.__name__: partial(
            part.model_validate({}).build_part, query_width=WIDE, key_width=WIDE, heads=HEADS
        )
        for part in kinds_of(ScoreConfig)
        if issubclass(part, ScoreConfig) and not issubclass(part, ExtensionConfig)
    },
    "dot": lambda: DotScore("one", WIDE),
    "dot / d": lambda: DotScore("width", WIDE),
    "exact": lambda: ExactScore(),
}


# A CPU without bf16 instructions warns about this.
@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
@pytest.mark.parametrize("name", SCORES_FOR_BF16)
@pytest.mark.parametrize("distance", [0.0, 0.05, 1.0])
def test_a_score_in_bf16_is_close_to_the_score_in_float32(name: str, distance: float) -> None:
    """Also if queries nearly equal keys, where a small distance is the difference of large squares."""
    torch.manual_seed(0)
    score = SCORES_FOR_BF16[name]()
    # These inputs are exact in bf16, so the score alone causes the error.
    keys = torch.randn(2, HEADS, 9, WIDE).bfloat16()
    queries = (keys[:, :, :7] + distance * torch.randn(2, HEADS, 7, WIDE)).bfloat16()
    with torch.no_grad():
        exact = score(queries.float(), keys.float())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            narrow = score(queries, keys).float()
            mixed = score(queries.float(), keys.float()).float()
    for scores in (narrow, mixed):
        assert ((scores - exact).abs() <= 0.05 * (1 + exact.abs())).all()


# Weights


@settings(deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, S), min_size=1, max_size=4),
    st.sampled_from(["softmax", "argmax"]),
)
def test_weights_sum_to_one_and_are_zero_for_hidden_keys(
    seed: int, lengths: list[int], selection: Selection
) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = 9 * torch.randn(len(lengths), H, T, S, generator=generator)
    mask = (torch.arange(S) < torch.tensor(lengths)[:, None])[:, None, None]
    weights = attention_weights(scores, mask, selection)
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(lengths), H, T))
    assert float(weights.masked_fill(mask, 0).abs().max()) == 0
    assert bool((weights >= 0).all())


@pytest.mark.parametrize("selection", ["softmax", "argmax"])
def test_without_a_mask_every_key_is_visible(selection: Selection) -> None:
    scores = torch.randn(B, H, T, S)
    everything = torch.ones(S, dtype=torch.bool)
    expected = attention_weights(scores, everything, selection)
    assert torch.equal(attention_weights(scores, None, selection), expected)


def test_softmax_weights_are_normalised_exponentials_of_the_scores() -> None:
    scores = torch.tensor([[[[1.0, 3.0, 0.0, 8.0]]]])
    mask = torch.tensor([True, True, True, False])
    total = math.e + math.e**3 + 1
    expected = [math.e / total, math.e**3 / total, 1 / total, 0]
    weights = attention_weights(scores, mask, "softmax")
    assert weights.flatten().tolist() == pytest.approx(expected)


def test_argmax_puts_all_weight_on_the_best_visible_key() -> None:
    scores = torch.tensor([[[[1.0, 3.0, 0.0, 8.0]]]])
    mask = torch.tensor([True, True, True, False])
    assert attention_weights(scores, mask, "argmax").flatten().tolist() == [0, 1, 0, 0]


def test_the_softmax_of_bf16_scores_is_computed_in_float32() -> None:
    scores = 5 * torch.randn(1, 1, 8, 300, generator=torch.Generator().manual_seed(0)).bfloat16()
    everything = torch.ones(300, dtype=torch.bool)
    weights = attention_weights(scores, everything, "softmax")
    assert weights.dtype == torch.bfloat16
    assert torch.equal(weights, scores.float().softmax(-1).bfloat16())


def gradients(selection: Selection) -> list[Tensor | None]:
    """Gradients of the sum of squared contexts with respect to queries, keys and values."""
    torch.manual_seed(0)
    queries, keys, values = (torch.randn(1, 1, n, D, requires_grad=True) for n in (T, S, S))
    weights = attention_weights(DotScore("one", D)(queries, keys), selection=selection)
    loss = (weights @ values).square().sum()
    return list(torch.autograd.grad(loss, (queries, keys, values), allow_unused=True))


def test_argmax_gives_a_gradient_to_values_but_not_to_queries_and_keys() -> None:
    for_queries, for_keys, for_values = gradients("argmax")
    assert for_queries is None
    assert for_keys is None
    assert for_values is not None
    assert float(for_values.abs().max()) > 0


def test_softmax_gives_a_gradient_to_queries_keys_and_values() -> None:
    for gradient in gradients("softmax"):
        assert gradient is not None
        assert float(gradient.abs().max()) > 0

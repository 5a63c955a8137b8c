"""Many heads: slices of one width, the same with or without the fused kernel, beside copies."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from seqloom.nn.attention import AdditiveScore, BilinearScore, DotScore, RbfScore, Score, Selection
from seqloom.nn.cache import KeysValues
from seqloom.nn.multihead import AttentionPlan, MultiHeadAttention, Projection

WIDTH, HEADS = 8, 2
EVERY_SCORE: dict[str, Callable[[int, int], Score]] = {
    "dot": lambda heads, width: DotScore("one", width),
    "dot / √d": lambda heads, width: DotScore("sqrt", width),
    "dot / d": lambda heads, width: DotScore("width", width),
    "bilinear": lambda heads, width: BilinearScore(heads, width, width),
    "additive": lambda heads, width: AdditiveScore(heads, width, width, 5),
    "rbf": lambda heads, width: RbfScore(0.5),
}
SELECTIONS: list[Selection] = ["softmax", "argmax"]
PROJECTIONS: list[Projection] = ["none", "linear", "sigmoid", "tanh"]
every_score = pytest.mark.parametrize("make", EVERY_SCORE.values(), ids=EVERY_SCORE)
every_selection = pytest.mark.parametrize("selection", SELECTIONS)


def plan_of(heads: int, width: int = WIDTH, projection: Projection = "linear") -> AttentionPlan:
    return AttentionPlan(
        query_width=WIDTH,
        key_width=WIDTH,
        width=width,
        heads=heads,
        projection=projection,
        learned_values=projection != "none",
        merged_width=None,
    )


def attention_of(
    make: Callable[[int, int], Score], selection: Selection = "softmax", rotary: bool = False
) -> MultiHeadAttention:
    torch.manual_seed(0)
    score = make(HEADS, WIDTH // HEADS)
    attention = MultiHeadAttention(plan_of(HEADS), score, selection, rotary).double()
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.5)
    return attention.eval().requires_grad_(False)


def some_states(rows: int, length: int, seed: int = 1) -> Tensor:
    return torch.randn(
        rows, length, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def padding_mask(lengths: list[int]) -> Tensor:
    """(B, 1, 1, S)"""
    return (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None])[:, None, None]


@every_score
@every_selection
@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("backwards_only", [False, True])
def test_reading_and_looking_agree(
    make: Callable[[int, int], Score], selection: Selection, rotary: bool, backwards_only: bool
) -> None:
    attention = attention_of(make, selection, rotary)
    states = some_states(2, 5)
    mask = None if backwards_only else padding_mask([5, 3])
    readable = attention.keys_values(states, place=2)
    context, weights = attention.look(states, readable, mask, place=2)
    torch.testing.assert_close(attention.read(states, readable, mask, place=2), context)
    expected = attention.merge((weights @ readable.values).transpose(1, 2).flatten(2))
    torch.testing.assert_close(context, expected)
    if backwards_only:
        assert float(weights.triu(1).abs().max()) == 0


def test_turned_keys_of_a_position_alone_are_those_among_others() -> None:
    attention = attention_of(EVERY_SCORE["dot"], rotary=True)
    states, mask = some_states(2, 5), padding_mask([5, 5])
    whole = attention.keys_values(states).keys
    for place in range(5):
        alone = attention.keys_values(states[:, place : place + 1], place=place).keys
        torch.testing.assert_close(alone, whole[:, :, place : place + 1])
    _, here = attention.look(states, attention.keys_values(states), mask)
    _, there = attention.look(states, attention.keys_values(states, place=9), mask, place=9)
    torch.testing.assert_close(here, there)  # only distances matter


@every_score
@every_selection
def test_hypotheses_that_share_keys_read_what_copies_would_give_them(
    make: Callable[[int, int], Score], selection: Selection
) -> None:
    attention, mask, each = attention_of(make, selection), padding_mask([4, 2, 3]), 5
    readable = attention.keys_values(some_states(3, 4))
    queries = some_states(3 * each, 1, seed=7)  # row r asks source r // K
    copies = KeysValues(
        readable.keys.repeat_interleave(each, 0), readable.values.repeat_interleave(each, 0)
    )
    context, weights = attention.look(queries, copies, mask.repeat_interleave(each, 0))
    once, shared = attention.look_once(queries[:, 0], readable, mask)
    torch.testing.assert_close(once, context[:, 0])
    torch.testing.assert_close(shared, weights[:, :, 0])


@every_score
@every_selection
def test_heads_are_slices(make: Callable[[int, int], Score], selection: Selection) -> None:
    """H heads over a width are H attentions over H slices of it, side by side."""
    whole, states, mask = attention_of(make, selection), some_states(2, 4), padding_mask([4, 2])
    together, weights = whole.look(states, whole.keys_values(states), mask)
    part = WIDTH // HEADS
    for head in range(HEADS):
        here = slice(head * part, (head + 1) * part)
        alone = MultiHeadAttention(plan_of(1, part), make(1, part), selection).double()
        for ours, theirs in [
            (alone.to_query, whole.to_query),
            (alone.to_key, whole.to_key),
            (alone.to_value, whole.to_value),
        ]:
            ours.load_state_dict({k: v[here] for k, v in theirs.state_dict().items()})
        alone.score.load_state_dict(
            {name: each[head : head + 1] for name, each in whole.score.state_dict().items()}
        )
        context, own = alone.look(states, alone.keys_values(states), mask)
        torch.testing.assert_close(together[..., here], context)
        torch.testing.assert_close(weights[:, head], own[:, 0])


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_queries_and_keys_are_bent_as_the_projection_says(projection: Projection) -> None:
    torch.manual_seed(0)
    plan = plan_of(HEADS, projection=projection)
    attention = MultiHeadAttention(plan, DotScore("one", 4)).double().requires_grad_(False)
    states, mask = some_states(2, 3), padding_mask([3, 3])
    bend = {"sigmoid": torch.sigmoid, "tanh": torch.tanh}.get(projection, lambda x: x)
    queries = bend(attention.to_query(states)).unflatten(-1, (HEADS, -1)).transpose(1, 2)
    keys = bend(attention.to_key(states)).unflatten(-1, (HEADS, -1)).transpose(1, 2)
    readable = attention.keys_values(states)
    torch.testing.assert_close(readable.keys, keys)
    _, weights = attention.look(states, readable, mask)
    torch.testing.assert_close(weights, (queries @ keys.transpose(-2, -1)).softmax(-1))
    if projection == "none":
        assert not list(attention.parameters())  # self-attention without parameters


def test_widths_of_heads_and_context_follow_the_plan() -> None:
    plan = AttentionPlan(
        query_width=6,
        key_width=9,
        width=12,
        heads=3,
        projection="linear",
        learned_values=False,
        merged_width=5,
    )
    assert (plan.query_head, plan.key_head, plan.value_width, plan.context_width) == (4, 4, 9, 5)
    attention = MultiHeadAttention(plan, DotScore("sqrt", 4))
    readable = attention.keys_values(torch.randn(2, 7, 9))
    assert readable.keys.shape == (2, 3, 7, 4)
    assert readable.values.shape == (2, 3, 7, 3)
    context, weights = attention.look(torch.randn(2, 4, 6), readable, padding_mask([7, 7]))
    assert context.shape == (2, 4, 5)
    assert weights.shape == (2, 3, 4, 7)


@every_score
def test_weights_are_dropped_in_training_only_and_shown_whole(
    make: Callable[[int, int], Score],
) -> None:
    attention, states, mask = attention_of(make), some_states(4, 6), padding_mask([6] * 4)
    attention.dropout = 0.5
    readable = attention.keys_values(states)
    calm, shown = attention.look(states, readable, mask)
    torch.testing.assert_close(attention.read(states, readable, mask), calm)
    attention.train()
    dropped, weights = attention.look(states, readable, mask)
    assert not torch.allclose(dropped, calm)
    assert not torch.allclose(attention.read(states, readable, mask), calm)
    torch.testing.assert_close(weights, shown)

"""Multi-head attention: heads, masks, projections, and every way to call it gives the same result."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from seqloom.nn import AdditiveScore, MultiHeadAttention
from seqloom.nn.attention import (
    AttentionScore,
    BilinearScore,
    DotScore,
    PositionScore,
    RbfScore,
    Selection,
)
from seqloom.nn.fast.multihead import joined_projections, prepare_mask
from seqloom.nn.fast.static_cache import SlotTable, StaticCache
from seqloom.nn.key_value_cache import KeysValues, KeyValueCache
from seqloom.nn.multihead import Projection

WIDTH, HEADS = 8, 2
BuildScore = Callable[[int, int], AttentionScore]
"""heads, width of a head -> score"""
EVERY_SCORE: dict[str, BuildScore] = {
    "dot": lambda heads, width: DotScore("one", width),
    "dot / √d": lambda heads, width: DotScore("sqrt", width),
    "dot / d": lambda heads, width: DotScore("width", width),
    "bilinear": lambda heads, width: BilinearScore(width, width, heads),
    "additive": lambda heads, width: AdditiveScore(width, width, 5, heads),
    "rbf": lambda heads, width: RbfScore(0.5),
}
SELECTIONS: list[Selection] = ["softmax", "argmax"]
PROJECTIONS: list[Projection] = ["none", "linear", "sigmoid", "tanh"]
every_score = pytest.mark.parametrize("build_score", EVERY_SCORE.values(), ids=EVERY_SCORE)
every_selection = pytest.mark.parametrize("selection", SELECTIONS)


def build_attention(
    build_score: BuildScore, selection: Selection = "softmax", rotary: bool = False
) -> MultiHeadAttention:
    torch.manual_seed(0)
    attention = MultiHeadAttention(
        WIDTH,
        HEADS,
        score=build_score(HEADS, WIDTH // HEADS),
        output_projection=False,
        selection=selection,
        rotary=rotary,
    ).double()
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.5)
    return attention.eval().requires_grad_(False)


def random_states(rows: int, length: int, seed: int = 1) -> Tensor:
    return torch.randn(
        rows, length, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def padding_mask(lengths: list[int]) -> Tensor:
    """(B, 1, 1, S)"""
    return (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None])[:, None, None]


# The module as a user calls it


def test_attention_and_score_work_with_plain_arguments_and_tensors() -> None:
    queries, states = torch.randn(2, 3, 64), torch.randn(2, 5, 64)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    attention = MultiHeadAttention(64, heads=8)
    output = attention(queries, states, mask=mask)
    assert output.context.shape == (2, 3, 64)
    assert output.weights.shape == (2, 8, 3, 5)
    assert not output.weights[1, :, :, 2:].any()
    assert AdditiveScore(64, 64, width=32)(queries, states).shape == (2, 3, 5)


def test_a_call_without_keys_is_self_attention() -> None:
    attention, states = build_attention(EVERY_SCORE["dot"]), random_states(2, 4)
    for output, expected in zip(attention(states), attention(states, states), strict=True):
        assert torch.equal(output, expected)


def test_a_default_attention_is_that_of_the_paper() -> None:
    """Vaswani et al. 2017: dot product / √d, linear projections, learned values."""
    attention, states = MultiHeadAttention(WIDTH, HEADS).double(), random_states(2, 3)
    queries, keys, values = (
        layer(states).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        for layer in (attention.to_query, attention.to_key, attention.to_value)
    )
    weights = (queries @ keys.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5).softmax(-1)
    context = attention.output_projection((weights @ values).transpose(1, 2).flatten(2))
    output = attention(states)
    torch.testing.assert_close(output.weights, weights)
    torch.testing.assert_close(output.context, context)


# Masks


@every_score
@every_selection
def test_a_mask_of_sources_equals_a_mask_with_head_and_query_dimensions(
    build_score: BuildScore, selection: Selection
) -> None:
    attention, states, mask = (
        build_attention(build_score, selection),
        random_states(2, 5),
        padding_mask([5, 3]),
    )
    memory = attention.project_keys_values(states)
    plain, broadcast = attention(states, mask=mask[:, 0, 0]), attention(states, mask=mask)
    assert torch.equal(plain.weights, broadcast.weights)
    for context in (
        attention.attend(states, memory, mask[:, 0, 0]),
        attention.attend(states, memory, mask),
        attention.attend_self(states, mask=mask),
        attention.trace(states, states, mask[:, 0, 0]).context,
    ):
        torch.testing.assert_close(context, plain.context)


@every_score
@every_selection
def test_without_a_mask_every_method_sees_every_key(
    build_score: BuildScore, selection: Selection
) -> None:
    attention, states = build_attention(build_score, selection), random_states(2, 4)
    memory, everything = attention.project_keys_values(states), padding_mask([4, 4])
    expected = attention(states, mask=everything)
    assert torch.equal(attention(states).weights, expected.weights)
    for context in (
        attention(states).context,
        attention.attend(states, memory),
        attention.attend_self(states),
        attention.attend_with_weights(states, memory).context,
        attention.trace(states, states).context,
    ):
        torch.testing.assert_close(context, expected.context)
    for need_weights in (False, True):
        context, _ = attention.step_cross(states[:, 0], memory, None, need_weights)
        torch.testing.assert_close(context, expected.context[:, 0])


@every_score
@every_selection
@pytest.mark.parametrize("is_masked", [False, True])
def test_causal_attention_hides_later_keys_in_addition_to_the_mask(
    build_score: BuildScore, selection: Selection, is_masked: bool
) -> None:
    attention, states = build_attention(build_score, selection), random_states(2, 4)
    mask = padding_mask([4, 3]) if is_masked else None
    causal = torch.ones(4, 4, dtype=torch.bool).tril()[None, None]
    expected = attention(states, mask=causal if mask is None else causal & mask)
    output = attention(states, mask=mask, is_causal=True)
    assert torch.equal(output.weights, expected.weights)
    for context in (
        output.context,
        attention.attend_self(states, mask=mask, is_causal=True),
        attention.attend(states, attention.project_keys_values(states), mask, is_causal=True),
    ):
        torch.testing.assert_close(context, expected.context)


@every_score
@every_selection
@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_with_and_without_weights_agrees(
    build_score: BuildScore, selection: Selection, rotary: bool, is_causal: bool
) -> None:
    attention = build_attention(build_score, selection, rotary)
    states = random_states(2, 5)
    mask = None if is_causal else padding_mask([5, 3])
    memory = attention.project_keys_values(states, position_ids=2)
    context, weights = attention.attend_with_weights(
        states, memory, mask, is_causal=is_causal, position_ids=2
    )
    torch.testing.assert_close(
        attention.attend(states, memory, mask, is_causal=is_causal, position_ids=2), context
    )
    expected = attention.output_projection((weights @ memory.values).transpose(1, 2).flatten(2))
    torch.testing.assert_close(context, expected)
    if is_causal:
        assert float(weights.triu(1).abs().max()) == 0


# Decoding


def test_rotary_keys_of_a_single_position_equal_those_of_the_sequence() -> None:
    attention = build_attention(EVERY_SCORE["dot"], rotary=True)
    states, mask = random_states(2, 5), padding_mask([5, 5])
    keys = attention.project_keys_values(states).keys
    for position in range(5):
        single = attention.project_keys_values(
            states[:, position : position + 1], position_ids=position
        )
        torch.testing.assert_close(single.keys, keys[:, :, position : position + 1])
    shifted_memory = attention.project_keys_values(states, position_ids=9)
    weights = attention(states, mask=mask).weights
    shifted = attention.attend_with_weights(states, shifted_memory, mask, position_ids=9).weights
    torch.testing.assert_close(weights, shifted)  # only distances matter


@every_score
@every_selection
def test_hypotheses_that_share_keys_get_the_context_of_copied_keys(
    build_score: BuildScore, selection: Selection
) -> None:
    attention, mask, count = build_attention(build_score, selection), padding_mask([4, 2, 3]), 5
    memory = attention.project_keys_values(random_states(3, 4))
    queries = random_states(3 * count, 1, seed=7)  # row r attends to source r // K
    copies = KeysValues(
        memory.keys.repeat_interleave(count, 0), memory.values.repeat_interleave(count, 0)
    )
    copied_mask = mask.repeat_interleave(count, 0)
    expected = attention.attend_with_weights(queries, copies, copied_mask)
    context, weights = attention.step_cross(queries[:, 0], memory, mask, need_weights=True)
    torch.testing.assert_close(context, expected.context[:, 0])
    torch.testing.assert_close(weights, expected.weights[:, :, 0])


@every_score
@every_selection
@pytest.mark.parametrize("lengths", [[4, 4], [4, 2]], ids=["no padding", "padding"])
def test_a_prepared_mask_gives_the_context_of_the_plain_mask(
    build_score: BuildScore, selection: Selection, lengths: list[int]
) -> None:
    attention, mask = build_attention(build_score, selection), padding_mask(lengths)
    memory, queries = attention.project_keys_values(random_states(2, 4)), random_states(2, 1)[:, 0]
    expected, _ = attention.step_cross(queries, memory, mask, need_weights=True)
    for plain_or_prepared in (mask, prepare_mask(attention, mask, torch.float64)):
        context, weights = attention.step_cross(
            queries, memory, plain_or_prepared, need_weights=False
        )
        torch.testing.assert_close(context, expected)
        assert weights is None


@every_score
@every_selection
@pytest.mark.parametrize("is_joined", [False, True])
def test_steps_with_a_static_cache_equal_causal_attention(
    build_score: BuildScore, selection: Selection, is_joined: bool
) -> None:
    attention, states = build_attention(build_score, selection), random_states(2, 4)
    expected = attention(states, is_causal=True).context
    position = torch.zeros((), dtype=torch.long)
    example = attention.project_keys_values(states[:1, :1])
    cache = StaticCache(SlotTable(2, 4, position), example)
    projections = joined_projections(attention, static=True) if is_joined else None
    for step in range(4):
        context = attention.step(states[:, step], cache, projections)
        torch.testing.assert_close(context, expected[:, step])
        position += 1


# Heads and projections


@every_score
@every_selection
def test_heads_are_slices(build_score: BuildScore, selection: Selection) -> None:
    """H heads over a width equal H separate attentions over H slices of it."""
    whole, states, mask = (
        build_attention(build_score, selection),
        random_states(2, 4),
        padding_mask([4, 2]),
    )
    output = whole(states, mask=mask)
    head_width = WIDTH // HEADS
    for head in range(HEADS):
        part = slice(head * head_width, (head + 1) * head_width)
        single = MultiHeadAttention(
            WIDTH,
            width=head_width,
            score=build_score(1, head_width),
            output_projection=False,
            selection=selection,
        ).double()
        for layer, whole_layer in [
            (single.to_query, whole.to_query),
            (single.to_key, whole.to_key),
            (single.to_value, whole.to_value),
        ]:
            layer.load_state_dict({k: v[part] for k, v in whole_layer.state_dict().items()})
        single.score.load_state_dict(
            {name: each[head : head + 1] for name, each in whole.score.state_dict().items()}
        )
        single_output = single(states, mask=mask)
        torch.testing.assert_close(output.context[..., part], single_output.context)
        torch.testing.assert_close(output.weights[:, head], single_output.weights[:, 0])


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_queries_and_keys_are_projected_as_configured(projection: Projection) -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(
        WIDTH,
        HEADS,
        score=DotScore("one", 4),
        projection=projection,
        values="states" if projection == "none" else "learned",
        output_projection=False,
    )
    attention.double().requires_grad_(False)
    states = random_states(2, 3)
    activate = {"sigmoid": torch.sigmoid, "tanh": torch.tanh}.get(projection, lambda x: x)
    queries = activate(attention.to_query(states)).unflatten(-1, (HEADS, -1)).transpose(1, 2)
    keys = activate(attention.to_key(states)).unflatten(-1, (HEADS, -1)).transpose(1, 2)
    torch.testing.assert_close(attention.project_keys_values(states).keys, keys)
    weights = attention(states).weights
    torch.testing.assert_close(weights, (queries @ keys.transpose(-2, -1)).softmax(-1))
    if projection == "none":
        assert not list(attention.parameters())  # self-attention without parameters


@pytest.mark.parametrize("projection", ["sigmoid", "tanh"])
@pytest.mark.parametrize("layers", [2, 3])
def test_queries_and_keys_of_several_layers_are_nested_projections(
    projection: Projection, layers: int
) -> None:
    """k = σ(W₂ σ(W₁ h + b₁) + b₂), in every way to call attention."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(
        WIDTH, HEADS, width=6, projection=projection, projection_layers=layers
    )
    attention.double().requires_grad_(False)
    assert len(attention.query_layers) == len(attention.key_layers) == layers - 1
    states, activate = random_states(2, 3), getattr(torch, projection)

    def nested(*parts: nn.Module) -> Tensor:
        hidden = states
        for part in parts:
            hidden = activate(part(hidden))
        return hidden.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    queries = nested(attention.to_query, *attention.query_layers)
    keys = nested(attention.to_key, *attention.key_layers)
    memory, traced = attention.project_keys_values(states), attention.trace(states, states)
    torch.testing.assert_close(memory.keys, keys)
    torch.testing.assert_close(traced.queries, queries)
    weights = (queries @ keys.transpose(-2, -1) / 3**0.5).softmax(-1)
    output = attention(states)
    torch.testing.assert_close(output.weights, weights)
    torch.testing.assert_close(attention.attend_self(states), output.context)
    torch.testing.assert_close(
        attention.step_cross(states[:, 0], memory, None, False)[0], output.context[:, 0]
    )
    cache, causal = KeyValueCache(3), attention.attend_self(states, is_causal=True)
    for t in range(3):
        torch.testing.assert_close(attention.step(states[:, t], cache), causal[:, t])


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("position", [0, 3])
def test_all_hypotheses_of_a_step_have_the_position_of_the_step(
    need_weights: bool, position: int
) -> None:
    attention = MultiHeadAttention(
        WIDTH, HEADS, score=PositionScore(9, 6, HEADS), projection="none", values="states"
    )
    attention.double().requires_grad_(False)
    nn.init.normal_(attention.score.get_parameter("table"))
    states, mask = random_states(2, 4), padding_mask([4, 3])
    memory = attention.project_keys_values(states)
    queries = random_states(2 * 3, 1, seed=5)[:, 0]  # three hypotheses of two sources
    context, _ = attention.step_cross(queries, memory, mask, need_weights, torch.tensor(position))
    expected = attention.attend(states, memory, mask)[:, position]  # queries at positions 0 to 3
    torch.testing.assert_close(context, expected.repeat_interleave(3, 0))


def test_widths_of_heads_and_context_follow_the_arguments() -> None:
    attention = MultiHeadAttention(6, 3, key_width=9, width=12, values="states")
    assert (attention.query_head_width, attention.key_head_width) == (4, 4)
    assert (attention.value_width, attention.context_width) == (9, 6)
    memory = attention.project_keys_values(torch.randn(2, 7, 9))
    assert memory.keys.shape == (2, 3, 7, 4)
    assert memory.values.shape == (2, 3, 7, 3)
    context, weights = attention(torch.randn(2, 4, 6), torch.randn(2, 7, 9))
    assert context.shape == (2, 4, 6)
    assert weights.shape == (2, 3, 4, 7)
    unprojected = MultiHeadAttention(
        6, 3, key_width=9, width=12, values="states", output_projection=False
    )
    assert unprojected.context_width == 9


@every_score
def test_dropout_changes_the_context_in_training_only_and_never_the_returned_weights(
    build_score: BuildScore,
) -> None:
    attention, states, mask = (
        build_attention(build_score),
        random_states(4, 6),
        padding_mask([6] * 4),
    )
    attention.dropout = 0.5
    memory = attention.project_keys_values(states)
    expected = attention.attend_with_weights(states, memory, mask)
    torch.testing.assert_close(attention.attend(states, memory, mask), expected.context)
    attention.train()
    dropped = attention.attend_with_weights(states, memory, mask)
    assert not torch.allclose(dropped.context, expected.context)
    assert not torch.allclose(attention.attend(states, memory, mask), expected.context)
    torch.testing.assert_close(dropped.weights, expected.weights)

"""Attention as a differentiable hash table: exact, nearest and soft lookup."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.analysis.lookup import KEYS, METHODS, VALUES, LookupScore, LookupTable, look_up
from seqloom.core.errors import ConfigError

numbers = st.floats(0, 5).map(lambda value: round(value, 2))
points = st.tuples(numbers, numbers)
scores = st.sampled_from(["dot", "rbf"])
positive = st.floats(0.5, 2)


@settings(max_examples=20)
@given(query=points, score=scores, gamma=positive, temperature=positive)
def test_only_soft_lookup_has_gradients_at_query_and_keys(
    query: tuple[float, float], score: LookupScore, gamma: float, temperature: float
) -> None:
    table = LookupTable(query=query, score=score, gamma=gamma, temperature=temperature)
    for method in ("exact", "nearest"):
        result = look_up(table, method)
        assert not torch.tensor(result.query_gradient).any()
        assert not torch.tensor(result.key_gradients).any()
    soft = look_up(table, "soft")
    gradients = [*soft.query_gradient, *soft.key_gradients[0]]
    assert torch.tensor(gradients, dtype=torch.float64).any()
    assert sum(soft.weights) == pytest.approx(1)


@settings(max_examples=20)
@given(query=points, score=scores, gamma=positive, temperature=positive, axis=st.integers(0, 1))
def test_gradients_of_soft_lookup_equal_finite_differences(
    query: tuple[float, float], score: LookupScore, gamma: float, temperature: float, axis: int
) -> None:
    step = 1e-5

    def result_at(shift: float, key: int | None) -> float:
        moved_query, moved_keys = list(query), [list(row) for row in KEYS]
        moved = moved_query if key is None else moved_keys[key]
        moved[axis] += shift
        table = LookupTable(moved_keys, VALUES, moved_query, score, gamma, temperature)
        return look_up(table, "soft").result[0]

    table = LookupTable(query=query, score=score, gamma=gamma, temperature=temperature)
    found = look_up(table, "soft")
    for key, gradient in [
        (None, found.query_gradient[0]),
        *enumerate(found.key_gradients[0]),
    ]:
        slope = (result_at(step, key) - result_at(-step, key)) / (2 * step)
        assert gradient[axis] == pytest.approx(slope, rel=1e-4, abs=1e-4)


@settings(max_examples=20)
@given(query=points, gamma=positive)
def test_soft_lookup_at_a_low_temperature_is_the_nearest_one(
    query: tuple[float, float], gamma: float
) -> None:
    distances = sorted(math.dist(query, key) for key in KEYS)
    if distances[1] - distances[0] < 0.01:
        return  # two keys are equally near
    cold = LookupTable(query=query, gamma=gamma, temperature=1e-5)
    nearest = look_up(cold, "nearest").result
    assert look_up(cold, "soft").result == pytest.approx(nearest, abs=1e-3)


@pytest.mark.parametrize("number", range(len(KEYS)))
def test_a_query_that_equals_a_key_finds_its_value(number: int) -> None:
    table = LookupTable(query=KEYS[number])
    assert look_up(table, "exact").result == list(VALUES[number])
    assert look_up(table, "nearest").result == list(VALUES[number])


def test_without_an_equal_key_exact_lookup_returns_zero() -> None:
    assert look_up(LookupTable(values=[[1, 2]] * 4), "exact").result == [0, 0]


def test_soft_lookup_equals_a_calculation_by_hand() -> None:
    table = LookupTable(keys=[[1], [3]], values=[[0], [8]], query=[2.5], gamma=0.5, temperature=2)
    low, high = math.exp(-0.5 * 2.25 / 2), math.exp(-0.5 * 0.25 / 2)
    found = look_up(table, "soft")
    assert found.scores == [-1.125, -0.125]
    assert found.weights == pytest.approx([low / (low + high), high / (low + high)])
    assert found.result == pytest.approx([8 * high / (low + high)])
    dot = look_up(LookupTable([[1], [3]], [[0], [8]], [2], score="dot"), "soft")
    assert dot.scores == [2, 6]
    assert dot.result == pytest.approx([8 / (1 + math.exp(-4))])


def test_the_gradient_of_a_value_is_its_weight() -> None:
    for method in METHODS:
        found = look_up(LookupTable(query=KEYS[1]), method)
        raised = [(value + 1 if index == 1 else value,) for index, (value,) in enumerate(VALUES)]
        changed = look_up(LookupTable(values=raised, query=KEYS[1]), method)
        assert changed.result[0] - found.result[0] == pytest.approx(found.weights[1])


def test_all_problems_of_a_table_are_reported() -> None:
    table = LookupTable([[1], [2]], [[1]], [1, 2], gamma=0, temperature=math.inf)
    message = r"(?s)2 numbers and a key has 1.*2 keys and 1 values.*γ is 0.*temperature is inf"
    with pytest.raises(ConfigError, match=message):
        look_up(table, "soft")

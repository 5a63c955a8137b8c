"""Losses are sums over positions and equal their formulas."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.nn.losses import cross_entropy_sum, squared_error_sum

no_deadline = settings(deadline=None)
seeds = st.integers(0, 10**6)


@no_deadline
@given(seeds, st.integers(1, 6), st.integers(2, 8), st.floats(0, 0.9))
def test_smoothed_cross_entropy_mixes_the_target_with_a_uniform_distribution(
    seed: int, count: int, vocabulary: int, smoothing: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, vocabulary, generator=generator, dtype=torch.float64)
    targets = torch.randint(vocabulary, (count,), generator=generator)
    expected = 0.0
    for row, target in zip(logits.tolist(), targets.tolist(), strict=True):
        total = math.log(sum(math.exp(logit) for logit in row))
        for token, logit in enumerate(row):
            share = smoothing / vocabulary + (1 - smoothing) * (token == target)
            expected -= share * (logit - total)
    assert float(cross_entropy_sum(logits, targets, smoothing)) == pytest.approx(expected)


@no_deadline
@given(seeds, st.integers(1, 6), st.integers(1, 4))
def test_squared_error_is_the_sum_of_squared_distances(seed: int, count: int, width: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    left, right = torch.randn(2, count, width, generator=generator, dtype=torch.float64)
    expected = sum(math.dist(a, b) ** 2 for a, b in zip(left.tolist(), right.tolist(), strict=True))
    assert float(squared_error_sum(left, right)) == pytest.approx(expected)


@no_deadline
@given(seeds, st.integers(0, 6))
def test_the_loss_of_a_batch_is_the_sum_of_the_losses_of_its_parts(seed: int, cut: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(6, 5, generator=generator, dtype=torch.float64)
    targets = torch.randint(5, (6,), generator=generator)
    parts = [slice(0, cut), slice(cut, 6)]
    assert float(cross_entropy_sum(logits, targets, 0.1)) == pytest.approx(
        sum(float(cross_entropy_sum(logits[part], targets[part], 0.1)) for part in parts)
    )


def test_bf16_logits_are_summed_in_float32() -> None:
    logits = torch.randn(2000, 50, generator=torch.Generator().manual_seed(0)).bfloat16()
    targets = torch.zeros(2000, dtype=torch.long)
    loss = cross_entropy_sum(logits, targets)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, cross_entropy_sum(logits.float(), targets))


def test_padding_targets_are_ignored() -> None:
    logits = torch.randn(3, 5)
    padded = cross_entropy_sum(logits, torch.tensor([2, 0, 3]), 0.1, padding=0)
    torch.testing.assert_close(padded, cross_entropy_sum(logits[[0, 2]], torch.tensor([2, 3]), 0.1))

"""Cross-entropy in chunks equals the cross-entropy of all logits."""

import pytest
import torch

from seqloom.nn.fast import cross_entropy
from seqloom.nn.fast.cross_entropy import linear_cross_entropy_sum
from seqloom.nn.losses import cross_entropy_sum


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_in_chunks_has_the_value_and_gradients_of_the_plain_loss(
    smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy, "CHUNK", 4)
    leaves = [
        torch.randn(*shape, dtype=torch.float64, requires_grad=True)
        for shape in ((10, 6), (7, 6), (7,))
    ]
    features, weight, bias = leaves
    targets = torch.randint(7, (10,))
    plain = cross_entropy_sum(features @ weight.T + bias, targets, smoothing)
    chunked = linear_cross_entropy_sum(features, weight, bias, targets, smoothing)
    torch.testing.assert_close(chunked, plain)
    for gradient, expected in zip(
        torch.autograd.grad(3 * chunked, leaves),
        torch.autograd.grad(3 * plain, leaves),
        strict=True,
    ):
        torch.testing.assert_close(gradient, expected)


def test_a_probability_too_small_for_a_float_has_a_finite_loss() -> None:
    weight = torch.tensor([[0.0], [200.0]])
    loss = linear_cross_entropy_sum(
        torch.ones(1, 1), weight, torch.zeros(2), torch.tensor([0]), 0.0
    )
    assert float(loss) == pytest.approx(200)

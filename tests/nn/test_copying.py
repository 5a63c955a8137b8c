"""The copy mechanism: a mixture of generating from the vocabulary and copying from the source."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqloom.nn.copying import Copyable, Copying
from seqloom.nn.losses import cross_entropy_sum

FEATURES, KEYS, VOCABULARY = 6, 5, 9
few_examples = settings(max_examples=40, deadline=None)


def random_example(
    seed: int, words: int = VOCABULARY, packed: bool = False
) -> tuple[Copying, Tensor, Tensor, Copyable]:
    """A copy mechanism, logits, features and sources with repeated tokens and hidden positions."""
    torch.manual_seed(seed)
    copying = Copying(FEATURES, KEYS, 4).double()
    for parameter in copying.parameters():
        torch.nn.init.normal_(parameter, std=1.0)
    logits, features = 3 * torch.randn(2, 4, VOCABULARY), torch.randn(2, 4, FEATURES)
    states, tokens = torch.randn(2, 7, KEYS), torch.randint(words, (2, 7))
    mask = torch.arange(7) < torch.tensor([5, 7])[:, None, None]  # (B, 1, S)
    if packed:  # two pairs per row: the first positions see one part, the last ones the other
        early = torch.arange(4)[:, None] < 2
        mask = mask & (early == (torch.arange(7) < 3))  # (B, T, S)
    source = copying.prepare(states.double(), tokens, mask)
    return copying, logits.double(), features.double(), source


@few_examples
@given(seed=st.integers(0, 10**6), words=st.integers(1, VOCABULARY), packed=st.booleans())
def test_the_mixture_equals_its_formula_and_sums_to_one(
    seed: int, words: int, packed: bool
) -> None:
    copying, logits, features, source = random_example(seed, words, packed)
    mixed = copying.mix(logits, features, source).exp()
    scores = copying.to_query(features) @ source.keys.transpose(1, 2) / 2
    pointer = scores.masked_fill(~source.mask, float("-inf")).softmax(-1)  # (B, T, S)
    gate = copying.gate(torch.cat((features, pointer @ source.keys), -1)).sigmoid()
    expected = gate * logits.softmax(-1)
    for s in range(7):
        one_hot = torch.nn.functional.one_hot(source.tokens[:, s], VOCABULARY)  # (B, V)
        expected = expected + (1 - gate) * pointer[..., s : s + 1] * one_hot.unsqueeze(1)
    torch.testing.assert_close(mixed, expected)
    torch.testing.assert_close(mixed.sum(-1), torch.ones_like(mixed[..., 0]))


@few_examples
@given(
    seed=st.integers(0, 10**6),
    words=st.integers(1, VOCABULARY),
    packed=st.booleans(),
    smoothing=st.sampled_from([0.0, 0.1, 0.7]),
)
def test_the_loss_has_the_value_and_gradients_of_the_mixture(
    seed: int, words: int, packed: bool, smoothing: float
) -> None:
    """The loss never spreads copy probabilities over the vocabulary; the mixture does."""
    copying, logits, features, source = random_example(seed, words, packed)
    targets = torch.randint(VOCABULARY, (2, 4))
    loss = copying.loss(logits, features, source, targets, smoothing).sum()
    mixed = copying.mix(logits, features, source)
    expected = cross_entropy_sum(mixed.flatten(0, 1), targets.flatten(), smoothing)
    torch.testing.assert_close(loss, expected)
    weights = list(copying.parameters())
    for gradient, expected_gradient in zip(
        torch.autograd.grad(loss, weights, retain_graph=True),
        torch.autograd.grad(expected, weights),
        strict=True,
    ):
        torch.testing.assert_close(gradient, expected_gradient)


def test_a_gate_of_one_only_generates_and_a_gate_of_zero_only_copies() -> None:
    copying, logits, features, source = random_example(3)
    with torch.no_grad():
        copying.gate.weight.zero_()
        copying.gate.bias.fill_(80.0)
        generated = copying.mix(logits, features, source)
        copying.gate.bias.fill_(-80.0)
        copied = copying.mix(logits, features, source).exp()
    torch.testing.assert_close(generated, logits.log_softmax(-1))
    for row, length in enumerate((5, 7)):
        absent = set(range(VOCABULARY)) - set(source.tokens[row, :length].tolist())
        assert float(copied[row, :, sorted(absent)].max()) < 1e-30


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_losses_and_gradients_are_finite_for_probabilities_of_zero(dtype: torch.dtype) -> None:
    copying, logits, features, source = random_example(5)
    copying = copying.to(dtype)
    logits = (1e4 * logits).to(dtype).requires_grad_(True)  # a softmax of zeros and a one
    source = copying.prepare(torch.randn(2, 7, KEYS).to(dtype), source.tokens, source.mask)
    mixed = copying.mix(logits, features.to(dtype), source)
    assert mixed.dtype == torch.float32
    targets = torch.full((2, 4), VOCABULARY - 1)
    losses = copying.loss(logits, features.to(dtype), source, targets, 0.1)
    (mixed.sum() + losses.sum()).backward()
    assert torch.isfinite(mixed).all()
    assert torch.isfinite(losses).all()
    for parameter in (logits, *copying.parameters()):
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()


def test_a_step_of_several_hypotheses_equals_the_mixture_of_each() -> None:
    copying, logits, features, source = random_example(7)
    stepped = copying.step(logits.flatten(0, 1), features.flatten(0, 1), source)
    torch.testing.assert_close(stepped, copying.mix(logits, features, source).flatten(0, 1))

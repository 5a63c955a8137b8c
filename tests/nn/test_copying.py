"""Copying: a mixture of the vocabulary and of what stands in the source."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqloom.nn.copying import Copyable, Copying
from seqloom.nn.losses import cross_entropy_sum

FEATURES, KEYS, VOCABULARY = 6, 5, 9
few = settings(max_examples=40, deadline=None)


def scene(
    seed: int, words: int = VOCABULARY, packed: bool = False
) -> tuple[Copying, Tensor, Tensor, Copyable]:
    """A pointer, scores, features and sources in which tokens are repeated and some are hidden."""
    torch.manual_seed(seed)
    copying = Copying(FEATURES, KEYS, 4).double()
    for parameter in copying.parameters():
        torch.nn.init.normal_(parameter, std=1.0)
    logits, features = 3 * torch.randn(2, 4, VOCABULARY), torch.randn(2, 4, FEATURES)
    states, tokens = torch.randn(2, 7, KEYS), torch.randint(words, (2, 7))
    mask = torch.arange(7) < torch.tensor([5, 7])[:, None, None]  # (B, 1, S)
    if packed:  # two pairs in every row: the first positions see one part, the last the other
        early = torch.arange(4)[:, None] < 2
        mask = mask & (early == (torch.arange(7) < 3))  # (B, T, S)
    source = copying.prepare(states.double(), tokens, mask)
    return copying, logits.double(), features.double(), source


@few
@given(seed=st.integers(0, 10**6), words=st.integers(1, VOCABULARY), packed=st.booleans())
def test_the_mixture_is_the_formula_and_sums_to_one(seed: int, words: int, packed: bool) -> None:
    copying, logits, features, source = scene(seed, words, packed)
    mixed = copying.mix(logits, features, source).exp()
    scores = copying.to_query(features) @ source.keys.transpose(1, 2) / 2
    pointer = scores.masked_fill(~source.mask, float("-inf")).softmax(-1)  # (B, T, S)
    gate = copying.gate(torch.cat((features, pointer @ source.keys), -1)).sigmoid()
    expected = gate * logits.softmax(-1)
    for place in range(7):
        hit = torch.nn.functional.one_hot(source.tokens[:, place], VOCABULARY)  # (B, V)
        expected = expected + (1 - gate) * pointer[..., place : place + 1] * hit.unsqueeze(1)
    torch.testing.assert_close(mixed, expected)
    torch.testing.assert_close(mixed.sum(-1), torch.ones_like(mixed[..., 0]))


@few
@given(
    seed=st.integers(0, 10**6),
    words=st.integers(1, VOCABULARY),
    packed=st.booleans(),
    smoothing=st.sampled_from([0.0, 0.1, 0.7]),
)
def test_the_loss_is_that_of_the_mixture_and_so_is_its_gradient(
    seed: int, words: int, packed: bool, smoothing: float
) -> None:
    """Though the one never spreads over the vocabulary what the other does."""
    copying, logits, features, source = scene(seed, words, packed)
    answers = torch.randint(VOCABULARY, (2, 4))
    loss = copying.loss(logits, features, source, answers, smoothing).sum()
    mixed = copying.mix(logits, features, source)
    expected = cross_entropy_sum(mixed.flatten(0, 1), answers.flatten(), smoothing)
    torch.testing.assert_close(loss, expected)
    weights = list(copying.parameters())
    for one, other in zip(
        torch.autograd.grad(loss, weights, retain_graph=True),
        torch.autograd.grad(expected, weights),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_an_open_gate_speaks_and_a_shut_one_copies() -> None:
    copying, logits, features, source = scene(3)
    with torch.no_grad():
        copying.gate.weight.zero_()
        copying.gate.bias.fill_(80.0)
        spoken = copying.mix(logits, features, source)
        copying.gate.bias.fill_(-80.0)
        copied = copying.mix(logits, features, source).exp()
    torch.testing.assert_close(spoken, logits.log_softmax(-1))
    for row, length in enumerate((5, 7)):
        strangers = set(range(VOCABULARY)) - set(source.tokens[row, :length].tolist())
        assert float(copied[row, :, sorted(strangers)].max()) < 1e-30


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_nothing_to_copy_and_nothing_to_say_leave_finite_numbers(dtype: torch.dtype) -> None:
    copying, logits, features, source = scene(5)
    copying = copying.to(dtype)
    logits = (1e4 * logits).to(dtype).requires_grad_(True)  # a softmax with nothing but zeros
    source = copying.prepare(torch.randn(2, 7, KEYS).to(dtype), source.tokens, source.mask)
    mixed = copying.mix(logits, features.to(dtype), source)
    assert mixed.dtype == torch.float32
    answers = torch.full((2, 4), VOCABULARY - 1)
    losses = copying.loss(logits, features.to(dtype), source, answers, 0.1)
    (mixed.sum() + losses.sum()).backward()
    assert torch.isfinite(mixed).all()
    assert torch.isfinite(losses).all()
    for parameter in (logits, *copying.parameters()):
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()


def test_hypotheses_of_one_source_copy_from_the_same_keys() -> None:
    copying, logits, features, source = scene(7)
    stepped = copying.step(logits.flatten(0, 1), features.flatten(0, 1), source)
    torch.testing.assert_close(stepped, copying.mix(logits, features, source).flatten(0, 1))

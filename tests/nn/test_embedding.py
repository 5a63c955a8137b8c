"""Ids to vectors on the way in, features to scores on the way out."""

import pytest
import torch
from torch import nn

from seqloom.nn.embedding import Embedder, LearnedLookup, OneHotLookup, Readout
from seqloom.nn.positions import OneHotPositions, Positions


def test_noise_is_there_in_training_only_and_as_strong_as_asked() -> None:
    lookup = LearnedLookup(10, 50, noise=0.3, small=False).requires_grad_(False)
    tokens = torch.randint(10, (40, 100), generator=torch.Generator().manual_seed(0))
    still = lookup.eval()(tokens)
    assert torch.equal(still, lookup(tokens))
    torch.manual_seed(0)
    noise = lookup.train()(tokens) - still  # 200,000 numbers
    assert float(noise.std()) == pytest.approx(0.3, rel=0.05)
    assert float(noise.mean()) == pytest.approx(0, abs=0.01)
    assert not torch.equal(noise[0, 0], noise[0, 1])


def test_vectors_begin_with_size_one_whether_their_table_is_small_or_not() -> None:
    torch.manual_seed(0)
    for small, size in [(False, 1.0), (True, 1 / 8)]:
        lookup = LearnedLookup(500, 64, noise=0.0, small=small).requires_grad_(False)
        assert float(lookup.weight.std()) == pytest.approx(size, rel=0.05)
        assert float(lookup(torch.arange(500)[None]).std()) == pytest.approx(1, rel=0.05)


def test_without_noise_training_changes_nothing() -> None:
    lookup, tokens = LearnedLookup(10, 5, noise=0.0, small=False), torch.arange(10)[None]
    assert torch.equal(lookup.train()(tokens), lookup.eval()(tokens))


def test_one_hot_tokens_are_unit_vectors_in_the_precision_of_the_model() -> None:
    lookup = OneHotLookup(5)
    assert torch.equal(lookup(torch.arange(5)[None]), torch.eye(5)[None])
    assert lookup.double()(torch.arange(5)[None]).dtype == torch.float64
    assert not list(lookup.parameters())
    assert not lookup.state_dict()


def test_dropout_on_embedded_tokens_is_off_in_evaluation() -> None:
    embedder = Embedder(
        LearnedLookup(10, 64, noise=0.0, small=False), Positions(), None, dropout=0.5
    )
    tokens = torch.randint(10, (4, 25))
    still = embedder.eval()(tokens)
    assert torch.equal(still, embedder(tokens))
    dropped = embedder.train()(tokens)
    kept = dropped != 0
    assert float(kept.float().mean()) == pytest.approx(0.5, abs=0.05)
    torch.testing.assert_close(dropped[kept], 2 * still[kept])


def test_embedded_tokens_are_as_wide_as_their_parts_or_as_asked() -> None:
    def embedder_of(width: int | None) -> Embedder:
        lookup = LearnedLookup(10, 6, noise=0.0, small=False)
        return Embedder(lookup, OneHotPositions("append", 4, 4), width, dropout=0.0)

    natural, fitted, equal = embedder_of(None), embedder_of(7), embedder_of(10)
    tokens = torch.tensor([[3, 1]])
    assert natural.width == natural(tokens).shape[-1] == 6 + 4
    assert fitted.width == fitted(tokens).shape[-1] == 7
    assert isinstance(fitted.fit, nn.Linear)
    assert isinstance(equal.fit, nn.Identity)  # no map where none is needed
    torch.testing.assert_close(natural(tokens[:, 1:], place=1), natural(tokens)[:, 1:])


def test_a_readout_is_one_map_of_all_features_or_two_with_a_tanh_between() -> None:
    features = torch.randn(2, 3, 6)
    plain = Readout(6, 9, hidden=None, tied=None)
    expected = features @ plain.output.weight.T + plain.output.bias
    torch.testing.assert_close(plain(features), expected)
    bent = Readout(6, 9, hidden=4, tied=None)
    assert isinstance(bent.bend, nn.Sequential)
    first = bent.bend[0]
    assert isinstance(first, nn.Linear)
    hidden = torch.tanh(features @ first.weight.T + first.bias)
    assert hidden.shape == (2, 3, 4)
    expected = hidden @ bent.output.weight.T + bent.output.bias
    torch.testing.assert_close(bent(features), expected)


def test_a_tied_readout_shares_the_matrix_and_keeps_its_own_bias() -> None:
    lookup = LearnedLookup(9, 6, noise=0.0, small=True)
    before = lookup.weight.detach().clone()
    readout = Readout(6, 9, hidden=None, tied=lookup.weight)
    assert readout.output.weight is lookup.weight
    assert torch.equal(before, lookup.weight)  # sharing does not draw it anew
    assert sorted(dict(readout.named_parameters())) == ["output.bias", "output.weight"]

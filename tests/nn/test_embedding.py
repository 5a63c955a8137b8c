"""Token ids to vectors, and features to logits."""

import pytest
import torch
from torch import nn

from seqloom.nn.embedding import Embedder, LearnedLookup, OneHotLookup, Readout
from seqloom.nn.positions import OneHotPositions, Positions


def test_noise_is_added_in_training_only_with_its_standard_deviation() -> None:
    lookup = LearnedLookup(10, 50, noise=0.3, scaled=False).requires_grad_(False)
    tokens = torch.randint(10, (40, 100), generator=torch.Generator().manual_seed(0))
    still = lookup.eval()(tokens)
    assert torch.equal(still, lookup(tokens))
    torch.manual_seed(0)
    noise = lookup.train()(tokens) - still  # 200,000 numbers
    assert float(noise.std()) == pytest.approx(0.3, rel=0.05)
    assert float(noise.mean()) == pytest.approx(0, abs=0.01)
    assert not torch.equal(noise[0, 0], noise[0, 1])


def test_vectors_start_with_standard_deviation_one_scaled_or_not() -> None:
    torch.manual_seed(0)
    for scaled, deviation in [(False, 1.0), (True, 1 / 8)]:
        lookup = LearnedLookup(500, 64, noise=0.0, scaled=scaled).requires_grad_(False)
        assert float(lookup.weight.std()) == pytest.approx(deviation, rel=0.05)
        assert float(lookup(torch.arange(500)[None]).std()) == pytest.approx(1, rel=0.05)


def test_without_noise_training_equals_evaluation() -> None:
    lookup, tokens = LearnedLookup(10, 5, noise=0.0, scaled=False), torch.arange(10)[None]
    assert torch.equal(lookup.train()(tokens), lookup.eval()(tokens))


def test_word_dropout_removes_whole_words_at_its_rate_in_training_only() -> None:
    lookup = LearnedLookup(10, 6, noise=0.0, scaled=False, word_dropout=0.3).requires_grad_(False)
    tokens = torch.randint(10, (100, 100), generator=torch.Generator().manual_seed(0))
    whole = lookup.eval()(tokens)
    torch.manual_seed(0)
    vectors = lookup.train()(tokens)
    is_dropped = (vectors == 0).all(-1)
    assert float(is_dropped.double().mean()) == pytest.approx(0.3, abs=0.02)
    assert torch.equal(vectors[~is_dropped], whole[~is_dropped])
    assert not (whole == 0).all(-1).any()


def test_one_hot_tokens_are_unit_vectors_in_the_precision_of_the_model() -> None:
    lookup = OneHotLookup(5)
    assert torch.equal(lookup(torch.arange(5)[None]), torch.eye(5)[None])
    assert lookup.double()(torch.arange(5)[None]).dtype == torch.float64
    assert not list(lookup.parameters())
    assert not lookup.state_dict()


def test_embedded_tokens_are_dropped_in_training_only() -> None:
    embedder = Embedder(
        LearnedLookup(10, 64, noise=0.0, scaled=False), Positions(), None, dropout=0.5
    )
    tokens = torch.randint(10, (4, 25))
    still = embedder.eval()(tokens)
    assert torch.equal(still, embedder(tokens))
    dropped = embedder.train()(tokens)
    kept = dropped != 0
    assert float(kept.float().mean()) == pytest.approx(0.5, abs=0.05)
    torch.testing.assert_close(dropped[kept], 2 * still[kept])


def test_the_embedder_projects_only_if_its_width_differs_from_that_of_its_parts() -> None:
    def build_embedder(width: int | None) -> Embedder:
        lookup = LearnedLookup(10, 6, noise=0.0, scaled=False)
        return Embedder(lookup, OneHotPositions("append", 4, 4), width, dropout=0.0)

    natural, projected, equal = build_embedder(None), build_embedder(7), build_embedder(10)
    tokens = torch.tensor([[3, 1]])
    assert natural.width == natural(tokens).shape[-1] == 6 + 4
    assert projected.width == projected(tokens).shape[-1] == 7
    assert isinstance(projected.projection, nn.Linear)
    assert isinstance(equal.projection, nn.Identity)
    torch.testing.assert_close(natural(tokens[:, 1:], position_ids=1), natural(tokens)[:, 1:])


def test_a_readout_is_one_linear_layer_or_two_with_a_tanh_between() -> None:
    features = torch.randn(2, 3, 6)
    plain = Readout(6, 9, hidden=None, tied=None)
    expected = features @ plain.output.weight.T + plain.output.bias
    torch.testing.assert_close(plain(features), expected)
    deep = Readout(6, 9, hidden=4, tied=None)
    assert isinstance(deep.hidden_layer, nn.Sequential)
    first = deep.hidden_layer[0]
    assert isinstance(first, nn.Linear)
    hidden = torch.tanh(features @ first.weight.T + first.bias)
    assert hidden.shape == (2, 3, 4)
    expected = hidden @ deep.output.weight.T + deep.output.bias
    torch.testing.assert_close(deep(features), expected)


def test_a_tied_readout_shares_the_matrix_and_has_its_own_bias() -> None:
    lookup = LearnedLookup(9, 6, noise=0.0, scaled=True)
    before = lookup.weight.detach().clone()
    readout = Readout(6, 9, hidden=None, tied=lookup.weight)
    assert readout.output.weight is lookup.weight
    assert torch.equal(before, lookup.weight)  # sharing does not initialise it again
    assert sorted(dict(readout.named_parameters())) == ["output.bias", "output.weight"]

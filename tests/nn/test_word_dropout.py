"""Word dropout: some words are missing while a model learns."""

import pytest
import torch

from seqloom.nn.embedding import LearnedLookup


def test_whole_words_go_in_training_only_and_as_many_as_asked() -> None:
    lookup = LearnedLookup(10, 6, noise=0.0, small=False, word_dropout=0.3).requires_grad_(False)
    tokens = torch.randint(10, (100, 100), generator=torch.Generator().manual_seed(0))
    whole = lookup.eval()(tokens)
    torch.manual_seed(0)
    found = lookup.train()(tokens)
    gone = (found == 0).all(-1)
    assert float(gone.double().mean()) == pytest.approx(0.3, abs=0.02)
    assert torch.equal(found[~gone], whole[~gone])
    assert not (whole == 0).all(-1).any()

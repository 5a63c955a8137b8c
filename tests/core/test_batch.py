"""Padded sequences."""

import torch

from seqloom.core.batch import Padded


def test_the_mask_is_true_at_real_positions_only() -> None:
    padded = Padded(torch.zeros(3, 3, dtype=torch.long), torch.tensor([3, 1, 0]))
    assert padded.mask.tolist() == [[True, True, True], [True, False, False], [False] * 3]

"""Functions that claims measure with."""

from random import Random

import pytest
import torch

from seqloom.lab.claims import alignment, heads, related_languages
from seqloom.lab.claims.related_languages import DIRECTIONS, HELD_OUT, training_directions


def test_a_zipped_word_has_one_letter_of_every_string() -> None:
    source, target = heads.draw_zip_pair(Random(1))
    strings, words = source.split("-"), target.split()
    assert words == ["".join(column) for column in zip(*strings, strict=True)]
    assert (len(strings), len(words)) == (heads.STRINGS, heads.STRING_LENGTH)


def test_only_the_largest_weight_at_the_aligned_token_counts_as_correct() -> None:
    weights = torch.tensor([0.1, 0.7, 0.2])
    correct, wrong = (
        alignment.compare_with_alignment(weights, source_index, row=1) for source_index in (1, 2)
    )
    assert (correct["correct"], wrong["correct"]) == (1.0, 0.0)
    assert (correct["diagonal"], wrong["diagonal"]) == (1.0, 0.0)
    assert correct["weight at +0"] == wrong["weight at -1"] == pytest.approx(0.7)
    assert wrong["weight at +1"] == 0.0  # no token follows the last one


def test_only_the_tested_direction_is_held_out() -> None:
    """Training includes the opposite direction and all other pairs of the two languages."""
    assert set(DIRECTIONS) - set(training_directions(related_languages.ZERO_SHOT)) == {HELD_OUT}
    assert len(DIRECTIONS) == 12

"""Weights as safetensors files."""

from pathlib import Path

import pytest
import torch
from torch import nn

from seqloom.core.errors import StorageError
from seqloom.runs.weights import (
    assign_weights,
    limited_size,
    read_tensors,
    write_tensors,
)


def test_unreadable_file_is_an_error(tmp_path: Path) -> None:
    for data in (b"", b"x" * 100):
        (tmp_path / "x.safetensors").write_bytes(data)
        with pytest.raises(
            StorageError, match=r"is not a readable safetensors file: .+\. Copy the whole run again"
        ):
            read_tensors(tmp_path / "x.safetensors")


def test_weights_are_restored_exactly(tmp_path: Path) -> None:
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    write_tensors(tmp_path / "x.safetensors", dict(first.named_parameters()))
    assign_weights(second, read_tensors(tmp_path / "x.safetensors"), tmp_path / "x.safetensors")
    assert torch.equal(first.weight, second.weight)
    assert torch.equal(first.bias, second.bias)


def test_weights_that_are_no_floating_point_numbers_are_an_error(tmp_path: Path) -> None:
    weights = {"weight": torch.zeros(2, 3), "bias": torch.zeros(2, dtype=torch.int32)}
    with pytest.raises(StorageError, match=r"'bias' has the type torch\.int32, expected a float"):
        assign_weights(nn.Linear(3, 2), weights, tmp_path)


def test_weights_that_do_not_match_the_model_are_an_error_that_says_what_to_do(
    tmp_path: Path,
) -> None:
    weights = {"weight": torch.zeros(9, 3), "new": torch.zeros(1)}
    with pytest.raises(StorageError) as caught:
        assign_weights(nn.Linear(3, 2), weights, tmp_path)
    assert str(caught.value).splitlines() == [
        f"{tmp_path}: does not match the configuration of the model:",
        "  'bias' is missing",
        "  'new' is unexpected",
        "  'weight' is (9, 3), expected (2, 3)",
        "Copy the whole run again from its source, or restore it from a backup. If another version "
        "of seqloom wrote the run, use that version; `seqloom info` prints it.",
    ]


def test_a_model_much_larger_than_its_weights_is_not_built(tmp_path: Path) -> None:
    weights = {"weight": torch.zeros(2, 3)}
    for width in (1_000, 10**9):
        with (
            pytest.raises(
                StorageError,
                match=r"(has 6 values, and the model has more|cannot build .* more memory).*Copy the "
                r"whole run again.*use that version",
            ),
            limited_size(weights, tmp_path),
        ):
            nn.Linear(width, 2 * width)
    with limited_size(weights, tmp_path):
        nn.Linear(300, 300)
    nn.Linear(1_000, 1_001)  # outside the context, the size is not limited

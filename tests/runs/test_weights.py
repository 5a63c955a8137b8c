"""Weights as safetensors files."""

from pathlib import Path

import pytest
import torch
from torch import nn

from seqloom.core.errors import StorageError
from seqloom.runs.folder.weights import assign_weights, read_tensors, write_tensors


def test_unreadable_file_is_an_error(tmp_path: Path) -> None:
    for data in (b"", b"x" * 100):
        (tmp_path / "x.safetensors").write_bytes(data)
        with pytest.raises(StorageError, match="is not a readable safetensors file"):
            read_tensors(tmp_path / "x.safetensors")


def test_weights_are_restored_exactly(tmp_path: Path) -> None:
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    write_tensors(tmp_path / "x.safetensors", dict(first.named_parameters()))
    assign_weights(second, read_tensors(tmp_path / "x.safetensors"), tmp_path / "x.safetensors")
    assert torch.equal(first.weight, second.weight)
    assert torch.equal(first.bias, second.bias)

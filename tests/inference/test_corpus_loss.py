"""The loss of a split, summed over batches."""

from pathlib import Path
from typing import Any

import pytest
import torch

from seqloom.core.batch import Source
from seqloom.inference.run import load
from seqloom.models.interface import Memory
from seqloom.models.seq2seq import Model
from seqloom.training.loop import train
from support.tiny_runs import tiny_config

pytestmark = pytest.mark.slow


def test_halving_does_not_change_the_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(tiny_config(), tmp_path / "run")
    run = load(tmp_path / "run")
    expected = run.evaluate("dev")
    encode, sizes = Model.encode, []

    def limited_encode(self: Model, source: Source | None, size: int, *more: Any) -> Memory:
        sizes.append(size)
        if size > 5:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return encode(self, source, size, *more)

    monkeypatch.setattr(Model, "encode", limited_encode)
    for first, second in zip(expected.scores, run.evaluate("dev").scores, strict=True):
        assert first.value == pytest.approx(second.value, rel=1e-5), first.name
    assert max(sizes) > 5, "no batch exceeded the capacity"

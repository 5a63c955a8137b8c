"""The training loop of Hugging Face Marian, run on a CPU with a small substitute model."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bench.gpu import marian
from bench.gpu.marian import BatchShape, Size, time_training


class SubstituteModel(nn.Module):
    """Has the arguments and the loss of Marian, and records the shapes of its batches."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 4)
        self.shapes: list[tuple[int, ...]] = []
        self.cudnn: list[bool] = []

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Any:
        self.shapes.append((*input_ids.shape, labels.shape[1]))
        self.cudnn.append(torch.backends.cuda.cudnn_sdp_enabled())
        assert attention_mask.shape == input_ids.shape
        return SimpleNamespace(loss=self.embedding(input_ids).sum() + self.embedding(labels).sum())


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> SubstituteModel:
    substitute = SubstituteModel(50)
    monkeypatch.setattr(marian, "build_marian", lambda size: substitute)
    return substitute


SHAPES = [BatchShape(2, 3, 4), BatchShape(5, 6, 7)]


def test_every_pass_trains_on_every_shape(model: SubstituteModel) -> None:
    before = model.embedding.weight.detach().clone()
    speeds = time_training(SHAPES, Size(50), "cpu", passes=3)
    assert model.shapes == [(2, 3, 4), (5, 6, 7)] * 3
    assert len(speeds) == 3
    assert all(speed > 0 for speed in speeds)
    assert not torch.equal(before, model.embedding.weight)


@pytest.mark.parametrize("enabled", [True, False])
def test_cudnn_attention_is_set_during_training_and_restored(
    model: SubstituteModel, enabled: bool
) -> None:
    before = torch.backends.cuda.cudnn_sdp_enabled()
    time_training(SHAPES, Size(50), "cpu", passes=1, cudnn_attention=enabled)
    assert model.cudnn == [enabled, enabled]
    assert torch.backends.cuda.cudnn_sdp_enabled() == before

"""The training loop of Hugging Face Marian, run on a CPU with a small substitute model."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bench import marian
from bench.marian import BatchShape, MarianSize, TrainingSettings, time_training


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
    passes = time_training(SHAPES, MarianSize(50), "cpu", TrainingSettings(passes=3))
    assert model.shapes == [(2, 3, 4), (5, 6, 7)] * 3
    assert [timed.target_tokens for timed in passes] == [2 * 4 + 5 * 7] * 3
    assert all(timed.seconds > 0 and timed.tokens_per_second > 0 for timed in passes)
    assert not torch.equal(before, model.embedding.weight)


@pytest.mark.parametrize("enabled", [True, False])
def test_cudnn_attention_is_set_during_training_and_restored(
    model: SubstituteModel, enabled: bool
) -> None:
    before = torch.backends.cuda.cudnn_sdp_enabled()
    settings = TrainingSettings(1, cudnn_attention=enabled)
    time_training(SHAPES, MarianSize(50), "cpu", settings)
    assert model.cudnn == [enabled, enabled]
    assert torch.backends.cuda.cudnn_sdp_enabled() == before

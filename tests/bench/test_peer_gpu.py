"""The peer's loop for GPUs, run on a CPU with a model in Marian's place."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bench import peer_gpu
from bench.peer_gpu import MarianSize, Settings, Shape, time_huggingface_loop


class Stand(nn.Module):
    """Takes what Marian takes and has a loss."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, 4)
        self.seen: list[tuple[int, ...]] = []
        self.cudnn: list[bool] = []

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Any:
        self.seen.append((*input_ids.shape, labels.shape[1]))
        self.cudnn.append(torch.backends.cuda.cudnn_sdp_enabled())
        assert attention_mask.shape == input_ids.shape
        return SimpleNamespace(loss=self.table(input_ids).sum() + self.table(labels).sum())


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Stand:
    model = Stand(50)
    monkeypatch.setattr(peer_gpu, "marian", lambda size: model)
    return model


SHAPES = [Shape(2, 3, 4), Shape(5, 6, 7)]


def test_every_pass_sees_every_shape(stand: Stand) -> None:
    before = stand.table.weight.detach().clone()
    passes = time_huggingface_loop(SHAPES, MarianSize(50), "cpu", Settings(passes=3))
    assert stand.seen == [(2, 3, 4), (5, 6, 7)] * 3
    assert [one.target_tokens for one in passes] == [2 * 4 + 5 * 7] * 3
    assert all(one.seconds > 0 and one.tokens_per_second > 0 for one in passes)
    assert not torch.equal(before, stand.table.weight)


@pytest.mark.parametrize("wanted", [True, False])
def test_cudnn_attention_is_switched_and_put_back(stand: Stand, wanted: bool) -> None:
    before = torch.backends.cuda.cudnn_sdp_enabled()
    time_huggingface_loop(SHAPES, MarianSize(50), "cpu", Settings(1, cudnn_attention=wanted))
    assert stand.cudnn == [wanted, wanted]
    assert torch.backends.cuda.cudnn_sdp_enabled() == before

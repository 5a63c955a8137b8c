"""Training on a long text: captured steps, resumed runs, ranks."""

from pathlib import Path

import pytest
import torch

from seqloom.core.errors import ConfigError
from seqloom.data.batching.stream import BatchStream
from seqloom.training.distributed import World
from seqloom.training.event_log import Event
from seqloom.training.loop import train
from seqloom.training.setup import open_session
from support.tiny_runs import checkpoint_digests, read_events
from support.tiny_texts import long_text_config

pytestmark = pytest.mark.slow

DEVICES = ["cpu", *["cuda"] * torch.cuda.is_available()]
TRANSFORMER = (
    "model.decoder={kind='transformer', width=16, layers=1, feedforward=16, attention={heads=2}}"
)
REGULARISED_LSTM = (
    "model.decoder.layers=2",
    "model.decoder.dropout=0.2",
    "model.decoder.locked_dropout=true",
    "model.decoder.weight_dropout=0.2",
    "model.tie=output",
)
"""A recurrent language model with every kind of dropout and tied embeddings."""


@pytest.mark.parametrize("changes", [REGULARISED_LSTM, (TRANSFORMER,)], ids=["lstm", "transformer"])
def test_a_run_resumed_in_its_second_epoch_ends_bit_equal(
    tmp_path: Path, changes: tuple[str, ...]
) -> None:
    settings = ("training.steps=25", "training.checkpoint_every=5", *changes)
    config = long_text_config(tmp_path, *settings)
    train(config, tmp_path / "straight")

    def stop(event: Event) -> None:
        if event.kind == "checkpoint" and event.step == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "stopped", report=stop)
    train(config, tmp_path / "stopped", resume=True)
    assert checkpoint_digests(tmp_path / "stopped") == checkpoint_digests(tmp_path / "straight")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("changes", [REGULARISED_LSTM, (TRANSFORMER,)], ids=["lstm", "transformer"])
def test_captured_steps_reduce_the_dev_loss(
    tmp_path: Path, changes: tuple[str, ...], device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU, one CUDA graph is enough: all batches have the same shape."""
    monkeypatch.setattr("seqloom.training.loop.best_device", lambda: torch.device(device))
    train(long_text_config(tmp_path, "training.loop=captured", *changes), tmp_path / "run")
    first, last = (line for line in read_events(tmp_path / "run") if line["event"] == "evaluate")
    assert last["loss"] < first["loss"] < 3


def test_two_ranks_see_every_window_once(tmp_path: Path) -> None:
    config = long_text_config(tmp_path)
    whole = open_session(config, tmp_path / "run", False, World(0, 1, torch.device("cpu")), _ignore)
    whole.event_log.close()
    corpus, layout = whole.stream.corpus, whole.stream.layout
    ranks = [BatchStream(corpus, layout, 1, rank, 2) for rank in range(2)]
    batches = whole.stream.batches_in_shard(0) // 2
    by_ranks = [next(stream).targets.values for _ in range(batches) for stream in ranks]
    by_one = [next(whole.stream).targets.values for _ in range(2 * batches)]
    assert all(torch.equal(a, b) for a, b in zip(by_ranks, by_one, strict=True))


def test_a_window_longer_than_a_batch_is_rejected_without_creating_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a window of 24 tokens is longer than a whole batch"):
        train(long_text_config(tmp_path, "training.batch_tokens=20"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def _ignore(event: Event) -> None:
    """Discard the event."""

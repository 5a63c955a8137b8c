"""PrefetchStream returns the batches of the stream that it prefetches from."""

import threading
import time
from itertools import islice
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.config.schema.corpora import SyntheticConfig, TsvConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import DataError
from seqloom.data.batching.layout import PaddedLayout
from seqloom.data.batching.packing import PackedLayout
from seqloom.data.batching.prefetch import (
    MAX_PREFETCHED,
    MAX_PREFETCHED_BYTES,
    MIN_PREFETCHED,
    PrefetchStream,
    queue_size,
)
from seqloom.data.batching.stream import BatchStream
from seqloom.data.corpus.corpus import Corpus, build_corpus
from seqloom.data.corpus.dataset import IntArray
from seqloom.data.modalities.text import TextModality
from seqloom.data.preparation.request import CorpusRequest
from seqloom.text.build import train_tokenizer


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    letters = train_tokenizer(CharactersConfig(), ["abcdefghijklmnopqrstuvwxyz"], (), False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("prefetch")))
        synthetic = SyntheticConfig(task="sort", examples=120)
        data = DataConfig(train=synthetic, dev=synthetic)
        return build_corpus(CorpusRequest(data, "train", TextModality(letters), letters))


def unchanged(batch: Batch) -> Batch:
    return batch


@settings(deadline=None, max_examples=25)
@given(before=st.integers(0, 12), target=st.integers(0, 12))
def test_prefetched_batches_equal_plain_ones_from_any_position(
    corpus: Corpus, before: int, target: int
) -> None:
    layout = PackedLayout(200, 40)
    plain = BatchStream(corpus, layout, 3)
    stream = PrefetchStream(BatchStream(corpus, layout, 3), unchanged)
    for _ in range(before):
        next(stream)
    plain.position = stream.position = (target // 5, target % 5)
    for _ in range(6):
        assert stream.position == plain.position
        batch, expected = next(stream), next(plain)
        for tensor, expected_tensor in zip(batch.tensors(), expected.tensors(), strict=True):
            assert torch.equal(tensor, expected_tensor)
    stream.close()


def test_prefetching_keeps_the_temperature(tmp_path: Path) -> None:
    """With a temperature, an epoch has other batches than without."""
    (tmp_path / "large.tsv").write_text("abc\tcba\n" * 40)
    (tmp_path / "small.tsv").write_text("a\ta\n" * 4)
    files = tuple(TsvConfig(path=f"{name}.tsv") for name in ("large", "small"))
    letters = train_tokenizer(CharactersConfig(), ["abc"], (), False)
    data = DataConfig(folder=str(tmp_path), train=files, dev=files[0])
    corpus = build_corpus(CorpusRequest(data, "train", TextModality(letters), letters))
    plain = BatchStream(corpus, PaddedLayout(16), 3, temperature=100)
    stream = PrefetchStream(BatchStream(corpus, PaddedLayout(16), 3, temperature=100), unchanged)
    without_temperature = BatchStream(corpus, PaddedLayout(16), 3)
    assert stream.batches_in_shard(0) == plain.batches_in_shard(0)
    assert stream.batches_in_shard(0) != without_temperature.batches_in_shard(0)
    assert stream.examples_from((0, 0), 3) == plain.examples_from((0, 0), 3)


@pytest.mark.parametrize("is_prefetched", [False, True])
def test_close_ends_all_threads(
    corpus: Corpus, is_prefetched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqloom.data.batching.stream.SHARD_SIZE", 40)
    monkeypatch.setattr("seqloom.data.batching.stream.BLOCK_SIZE", 10)
    before = set(threading.enumerate())
    stream = BatchStream(corpus, PaddedLayout(200), 3)
    if is_prefetched:
        stream = PrefetchStream(stream, unchanged)
    assert stream.shards_per_epoch > 1
    assert stream.batches_in_shard(0) > 0
    next(stream)
    threads = set(threading.enumerate()) - before
    assert threads
    stream.close()
    for thread in threads:
        thread.join(timeout=5)
        assert not thread.is_alive()


def test_exception_in_the_thread_is_raised_by_next(corpus: Corpus) -> None:
    def fail(batch: Batch) -> Batch:
        raise DataError("no")

    stream = PrefetchStream(BatchStream(corpus, PackedLayout(200, 40), 3), fail)
    errors: list[str] = []

    def take_twice() -> None:
        for _ in range(2):
            try:
                next(stream)
            except DataError as error:
                errors.append(str(error))

    taker = threading.Thread(target=take_twice, daemon=True)
    taker.start()
    taker.join(timeout=10)
    assert errors == ["no", "no"]
    stream.close()


def batch_of(size: int) -> Batch:
    """A batch of about 2 · size bytes."""
    padded = Padded(torch.zeros(1, size, dtype=torch.uint8), torch.zeros(1, dtype=torch.uint8))
    return Batch(None, padded, padded)


def test_few_large_and_many_small_batches_are_prefetched() -> None:
    assert queue_size(batch_of(1000)) == MAX_PREFETCHED
    assert queue_size(batch_of(MAX_PREFETCHED_BYTES)) == MIN_PREFETCHED
    assert queue_size(batch_of(MAX_PREFETCHED_BYTES // 40)) == 19  # inputs and targets


@pytest.mark.parametrize("large", [0, 3])
def test_many_batches_are_prefetched_only_if_all_are_small(corpus: Corpus, large: int) -> None:
    """large: number of large batches before the small ones"""
    prepared: list[Batch] = []

    def prepare(batch: Batch) -> Batch:
        prepared.append(batch_of(MAX_PREFETCHED_BYTES if len(prepared) < large else 1000))
        return prepared[-1]

    stream = PrefetchStream(BatchStream(corpus, PaddedLayout(30), 3), prepare)
    stream.start()
    expected = MIN_PREFETCHED if large else MAX_PREFETCHED
    deadline = time.monotonic() + 60
    while len(prepared) <= expected and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    assert len(prepared) == expected + 1  # the thread holds one batch until the queue has space
    stream.close()


def test_the_thread_plans_the_batches_and_a_resumed_stream_plans_once(corpus: Corpus) -> None:
    planned: list[tuple[int, str]] = []

    class RecordingLayout(PackedLayout):
        def plan(
            self, sources: IntArray | None, targets: IntArray, seed: int, epoch: int
        ) -> list[IntArray]:
            planned.append((epoch, threading.current_thread().name))
            return super().plan(sources, targets, seed, epoch)

    stream = PrefetchStream(BatchStream(corpus, RecordingLayout(2000, 40), 3), unchanged)
    stream.position = (4, 1)
    stream.start()
    next(stream)
    stream.close()
    epochs = [epoch for epoch, _ in planned]
    assert epochs[0] == 4
    assert len(set(epochs)) == len(epochs)
    assert threading.main_thread().name not in {thread for _, thread in planned}


def test_batches_are_prepared_before_the_first_one_is_requested(corpus: Corpus) -> None:
    is_prepared = threading.Event()

    def prepare(batch: Batch) -> Batch:
        is_prepared.set()
        return batch

    layout = PaddedLayout(200)
    stream = PrefetchStream(BatchStream(corpus, layout, 3), prepare)
    assert not is_prepared.wait(0.1)
    stream.start()
    assert is_prepared.wait(60)
    stream.start()
    for expected, batch in zip(islice(BatchStream(corpus, layout, 3), 9), stream, strict=False):
        assert torch.equal(batch.targets.values, expected.targets.values)
    stream.close()

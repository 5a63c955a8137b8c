"""BatchStream: resumable, shared among ranks, complete epochs."""

import hashlib
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.config.schema.corpora import SyntheticConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.core.batch import Batch
from seqloom.core.errors import DataError
from seqloom.data.batching.bucketing import BucketLayout
from seqloom.data.batching.layout import BatchLayout, PaddedLayout
from seqloom.data.batching.packing import PackedLayout
from seqloom.data.batching.stream import BATCH_RULES, BatchStream
from seqloom.data.corpus.corpus import Corpus, build_corpus
from seqloom.data.modalities.text import TextModality
from seqloom.data.preparation.request import CorpusRequest
from seqloom.text.build import train_tokenizer


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    letters = train_tokenizer(CharactersConfig(), ["abcdefghijklmnopqrstuvwxyz"], (), False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("stream")))
        synthetic = SyntheticConfig(task="reverse", examples=200)
        data = DataConfig(train=synthetic, dev=synthetic)
        return build_corpus(CorpusRequest(data, "train", TextModality(letters), letters))


def equal(first: Batch, second: Batch) -> bool:
    assert first.source is not None
    assert second.source is not None
    return torch.equal(first.source.values, second.source.values) and torch.equal(
        first.targets.values, second.targets.values
    )


@pytest.fixture(scope="module", params=[1, 4], ids=["one shard", "four shards"], autouse=True)
def shards(request: pytest.FixtureRequest) -> Iterator[int]:
    """Number of shards per epoch: every test runs with one and with several."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param > 1:
            patch.setattr("seqloom.data.batching.stream.SHARD_SIZE", 64)
            patch.setattr("seqloom.data.batching.stream.BLOCK_SIZE", 8)
        yield request.param


@settings(deadline=None)
@given(before=st.integers(0, 60), seed=st.integers(0, 3), ranks=st.integers(1, 3))
def test_resumed_stream_equals_an_uninterrupted_one(
    corpus: Corpus, before: int, seed: int, ranks: int
) -> None:
    uninterrupted = BatchStream(corpus, PaddedLayout(150), seed, ranks - 1, ranks)
    for _ in range(before):
        next(uninterrupted)
    resumed = BatchStream(corpus, PaddedLayout(150), seed, ranks - 1, ranks)
    resumed.position = uninterrupted.position
    for _ in range(12):
        assert equal(next(uninterrupted), next(resumed))
        assert uninterrupted.position == resumed.position


@pytest.mark.parametrize("ranks", [2, 3, 7])
def test_ranks_divide_the_batches_without_gap_or_overlap(corpus: Corpus, ranks: int) -> None:
    single = BatchStream(corpus, PaddedLayout(150), 1)
    streams = [BatchStream(corpus, PaddedLayout(150), 1, rank, ranks) for rank in range(ranks)]
    for _ in range(3 * single.batches_in_shard(0) // ranks):
        for stream in streams:
            assert equal(next(stream), next(single))
        assert {stream.position for stream in streams} == {single.position}


def test_epoch_contains_every_example_once_in_an_order_of_its_own(
    corpus: Corpus, shards: int
) -> None:
    stream = BatchStream(corpus, PaddedLayout(150), 1)
    assert stream.shards_per_epoch == shards
    epochs = []
    for epoch in range(2):
        rows: list[list[int]] = []
        while stream.epoch_of(stream.position) == epoch:
            batch = next(stream)
            rows.extend(batch.targets.values.tolist())
        epochs.append([[id_ for id_ in row if id_] for row in rows])
    assert len(epochs[0]) == len(corpus)
    assert sorted(epochs[0]) == sorted(epochs[1])
    assert epochs[0] != epochs[1]


def test_position_past_the_end_of_a_shard_is_in_the_next(corpus: Corpus) -> None:
    past, next_shard = (BatchStream(corpus, PaddedLayout(150), 1) for _ in range(2))
    past.position, next_shard.position = (0, past.batches_in_shard(0) + 2), (1, 2)
    assert equal(next(past), next(next_shard))
    assert past.position == next_shard.position


def test_examples_from_lists_the_examples_of_the_next_batches(corpus: Corpus) -> None:
    stream = BatchStream(corpus, PaddedLayout(150), 1)
    stream.position = (0, stream.batches_in_shard(0) - 1)  # the second batch is in the next shard
    listed = stream.examples_from(stream.position, 2)
    rows = [row for _ in range(2) for row in next(stream).targets.values.tolist()]
    expected = sorted([id_ for id_ in row if id_][:-1] for row in rows)
    assert sorted(corpus.target(index).tolist() for index in listed) == expected


def test_error_for_an_example_above_the_budget_names_its_index_in_the_corpus(
    corpus: Corpus,
) -> None:
    longest = int(corpus.target_lengths.max())
    worst = int(corpus.target_lengths.argmax())
    BatchStream(corpus, PaddedLayout(longest + 1), 1)
    with pytest.raises(DataError) as info:
        BatchStream(corpus, PaddedLayout(longest), 1)
    assert f"example {worst} (counted from 0) has {longest + 1} tokens" in str(info.value)
    assert f"training.batch_tokens is {longest}; raise it to {longest + 1}" in str(info.value)


PLANS: dict[str, tuple[BatchLayout, str]] = {
    "padded": (PaddedLayout(300), "ab5e1ebdb4206aa1"),
    "packed": (PackedLayout(320, 64), "6d29d0718b33e527"),
    "bucketed": (BucketLayout(300), "b7b55cc01b576f0d"),
}
"""For each layout, the SHA-256 of its batches, shortened. The digests belong to BATCH_RULES = 2."""


@pytest.mark.parametrize("name", PLANS)
def test_batches_change_only_with_the_version_of_their_rules(name: str) -> None:
    """A run that is resumed by another version of seqloom must get the same batches, or a note.

    If this test fails because the batches should change, raise BATCH_RULES and replace the digests.
    """
    layout, digest = PLANS[name]
    numbers = np.random.default_rng(0)
    sources, targets = numbers.integers(1, 60, 500), numbers.integers(1, 60, 500)
    plan = layout.plan(sources, targets, 1, 0)
    joined = b"|".join(batch.astype("<i8").tobytes() for batch in plan)
    assert hashlib.sha256(joined).hexdigest()[:16] == digest
    assert BATCH_RULES == 2


def test_a_stream_of_no_examples_is_refused() -> None:
    with pytest.raises(AssertionError, match="at least one example"):
        BatchStream([], PaddedLayout(10), 1)  # type: ignore[arg-type]

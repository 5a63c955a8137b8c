from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.config.schema.corpora import SyntheticConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.core.batch import Batch
from seqloom.core.errors import DataError
from seqloom.data.corpus import Corpus, CorpusRequest, build_corpus
from seqloom.data.layout import PaddedLayout
from seqloom.data.stream import BatchStream
from seqloom.text.build import train_tokenizer


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    letters = train_tokenizer(CharactersConfig(), ["abcdefghijklmnopqrstuvwxyz"], (), False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("stream")))
        synthetic = SyntheticConfig(task="reverse", examples=200)
        data = DataConfig(train=synthetic, dev=synthetic)
        return build_corpus(CorpusRequest(data, "train", letters, letters))


def same(one: Batch, other: Batch) -> bool:
    assert one.source is not None
    assert other.source is not None
    return torch.equal(one.source.values, other.source.values) and torch.equal(
        one.targets.values, other.targets.values
    )


@pytest.fixture(scope="module", params=["whole epochs", "rounds"], autouse=True)
def rounds(request: pytest.FixtureRequest) -> Iterator[int]:
    """How many rounds an epoch has: all laws hold for one and for several."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "rounds":
            patch.setattr("seqloom.data.rounds.ROUND", 64)
            patch.setattr("seqloom.data.rounds.BLOCK", 8)
        yield 1 if request.param == "whole epochs" else 4


@settings(deadline=None)
@given(before=st.integers(0, 60), seed=st.integers(0, 3), ranks=st.integers(1, 3))
def test_a_stream_resumed_anywhere_continues_as_if_it_had_never_stopped(
    corpus: Corpus, before: int, seed: int, ranks: int
) -> None:
    straight = BatchStream(corpus, PaddedLayout(150), seed, ranks - 1, ranks)
    for _ in range(before):
        next(straight)
    resumed = BatchStream(corpus, PaddedLayout(150), seed, ranks - 1, ranks)
    resumed.position = straight.position
    for _ in range(12):
        assert same(next(straight), next(resumed))
        assert straight.position == resumed.position


@pytest.mark.parametrize("ranks", [2, 3, 7])
def test_ranks_share_the_batches_of_one_without_gap_or_overlap(corpus: Corpus, ranks: int) -> None:
    alone = BatchStream(corpus, PaddedLayout(150), 1)
    together = [BatchStream(corpus, PaddedLayout(150), 1, rank, ranks) for rank in range(ranks)]
    for _ in range(3 * alone.batches_in(0) // ranks):
        for stream in together:
            assert same(next(stream), next(alone))
        assert {stream.position for stream in together} == {alone.position}


def test_an_epoch_sees_every_example_once_and_the_next_in_another_order(
    corpus: Corpus, rounds: int
) -> None:
    stream = BatchStream(corpus, PaddedLayout(150), 1)
    assert stream.rounds == rounds
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


def test_a_position_past_the_end_of_a_round_is_in_the_next(corpus: Corpus, tmp_path: Path) -> None:
    stream = BatchStream(corpus, PaddedLayout(150), 1)
    stream.position = (0, stream.batches_in(0) + 2)
    assert stream.position == (1, 2)


def test_the_examples_of_batches_are_those_that_the_batches_hold(corpus: Corpus) -> None:
    stream = BatchStream(corpus, PaddedLayout(150), 1)
    stream.position = (0, stream.batches_in(0) - 1)  # the second batch is in the next round
    named = stream.examples_from(stream.position, 2)
    rows = [row for _ in range(2) for row in next(stream).targets.values.tolist()]
    held = sorted([id_ for id_ in row if id_][:-1] for row in rows)
    assert sorted(corpus.target(one).tolist() for one in named) == held


def test_a_budget_below_one_example_is_refused_before_any_batch_by_its_place_in_the_corpus(
    corpus: Corpus,
) -> None:
    longest = int(corpus.target_lengths.max())
    worst = int(corpus.target_lengths.argmax())
    BatchStream(corpus, PaddedLayout(longest + 1), 1)
    with pytest.raises(DataError) as info:
        BatchStream(corpus, PaddedLayout(longest), 1)
    assert f"example {worst} (counted from 0) has {longest + 1} tokens" in str(info.value)
    assert f"training.batch_tokens is {longest}; raise it to {longest + 1}" in str(info.value)

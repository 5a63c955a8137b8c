from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.data import DataConfig, SyntheticConfig
from seqloom.config.text import CharactersConfig
from seqloom.core.sequences import Batch
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


def test_an_epoch_sees_every_example_once_and_the_next_in_another_order(corpus: Corpus) -> None:
    stream = BatchStream(corpus, PaddedLayout(150), 1)
    epochs = []
    for epoch in range(2):
        rows: list[list[int]] = []
        while stream.position[0] == epoch:
            batch = next(stream)
            rows.extend(batch.targets.values.tolist())
        epochs.append([[id_ for id_ in row if id_] for row in rows])
    assert len(epochs[0]) == len(corpus)
    assert sorted(epochs[0]) == sorted(epochs[1])
    assert epochs[0] != epochs[1]


def test_a_position_past_the_end_of_an_epoch_is_in_the_next(corpus: Corpus, tmp_path: Path) -> None:
    stream = BatchStream(corpus, PaddedLayout(150), 1)
    stream.position = (0, stream.batches_in(0) + 2)
    assert stream.position == (1, 2)

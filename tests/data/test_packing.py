"""Batches of fixed shapes hold every pair once, whole, and say where it lies."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.config.schema.corpora import SyntheticConfig, TsvConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.core.batch import Batch, Packing, Padded
from seqloom.core.errors import DataError
from seqloom.data.ahead import AheadStream
from seqloom.data.corpus import Corpus, CorpusRequest, build_corpus
from seqloom.data.layout import Layout, PaddedLayout
from seqloom.data.packing import BucketLayout, PackedLayout, row_length
from seqloom.data.stream import BatchStream
from seqloom.text.build import train_tokenizer
from seqloom.text.vocabulary import END, PAD, START

calm = settings(deadline=None, max_examples=25)
LAYOUTS = st.one_of(
    st.builds(
        lambda rows, length: PackedLayout(rows * length, length),
        st.integers(1, 6),
        st.integers(12, 40),
    ),
    st.builds(BucketLayout, st.integers(14, 90)),
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    letters = train_tokenizer(CharactersConfig(), ["abcdefghijklmnopqrstuvwxyz"], (), False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("packing")))
        synthetic = SyntheticConfig(task="sort", examples=120)
        data = DataConfig(train=synthetic, dev=synthetic)
        return build_corpus(CorpusRequest(data, "train", letters, letters))


def batches(layout: Layout, corpus: Corpus, epoch: int = 0) -> list[Batch]:
    plan = layout.plan(corpus.source_lengths, corpus.target_lengths, 1, epoch)
    return [layout.gather(corpus, indices) for indices in plan]


Pair = tuple[tuple[int, ...], ...]


def pairs_of(batch: Batch) -> list[Pair]:
    """(source, inputs, targets) of every pair that lies in a batch."""
    assert isinstance(batch.source, Padded)
    packing = batch.packing or _one_a_row(batch)
    found = []
    for row in range(batch.size):
        for pair in range(1, int(packing.target_pairs[row].max()) + 1):
            source = batch.source.values[row][packing.source_pairs[row] == pair]
            target = packing.target_pairs[row] == pair
            sides = (source, batch.inputs.values[row][target], batch.targets.values[row][target])
            found.append(tuple(tuple(side.tolist()) for side in sides))
    return found


def _one_a_row(batch: Batch) -> Packing:
    assert isinstance(batch.source, Padded)
    real = (batch.targets.lengths > 0).unsqueeze(1)
    source, target = (batch.source.mask & real).long(), batch.targets.mask.long()
    return Packing(source, target, source, target)


@calm
@given(layout=LAYOUTS)
def test_every_pair_lies_in_one_batch_whole(corpus: Corpus, layout: Layout) -> None:
    found = Counter(pair for batch in batches(layout, corpus) for pair in pairs_of(batch))
    expected = Counter(
        (
            (*corpus.source(i).tolist(), END),
            (START, *corpus.target(i).tolist()),
            (*corpus.target(i).tolist(), END),
        )
        for i in range(len(corpus))
    )
    assert found == expected


@calm
@given(layout=LAYOUTS)
def test_shapes_are_few_and_the_budget_is_kept(corpus: Corpus, layout: Layout) -> None:
    made = batches(layout, corpus)
    assert all(batch.targets.values.numel() <= layout.budget for batch in made)  # type: ignore[attr-defined]
    assert all(batch.source.values.shape == batch.targets.values.shape for batch in made)  # type: ignore[union-attr]
    assert len({batch.targets.values.shape for batch in made}) <= 5


@calm
@given(layout=LAYOUTS)
def test_what_no_pair_fills_is_padding(corpus: Corpus, layout: Layout) -> None:
    for batch in batches(layout, corpus):
        answers = sum(len(pair[2]) for pair in pairs_of(batch))
        assert batch.num_targets == answers
        assert int((batch.targets.values != PAD).sum()) == answers
        assert torch.equal(batch.targets.mask, batch.targets.values != PAD)


def test_positions_count_from_the_beginning_of_each_pair(corpus: Corpus) -> None:
    for batch in batches(PackedLayout(120, 40), corpus):
        assert batch.packing is not None
        starts = batch.inputs.values == START
        assert torch.equal(starts, (batch.packing.target_positions == 0) & (batch.inputs.mask))
        within = batch.packing.target_positions[:, 1:] - batch.packing.target_positions[:, :-1]
        assert (within[~starts[:, 1:] & batch.inputs.mask[:, 1:]] == 1).all()


def test_a_pair_sees_itself_and_its_own_past_alone() -> None:
    pairs = torch.tensor([[1, 1, 2, 0]])
    packing = Packing(pairs, pairs, pairs, pairs)
    assert packing.source_mask[0, 0].int().tolist() == [
        [1, 1, 0, 0],
        [1, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ]
    assert packing.target_mask[0, 0].int().tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ]


@given(st.lists(st.integers(1, 4), min_size=1), st.lists(st.integers(1, 4), min_size=1))
def test_no_position_looks_at_nothing(sources: list[int], targets: list[int]) -> None:
    """Not even padding beside a row that is full of sources: a softmax over nothing is no number."""
    pairs = min(len(sources), len(targets))
    numbers = torch.arange(1, pairs + 1)
    source = numbers.repeat_interleave(torch.tensor(sources[:pairs])).unsqueeze(0)
    target = numbers.repeat_interleave(torch.tensor(targets[:pairs])).unsqueeze(0)
    target = torch.nn.functional.pad(target, (0, 2))
    packing = Packing(source, target, source, target)
    for mask in (packing.source_mask, packing.target_mask, packing.cross_mask):
        assert mask.any(dim=-1).all()
    real = target[0] > 0
    assert torch.equal(packing.cross_mask[0, 0, real], target[0, real, None] == source[0])


def test_rows_of_many_pairs_are_nearly_full() -> None:
    generator = np.random.default_rng(0)
    lengths = generator.integers(5, 30, 20_000)
    layout = PackedLayout(4096, row_length(lengths, lengths))
    plan = layout.plan(lengths, lengths, 0, 0)
    assert int((lengths + 1).sum()) > 0.95 * 4096 * (len(plan) - 1)


def test_epochs_differ_and_the_same_epoch_does_not(corpus: Corpus) -> None:
    for layout in (PackedLayout(120, 40), BucketLayout(120)):
        first, again, second = (
            [pairs_of(batch) for batch in batches(layout, corpus, epoch)] for epoch in (0, 0, 1)
        )
        assert first == again
        assert first != second


@pytest.mark.parametrize("layout", [PackedLayout(8, 8), BucketLayout(8)])
def test_a_pair_longer_than_a_batch_is_named(corpus: Corpus, layout: Layout) -> None:
    with pytest.raises(
        DataError, match=r"has \d+ tokens, and training.batch_tokens is 8; raise it"
    ):
        layout.plan(corpus.source_lengths, corpus.target_lengths, 0, 0)


@calm
@given(before=st.integers(0, 12), moves=st.integers(0, 12))
def test_a_stream_made_ahead_gives_the_same_batches_from_any_place(
    corpus: Corpus, before: int, moves: int
) -> None:
    layout = PackedLayout(200, 40)
    plain = BatchStream(corpus, layout, 3)
    stream = AheadStream(BatchStream(corpus, layout, 3), lambda batch: batch)
    for _ in range(before):
        next(stream)
    plain.position = stream.position = (moves // 5, moves % 5)
    for _ in range(6):
        assert stream.position == plain.position
        one, other = next(stream), next(plain)
        for tensor, same in zip(one.tensors(), other.tensors(), strict=True):
            assert torch.equal(tensor, same)
    stream.close()


def test_a_stream_made_ahead_draws_parts_as_the_stream_does(tmp_path: Path) -> None:
    """Where one part is drawn more often than it is large, epochs have other batches."""
    (tmp_path / "long.tsv").write_text("abc\tcba\n" * 40)
    (tmp_path / "short.tsv").write_text("a\ta\n" * 4)
    parts = tuple(TsvConfig(path=f"{name}.tsv") for name in ("long", "short"))
    letters = train_tokenizer(CharactersConfig(), ["abc"], (), False)
    data = DataConfig(folder=str(tmp_path), train=parts, dev=parts[0])
    corpus = build_corpus(CorpusRequest(data, "train", letters, letters))
    plain = BatchStream(corpus, PaddedLayout(16), 3, temperature=100)
    stream = AheadStream(BatchStream(corpus, PaddedLayout(16), 3, temperature=100), lambda one: one)
    assert stream.batches_in(0) == plain.batches_in(0)
    assert stream.batches_in(0) != BatchStream(corpus, PaddedLayout(16), 3).batches_in(0)
    assert stream.examples_from((0, 0), 3) == plain.examples_from((0, 0), 3)


def test_what_goes_wrong_ahead_is_raised_where_the_batch_is_taken(corpus: Corpus) -> None:
    def refuse(batch: Batch) -> Batch:
        raise DataError("no")

    stream = AheadStream(BatchStream(corpus, PackedLayout(200, 40), 3), refuse)
    with pytest.raises(DataError, match="no"):
        next(stream)
    stream.close()

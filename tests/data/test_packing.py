"""Packed and bucketed batches contain every pair once, complete, in few shapes."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.config.schema.corpora import SyntheticConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.core.batch import Batch, Packing, Padded
from seqloom.core.errors import DataError
from seqloom.data.batching.bucketing import BucketLayout
from seqloom.data.batching.layout import BatchLayout
from seqloom.data.batching.packing import PackedLayout, fill_rows, row_length
from seqloom.data.corpus.corpus import Corpus, build_corpus
from seqloom.data.modalities.text import TextModality
from seqloom.data.preparation.request import CorpusRequest
from seqloom.text.build import train_tokenizer
from seqloom.text.vocabulary import END, PAD, START

few_examples = settings(deadline=None, max_examples=25)
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
        return build_corpus(CorpusRequest(data, "train", TextModality(letters), letters))


def batches_of(layout: BatchLayout, corpus: Corpus, epoch: int = 0) -> list[Batch]:
    plan = layout.plan(corpus.source_lengths, corpus.target_lengths, 1, epoch)
    return [layout.gather(corpus, indices) for indices in plan]


Pair = tuple[tuple[int, ...], ...]


def pairs_of(batch: Batch) -> list[Pair]:
    """(source, inputs, targets) of every pair in a batch."""
    assert isinstance(batch.source, Padded)
    packing = batch.packing or _one_pair_per_row(batch)
    pairs = []
    for row in range(batch.size):
        for pair in range(1, int(packing.target_pairs[row].max()) + 1):
            source = batch.source.values[row][packing.source_pairs[row] == pair]
            target = packing.target_pairs[row] == pair
            sides = (source, batch.inputs.values[row][target], batch.targets.values[row][target])
            pairs.append(tuple(tuple(side.tolist()) for side in sides))
    return pairs


def _one_pair_per_row(batch: Batch) -> Packing:
    assert isinstance(batch.source, Padded)
    has_pair = (batch.targets.lengths > 0).unsqueeze(1)
    source, target = (batch.source.mask & has_pair).long(), batch.targets.mask.long()
    return Packing(source, target, source, target)


@few_examples
@given(layout=LAYOUTS)
def test_every_pair_is_in_one_batch_complete(corpus: Corpus, layout: BatchLayout) -> None:
    pairs = Counter(pair for batch in batches_of(layout, corpus) for pair in pairs_of(batch))
    expected = Counter(
        (
            (*corpus.source(i).tolist(), END),
            (START, *corpus.target(i).tolist()),
            (*corpus.target(i).tolist(), END),
        )
        for i in range(len(corpus))
    )
    assert pairs == expected


@few_examples
@given(layout=LAYOUTS)
def test_shapes_are_few_and_within_the_budget(corpus: Corpus, layout: BatchLayout) -> None:
    batches = batches_of(layout, corpus)
    assert all(batch.targets.values.numel() <= layout.budget for batch in batches)  # type: ignore[attr-defined]
    assert all(batch.source.values.shape == batch.targets.values.shape for batch in batches)  # type: ignore[union-attr]
    shapes = {batch.targets.values.shape for batch in batches}
    lengths = Counter(length for _, length in shapes)
    assert len(lengths) <= 5
    assert max(lengths.values()) <= 2


@few_examples
@given(layout=LAYOUTS)
def test_positions_outside_pairs_are_padding(corpus: Corpus, layout: BatchLayout) -> None:
    for batch in batches_of(layout, corpus):
        target_tokens = sum(len(targets) for _, _, targets in pairs_of(batch))
        assert batch.num_targets == target_tokens
        assert int((batch.targets.values != PAD).sum()) == target_tokens
        assert torch.equal(batch.targets.mask, batch.targets.values != PAD)


def test_positions_restart_at_zero_for_each_pair(corpus: Corpus) -> None:
    for batch in batches_of(PackedLayout(120, 40), corpus):
        assert batch.packing is not None
        starts = batch.inputs.values == START
        assert torch.equal(starts, (batch.packing.target_positions == 0) & (batch.inputs.mask))
        steps = batch.packing.target_positions[:, 1:] - batch.packing.target_positions[:, :-1]
        assert (steps[~starts[:, 1:] & batch.inputs.mask[:, 1:]] == 1).all()


def test_masks_separate_pairs_and_are_causal_for_targets() -> None:
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
def test_every_position_attends_to_at_least_one(sources: list[int], targets: list[int]) -> None:
    """Even padding in a row that is full of source tokens: a softmax over nothing is NaN."""
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


def test_packed_rows_are_nearly_full() -> None:
    generator = np.random.default_rng(0)
    lengths = generator.integers(5, 30, 20_000)
    layout = PackedLayout(4096, row_length(lengths, lengths))
    plan = layout.plan(lengths, lengths, 0, 0)
    assert int((lengths + 1).sum()) > 0.95 * 4096 * (len(plan) - 1)


def test_rows_with_unequal_sources_and_targets_are_nearly_full() -> None:
    """A row that has more space for sources takes pairs with longer sources."""
    generator = np.random.default_rng(0)
    sources = generator.integers(8, 25, 20_000)
    targets = np.maximum(1, sources + generator.integers(-4, 5, 20_000))
    rows = fill_rows(np.arange(20_000), sources, targets, 64)
    assert max(sources.sum(), targets.sum()) > 0.96 * 64 * len(rows)


def test_reserved_space_for_short_pairs_leads_to_less_padding() -> None:
    """The lengths are like those of Multi30k."""
    generator = np.random.default_rng(0)
    sources = generator.lognormal(np.log(14), 0.3, 16_000).clip(4, 45).astype(np.int64)
    targets = (sources + generator.normal(0, 2, 16_000)).round().clip(4, 45).astype(np.int64)
    tokens = max(sources.sum(), targets.sum())
    plain, reserving = (
        1 - tokens / (64 * len(fill_rows(np.arange(16_000), sources, targets, 64, reserve)))
        for reserve in (False, True)
    )
    assert reserving < 0.02 < 0.025 < plain


@pytest.mark.parametrize("ratio", [0.5, 0.7, 0.95, 1.0, 1.25])
def test_the_better_way_to_fill_rows_is_chosen(ratio: float) -> None:
    """Reserved space leads to more padding if sources and targets differ much in length."""
    generator = np.random.default_rng(0)
    sources = generator.lognormal(np.log(12), 0.5, 16_000).clip(1, 60).astype(np.int64)
    targets = (sources * ratio * generator.lognormal(0, 0.15, 16_000)).clip(1, 60).astype(np.int64)
    plan = PackedLayout(64 * 8, 64).plan(sources, targets, 0, 0)
    indices = np.arange(16_000)
    ways = [fill_rows(indices, sources + 1, targets + 1, 64, way) for way in (False, True)]
    assert len(plan) == -(-min(map(len, ways)) // 8)


def test_the_rows_of_an_epoch_are_distributed_evenly() -> None:
    """The last batch is not nearly empty, and all batches have the same shape."""
    lengths = np.full(65 * 4 + 2, 15)  # 4 pairs fill a row of 64 tokens, so there are 66 rows
    plan = PackedLayout(64 * 32, 64).plan(lengths, lengths, 0, 0)
    assert sorted(len(batch) for batch in plan) == [86, 88, 88]  # 22 rows each instead of 32, 32, 2


def test_epochs_differ_and_are_reproducible(corpus: Corpus) -> None:
    for layout in (PackedLayout(120, 40), BucketLayout(120)):
        first, again, second = (
            [pairs_of(batch) for batch in batches_of(layout, corpus, epoch)] for epoch in (0, 0, 1)
        )
        assert first == again
        assert first != second


@pytest.mark.parametrize("layout", [PackedLayout(8, 8), BucketLayout(8)])
def test_pair_longer_than_a_batch_is_an_error(corpus: Corpus, layout: BatchLayout) -> None:
    with pytest.raises(
        DataError, match=r"has \d+ tokens, and training.batch_tokens is 8; raise it"
    ):
        layout.plan(corpus.source_lengths, corpus.target_lengths, 0, 0)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=40),
    st.booleans(),
)
def test_sources_and_targets_fit_into_their_rows(
    lengths: list[tuple[int, int]], reserve: bool
) -> None:
    sources, targets = np.array(lengths).T
    rows = list(fill_rows(np.arange(len(lengths)), sources, targets, 12, reserve))
    assert sorted(pair for row in rows for pair in row) == list(range(len(lengths)))
    for row in rows:
        assert sources[row].sum() <= 12
        assert targets[row].sum() <= 12

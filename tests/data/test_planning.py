"""Planning batches: budget, reproducibility, full batches, little padding, different lengths."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.corpora import BundledConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.text import SubwordsConfig
from seqloom.core.errors import DataError
from seqloom.data.batching.layout import plan_batches
from seqloom.data.corpus.corpus import build_corpus
from seqloom.data.corpus.dataset import IntArray
from seqloom.data.modalities.text import TextModality
from seqloom.data.preparation.request import CorpusRequest
from seqloom.data.readers.splits import read_split
from seqloom.text.build import train_tokenizer

lengths = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=200)


@given(pairs=lengths, budget=st.integers(31, 400), seed=st.integers(0, 9), epoch=st.integers(0, 9))
def test_every_example_is_planned_once_within_the_budget(
    pairs: list[tuple[int, int]], budget: int, seed: int, epoch: int
) -> None:
    source, target = (np.array(side) for side in zip(*pairs, strict=True))
    batches = plan_batches(source, target, budget, seed, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(pairs)))
    for batch in batches:
        longest = max(source[batch].max(), target[batch].max()) + 1
        assert len(batch) * longest <= budget


@given(length=st.integers(0, 30), budget=st.integers(31, 400))
def test_batches_of_equal_lengths_are_as_full_as_the_budget_allows(
    length: int, budget: int
) -> None:
    per_batch = budget // (length + 1)
    same = np.full(3 * per_batch, length)
    batches = plan_batches(same, same, budget, 0, 0)
    assert [len(batch) for batch in batches] == [per_batch] * 3


@given(pairs=lengths, seed=st.integers(0, 9))
def test_plan_depends_on_its_arguments_alone(pairs: list[tuple[int, int]], seed: int) -> None:
    source, target = (np.array(side) for side in zip(*pairs, strict=True))
    first, again = (plan_batches(source, target, 100, seed, 3) for _ in range(2))
    assert [batch.tolist() for batch in first] == [batch.tolist() for batch in again]


@given(target=st.lists(st.integers(0, 30), min_size=1))
def test_without_sources_only_target_lengths_count(target: list[int]) -> None:
    batches = plan_batches(None, np.array(target), 31, 0, 0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(target)))


def test_seeds_and_epochs_change_both_batches_and_their_order() -> None:
    same = np.full(100, 4)
    plans = [plan_batches(same, same, 50, seed, epoch) for seed, epoch in [(0, 0), (1, 0), (0, 1)]]
    assert len({str([batch.tolist() for batch in plan]) for plan in plans}) == 3
    assert len({str(sorted(sorted(batch) for batch in plan)) for plan in plans}) == 3
    mixed = np.arange(100)
    firsts = {plan_batches(mixed, mixed, 100, 0, epoch)[0].tolist()[0] for epoch in range(9)}
    assert len(firsts) > 1


def test_error_for_an_example_above_the_budget_names_the_settings() -> None:
    with pytest.raises(DataError) as info:
        plan_batches(np.array([3, 60, 50]), np.array([3, 3, 3]), 40, 0, 0)
    message = str(info.value)
    assert "2 of 3 examples" in message
    assert "example 1 (counted from 0) has 61 tokens" in message
    assert "raise it to 61 or more" in message
    assert "data.filter.max_source_tokens" in message


def test_a_million_examples_are_planned_in_two_seconds() -> None:
    generator = np.random.default_rng(0)
    source = generator.poisson(20, 10**6) + 1
    target = source + generator.integers(0, 6, 10**6)
    start = time.process_time()
    plan_batches(source, target, 8_192, 0, 0)
    assert time.process_time() - start < 2 * 1.5  # a margin for a busy machine


def padding_share(lengths: IntArray, batches: list[IntArray]) -> float:
    padded = sum(len(batch) * (lengths[batch].max() + 1) for batch in batches)
    return 1 - (lengths.sum() + len(lengths)) / padded


def test_batches_of_real_data_are_full_and_mix_target_lengths() -> None:
    config = BundledConfig(source="de", target="en")
    data = DataConfig(train=config, dev=config)
    lines = [line for e in read_split(data, "train") for line in (e.source, e.target)]
    both = train_tokenizer(SubwordsConfig(size=8_000), lines, (), False)
    corpus = build_corpus(CorpusRequest(data, "train", TextModality(both), both))
    assert corpus.source_lengths is not None
    batches = plan_batches(corpus.source_lengths, corpus.target_lengths, 4_096, 1, 0)
    check_batches(corpus.source_lengths, corpus.target_lengths, batches, 4_096)


def test_batches_are_full_and_mix_lengths_if_sources_and_targets_correlate_weakly() -> None:
    generator = np.random.default_rng(0)
    target = generator.gamma(10, 1.4, 29_000).astype(np.int64) + 1
    source = np.maximum(target + generator.normal(1, 2.7, 29_000).astype(np.int64), 1)
    check_batches(source, target, plan_batches(source, target, 4_096, 1, 0), 4_096)


def check_batches(source: IntArray, target: IntArray, batches: list[IntArray], budget: int) -> None:
    assert padding_share(source, batches) <= 0.1
    assert padding_share(target, batches) <= 0.1
    cells = sum((max(source[b].max(), target[b].max()) + 1) * len(b) for b in batches)
    assert cells >= 0.95 * budget * len(batches)
    assert np.mean([target[batch].std() for batch in batches]) >= 0.5

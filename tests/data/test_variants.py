"""Subword regularisation: different segmentations per epoch, reproducible by seed."""

import shutil
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.config.schema.corpora import TsvConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.text import SubwordSamplingConfig
from seqloom.core.errors import ConfigError
from seqloom.data.batching.layout import PaddedLayout
from seqloom.data.batching.stream import BatchStream
from seqloom.data.corpus.corpus import Corpus, build_corpus, build_variants
from seqloom.data.modalities.text import TextModality
from seqloom.data.preparation import file_parts
from seqloom.data.preparation.build import shard_folders
from seqloom.data.preparation.request import CorpusRequest
from seqloom.text.preprocessing import Preprocessing, Tags
from seqloom.text.subwords import SampledSubwordTokenizer, SubwordTokenizer, run_with_sampling_seed
from seqloom.text.vocabulary_tokenizer import CharacterTokenizer

WORDS = ("the", "cat", "sat", "on", "a", "mat", "dog", "<U>")
LINES = ["the cat sat on the mat", "the dog sat on a dog", "a cat and a dog"] * 9
Algorithm = Literal["bpe", "unigram"]
SIZES: dict[Algorithm, int] = {"bpe": 40, "unigram": 24}
PLAIN = {
    algorithm: SubwordTokenizer.train(LINES, Preprocessing(Tags(["<U>"])), size, algorithm)
    for algorithm, size in SIZES.items()
}
SAMPLING = SubwordSamplingConfig(alpha=0.3, variants=3)
algorithms = pytest.mark.parametrize("algorithm", ["bpe", "unigram"])


@algorithms
@given(text=st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_sampled_segmentation_decodes_to_the_same_text(algorithm: Algorithm, text: str) -> None:
    sampled = SampledSubwordTokenizer(PLAIN[algorithm], 0.5, 0)
    assert sampled.decode(sampled.encode(text)) == text


@algorithms
def test_segmentations_vary_and_depend_on_the_seed_alone(algorithm: Algorithm) -> None:
    sampled = SampledSubwordTokenizer(PLAIN[algorithm], 0.3, 0)

    def segmentations() -> list[tuple[int, ...]]:
        return [tuple(sampled.encode(LINES[0])) for _ in range(20)]

    segmentations()  # earlier draws in this thread have no effect
    first, again, other = (run_with_sampling_seed(seed, segmentations) for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first)) > 1


def test_exception_in_the_sampling_thread_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        run_with_sampling_seed(0, lambda: 1 // 0)


@pytest.fixture
def request_(tmp_path: Path) -> CorpusRequest:
    (tmp_path / "a.tsv").write_text("".join(f"{line}\t{line}\n" for line in LINES))
    file = TsvConfig(path="a.tsv")
    data = DataConfig(folder=str(tmp_path), train=file, dev=file)
    return CorpusRequest(data, "train", TextModality(PLAIN["bpe"]), PLAIN["bpe"])


def build(
    request: CorpusRequest, seed: int = 1, sampling: SubwordSamplingConfig = SAMPLING
) -> Corpus:
    return build_variants(request, sampling, seed, lambda examples: None)


def ids(corpus: Corpus) -> list[list[int]]:
    return [corpus.source(i).tolist() + corpus.target(i).tolist() for i in range(len(corpus))]


def test_epochs_cycle_through_segmentations_of_the_same_text(
    request_: CorpusRequest,
) -> None:
    corpus = build(request_)
    plain = build_corpus(request_)
    variants = [ids(corpus.for_epoch(epoch)) for epoch in range(4)]
    assert variants[0] == variants[3]
    assert len({str(variant) for variant in variants}) == SAMPLING.variants
    assert ids(plain) not in variants
    for epoch in range(3):
        texts = [
            PLAIN["bpe"].decode(corpus.for_epoch(epoch).target(i).tolist())
            for i in range(len(corpus))
        ]
        assert texts == LINES


def test_without_sampling_all_epochs_use_one_corpus(request_: CorpusRequest) -> None:
    corpus = build_corpus(request_)
    assert corpus.for_epoch(5) is corpus
    assert list(corpus.variants()) == [corpus]


def test_variants_depend_on_the_seed_not_on_the_cache(
    request_: CorpusRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other = build(request_, seed=1), build(request_, seed=2)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    again = build(request_, seed=1)
    assert first.folder != again.folder
    assert [ids(variant) for variant in first.variants()] == [
        ids(variant) for variant in again.variants()
    ]
    assert ids(first) != ids(other)


def test_digest_depends_on_everything_that_changes_the_segmentation(
    request_: CorpusRequest,
) -> None:
    corpora = [
        build_corpus(request_),
        *(variant for seed in (1, 2) for variant in build(request_, seed).variants()),
        build(request_, 1, SubwordSamplingConfig(alpha=0.2, variants=1)),
    ]
    assert len({corpus.folder for corpus in corpora}) == 1 + 2 * SAMPLING.variants + 1


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("variants")
    (folder / "a.tsv").write_text("".join(f"{line}\t{line}\n" for line in LINES))
    file = TsvConfig(path="a.tsv")
    data = DataConfig(folder=str(folder), train=file, dev=file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        return build(CorpusRequest(data, "train", TextModality(PLAIN["bpe"]), PLAIN["bpe"]))


@settings(deadline=None)
@given(before=st.integers(0, 40))
def test_resumed_stream_continues_with_the_same_segmentations(corpus: Corpus, before: int) -> None:
    uninterrupted, resumed = (BatchStream(corpus, PaddedLayout(200), 1) for _ in range(2))
    for _ in range(before):
        next(uninterrupted)
    resumed.position = uninterrupted.position
    for _ in range(8):
        expected, batch = next(uninterrupted), next(resumed)
        assert np.array_equal(batch.targets.values, expected.targets.values)


def test_sampling_requires_subwords(request_: CorpusRequest) -> None:
    letters = CharacterTokenizer.train(LINES, Preprocessing())
    request = CorpusRequest(request_.data, "train", None, letters)
    with pytest.raises(
        ConfigError, match=r"text\.sampling: requires a subword tokenizer; remove it"
    ):
        build(request)


def test_each_shard_has_its_own_seed_so_that_it_can_be_built_alone(
    request_: CorpusRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_parts, "PART_BYTES", 100)
    corpus = build(request_)
    before = ids(corpus)
    shards = shard_folders(corpus.folder)
    assert len(shards) > 2
    shutil.rmtree(shards[1])
    again = build(request_)
    assert ids(again) == before

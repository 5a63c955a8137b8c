"""Subword regularisation: other cuts of the same text, the same cuts again when asked."""

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
from seqloom.data.corpus import Corpus, CorpusRequest, build_corpus
from seqloom.data.layout import PaddedLayout
from seqloom.data.stream import BatchStream
from seqloom.data.variants import build_variants
from seqloom.text.characters import CharacterTokenizer
from seqloom.text.subwords import SampledSubwordTokenizer, SubwordTokenizer, run_with_sampling_seed
from seqloom.text.tags import Tags

WORDS = ("the", "cat", "sat", "on", "a", "mat", "dog", "<U>")
LINES = ["the cat sat on the mat", "the dog sat on a dog", "a cat and a dog"] * 9
Algorithm = Literal["bpe", "unigram"]
SIZES: dict[Algorithm, int] = {"bpe": 40, "unigram": 24}
PLAIN = {
    algorithm: SubwordTokenizer.train(LINES, Tags(["<U>"]), False, size, algorithm)
    for algorithm, size in SIZES.items()
}
SAMPLING = SubwordSamplingConfig(alpha=0.3, variants=3)
algorithms = pytest.mark.parametrize("algorithm", ["bpe", "unigram"])


@algorithms
@given(text=st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_a_drawn_cut_reads_as_the_same_text(algorithm: Algorithm, text: str) -> None:
    drawn = SampledSubwordTokenizer(PLAIN[algorithm], 0.5, 0)
    assert drawn.decode(drawn.encode(text)) == text


@algorithms
def test_cuts_are_many_and_depend_on_the_seed_alone(algorithm: Algorithm) -> None:
    drawn = SampledSubwordTokenizer(PLAIN[algorithm], 0.3, 0)

    def cuts() -> list[tuple[int, ...]]:
        return [tuple(drawn.encode(LINES[0])) for _ in range(20)]

    cuts()  # what was drawn before in this thread does not matter
    one, again, other = (run_with_sampling_seed(seed, cuts) for seed in (1, 1, 2))
    assert one == again != other
    assert len(set(one)) > 1


def test_what_fails_while_drawing_fails_for_whoever_waits() -> None:
    with pytest.raises(ZeroDivisionError):
        run_with_sampling_seed(0, lambda: 1 // 0)


@pytest.fixture
def request_(tmp_path: Path) -> CorpusRequest:
    (tmp_path / "a.tsv").write_text("".join(f"{line}\t{line}\n" for line in LINES))
    file = TsvConfig(path="a.tsv")
    data = DataConfig(folder=str(tmp_path), train=file, dev=file)
    return CorpusRequest(data, "train", PLAIN["bpe"], PLAIN["bpe"])


def build(
    request: CorpusRequest, seed: int = 1, sampling: SubwordSamplingConfig = SAMPLING
) -> Corpus:
    return build_variants(request, sampling, seed, lambda examples: None)


def ids(corpus: Corpus) -> list[list[int]]:
    return [corpus.source(i).tolist() + corpus.target(i).tolist() for i in range(len(corpus))]


def test_epochs_see_the_same_text_cut_in_other_ways_and_take_turns(
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


def test_without_sampling_every_epoch_sees_the_same_corpus(request_: CorpusRequest) -> None:
    corpus = build_corpus(request_)
    assert corpus.for_epoch(5) is corpus
    assert list(corpus.variants()) == [corpus]


def test_the_same_seed_cuts_the_same_way_on_an_empty_cache(
    request_: CorpusRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = build(request_, seed=1), build(request_, seed=2)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    again = build(request_, seed=1)
    assert one.folder != again.folder
    assert [ids(each) for each in one.variants()] == [ids(each) for each in again.variants()]
    assert ids(one) != ids(other)


def test_all_that_changes_the_cuts_changes_the_digest(request_: CorpusRequest) -> None:
    built = [
        build_corpus(request_),
        *(variant for seed in (1, 2) for variant in build(request_, seed).variants()),
        build(request_, 1, SubwordSamplingConfig(alpha=0.2, variants=1)),
    ]
    assert len({corpus.folder for corpus in built}) == 1 + 2 * SAMPLING.variants + 1


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("variants")
    (folder / "a.tsv").write_text("".join(f"{line}\t{line}\n" for line in LINES))
    file = TsvConfig(path="a.tsv")
    data = DataConfig(folder=str(folder), train=file, dev=file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        return build(CorpusRequest(data, "train", PLAIN["bpe"], PLAIN["bpe"]))


@settings(deadline=None)
@given(before=st.integers(0, 40))
def test_a_resumed_stream_lands_on_the_same_cuts(corpus: Corpus, before: int) -> None:
    straight, resumed = (BatchStream(corpus, PaddedLayout(200), 1) for _ in range(2))
    for _ in range(before):
        next(straight)
    resumed.position = straight.position
    for _ in range(8):
        one, other = next(straight), next(resumed)
        assert np.array_equal(one.targets.values, other.targets.values)


def test_characters_cannot_be_cut_in_several_ways(request_: CorpusRequest) -> None:
    letters = CharacterTokenizer.train(LINES, Tags(()), False)
    request = CorpusRequest(request_.data, "train", None, letters)
    with pytest.raises(ConfigError, match=r"text\.sampling: only subwords .* leave it out"):
        build(request)

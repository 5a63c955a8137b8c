"""A long text through windows: every token is answered once, with the truth before it."""

import gzip
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.corpora import LongTextConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.data.corpus import CorpusRequest, build_corpus
from seqloom.data.fingerprint import fingerprint
from seqloom.data.running import read_running_text
from seqloom.data.splits import read_split
from seqloom.data.stream import BatchStream
from seqloom.data.text_windows import (
    TextWindows,
    WindowedText,
    WindowLayout,
    WindowShape,
    for_scoring,
    shape_of,
)
from seqloom.data.vocabularies import learn_tokenizers
from seqloom.text.build import train_tokenizer
from seqloom.text.long_text import LongTextTokenizer
from seqloom.text.vocabulary import END, PAD, SPECIAL_TOKENS, START
from tiny_texts import TEXT as VERSES
from tiny_texts import running_recipe

NEWLINE = 9


@st.composite
def windows(draw: st.DrawFn) -> TextWindows:
    """Of a text of four words and ends of lines."""
    ids = draw(st.lists(st.sampled_from([4, 5, 6, 7, NEWLINE]), min_size=1, max_size=60))
    length = draw(st.integers(1, 12))
    context = draw(st.integers(0, length - 1))
    first = draw(st.integers(1, length))
    return TextWindows(np.array(ids, dtype=np.uint16), WindowShape(length, context), NEWLINE, first)


@given(windows(), st.integers(1, 40))
def test_every_token_is_answered_once_with_enough_before_it(cut: TextWindows, budget: int) -> None:
    answers: list[int] = []
    for batch in cut.batches(budget):
        lead = np.zeros(batch.size, dtype=int) if batch.lead is None else batch.lead.numpy()
        assert batch.num_targets == int((batch.targets.values != PAD).sum())
        for row, (unanswered, length) in enumerate(
            zip(lead.tolist(), batch.targets.lengths.tolist(), strict=True)
        ):
            targets = batch.targets.values[row].tolist()
            assert unanswered >= min(cut.shape.context, len(answers))
            assert set(targets[:unanswered]) <= {PAD}
            answers += targets[unanswered:length]
            assert not any(targets[length:])
    assert answers == cut.ids.tolist()


@given(windows())
def test_the_decoder_is_fed_the_true_token_before_each(cut: TextWindows) -> None:
    """But where a line begins and nothing before it is seen: that is what START means."""
    begins = cut.cuts[1:] - cut.sizes
    batch = cut.gather(np.arange(len(cut)), len(cut))
    for begin, size, row in zip(begins, cut.sizes, batch.inputs.values.tolist(), strict=True):
        before = [START, *cut.ids.tolist()][begin : begin + size]
        if before[0] == NEWLINE:
            before[0] = START
        assert row == before + [PAD] * (cut.shape.length - size)
    assert not {START, END} & set(batch.targets.values.flatten().tolist())


def test_rows_that_no_window_is_left_for_have_nothing_to_answer() -> None:
    cut = for_scoring(np.arange(4, 9), WindowShape(4, 2), NEWLINE)
    batch = cut.gather(np.array([1]), rows=3)
    assert batch.targets.values.tolist() == [[PAD, PAD, 8, PAD], [PAD] * 4, [PAD] * 4]
    assert batch.inputs.values.tolist() == [[5, 6, 7, PAD], [PAD] * 4, [PAD] * 4]
    assert batch.num_targets == 1
    upper, lower = batch.halves()
    assert (upper.num_targets, lower.num_targets) == (1, 0)


TEXT = "".join(f"line {number} of {'x' * (number % 7)}\n" for number in range(80))


def corpus_of(folder: Path, shape: WindowShape, seed: int | None = 3) -> WindowedText:
    (folder / "text").write_text(TEXT, encoding="utf-8")
    running = LongTextConfig(path="text")
    data = DataConfig(folder=str(folder), train=(running,), dev=(running,))
    lines = train_tokenizer(CharactersConfig(), TEXT.splitlines(), (), lowercase=False)
    tokenizer = LongTextTokenizer(lines)
    corpus = build_corpus(CorpusRequest(data, "train", None, tokenizer))
    assert tokenizer.decode(corpus.target_side.ids.tolist()) == TEXT
    return WindowedText(corpus, shape, tokenizer.newline, seed)


def test_an_epoch_sees_the_whole_text_cut_at_places_of_its_own(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, WindowShape(length=16, context=0))
    firsts = {corpus.for_epoch(epoch).windows.first for epoch in range(20)}
    assert len(firsts) > 8
    assert firsts <= set(range(1, 17))
    again = corpus_of(tmp_path, WindowShape(length=16, context=0)).for_epoch(5)
    assert again.windows.first == corpus.for_epoch(5).windows.first
    for epoch in range(3):
        assert int((corpus.for_epoch(epoch).target_lengths + 1).sum()) == len(TEXT)


def test_all_batches_have_one_shape_and_an_epoch_answers_every_token(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, WindowShape(length=16, context=0))
    stream = BatchStream(corpus, WindowLayout(budget=100, length=16), seed=1)
    answered = []
    while stream.epoch_of(stream.position) == 0:
        batch = next(stream)
        assert batch.inputs.values.shape == batch.targets.values.shape == (6, 16)
        answered += batch.targets.values[batch.targets.mask].tolist()
    assert sorted(answered) == sorted(corpus.windows.ids.tolist())


def test_a_window_longer_than_a_batch_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a window of 16 tokens is longer than a whole batch"):
        WindowLayout(budget=15, length=16).refuse_too_long(None, np.array([1]))


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=30),
    st.lists(st.floats(0, 1), max_size=3).map(sorted),
)
def test_parts_that_meet_share_no_line_and_lose_none(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], inner: list[float]
) -> None:
    folder = tmp_path_factory.mktemp("text")
    lines = [f"{number:02d}{'é' * length}\n" for number, length in enumerate(lengths)]
    (folder / "text").write_text("".join(lines), encoding="utf-8")
    read = []
    bounds = [0.0, *inner, 1.0]
    for begin, end in itertools.pairwise(bounds):
        if begin < end:
            part = LongTextConfig(path="text", begin=begin, end=end)
            read += [example.target for example in read_running_text(part, str(folder))]
    assert read == lines


def test_a_share_is_one_of_characters_not_of_lines(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "text.gz", "wt", encoding="utf-8") as file:
        file.write("a\n" * 40 + "b" * 19 + "\n")  # no line end is missing, none is made up
    part = LongTextConfig(path="text.gz", end=0.5)
    assert len(list(read_running_text(part, str(tmp_path)))) == 25


def test_a_part_without_a_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("one line alone", encoding="utf-8")
    train, dev = (LongTextConfig(path="text", begin=begin) for begin in (0.0, 0.5))
    data = DataConfig(folder=str(tmp_path), train=(train,), dev=(dev,))
    assert [example.target for example in read_split(data, "train")] == ["one line alone\n"]
    with pytest.raises(DataError, match=r"data.dev: text: there is no example"):
        list(read_split(data, "dev"))


def test_a_text_is_known_by_its_part_and_not_by_its_windows(tmp_path: Path) -> None:
    """Whoever changes the length of windows need not cut the text into tokens again."""
    (tmp_path / "text").write_text(TEXT, encoding="utf-8")

    def digest(**settings: float) -> str:
        text = LongTextConfig.model_validate({"path": "text", **settings})
        return fingerprint(DataConfig(folder=str(tmp_path), train=(text,), dev=(text,)), "train")

    assert digest() == digest(length=9) == digest(context=3)
    assert len({digest(), digest(begin=0.5), digest(end=0.5)}) == 3


def test_the_end_of_a_line_is_one_token_and_no_character(tmp_path: Path) -> None:
    _, tokenizer = learn_tokenizers(running_recipe(tmp_path))
    assert isinstance(tokenizer, LongTextTokenizer)
    letters = set(VERSES) - {"\n"}
    assert tokenizer.size == len(SPECIAL_TOKENS) + len(letters) + 1
    assert tokenizer.encode("\n") == [tokenizer.newline]


def test_scoring_reads_half_a_window_again_unless_told_otherwise() -> None:
    plain, own = LongTextConfig(path="a"), LongTextConfig(path="a", length=8, context=2)
    data = DataConfig(train=(plain,), dev=(plain,), test=(own,))
    assert shape_of(data, "train") == WindowShape(256, 0)
    assert shape_of(data, "dev") == WindowShape(256, 128)
    assert shape_of(data, "test") == WindowShape(8, 2)
    assert shape_of(data.model_copy(update={"test": ()}), "test") is None

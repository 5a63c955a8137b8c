"""Long text in windows: every token is predicted once, from the tokens before it."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.corpora import LongTextConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.core.errors import ConfigError
from seqloom.data.batching.stream import BatchStream
from seqloom.data.corpus.corpus import build_corpus
from seqloom.data.corpus.long_text import (
    LongTextDataset,
    TextWindows,
    WindowLayout,
    WindowShape,
    scoring_windows,
    window_shape,
)
from seqloom.data.corpus.vocabularies import train_tokenizers
from seqloom.data.preparation.request import CorpusRequest, fingerprint
from seqloom.text.build import train_tokenizer
from seqloom.text.long_text import LongTextTokenizer
from seqloom.text.vocabulary import END, PAD, SPECIAL_TOKENS, START
from support.tiny_texts import TEXT as VERSES
from support.tiny_texts import long_text_config

NEWLINE = 9
TEXT = "".join(f"line {number} of {'x' * (number % 7)}\n" for number in range(80))


@st.composite
def text_windows(draw: st.DrawFn) -> TextWindows:
    """Windows of a text with four words and line endings."""
    ids = draw(st.lists(st.sampled_from([4, 5, 6, 7, NEWLINE]), min_size=1, max_size=60))
    length = draw(st.integers(1, 12))
    context = draw(st.integers(0, length - 1))
    first = draw(st.integers(1, length))
    return TextWindows(np.array(ids, dtype=np.uint16), WindowShape(length, context), NEWLINE, first)


def make_dataset(folder: Path, shape: WindowShape, seed: int | None = 3) -> LongTextDataset:
    (folder / "text").write_text(TEXT, encoding="utf-8")
    config = LongTextConfig(path="text")
    data = DataConfig(folder=str(folder), train=(config,), dev=(config,))
    line_tokenizer = train_tokenizer(CharactersConfig(), TEXT.splitlines(), (), lowercase=False)
    tokenizer = LongTextTokenizer(line_tokenizer)
    corpus = build_corpus(CorpusRequest(data, "train", None, tokenizer))
    assert tokenizer.decode(corpus.targets.ids.tolist()) == TEXT
    return LongTextDataset(corpus, shape, tokenizer.newline, seed)


@given(text_windows(), st.integers(1, 40))
def test_every_token_is_predicted_once_with_enough_context(
    windows: TextWindows, budget: int
) -> None:
    predicted: list[int] = []
    for batch in windows.batches(budget):
        leads = np.zeros(batch.size, dtype=int) if batch.lead is None else batch.lead.numpy()
        assert batch.num_targets == int((batch.targets.values != PAD).sum())
        for row, (lead, length) in enumerate(
            zip(leads.tolist(), batch.targets.lengths.tolist(), strict=True)
        ):
            targets = batch.targets.values[row].tolist()
            assert lead >= min(windows.shape.context, len(predicted))
            assert set(targets[:lead]) <= {PAD}
            predicted += targets[lead:length]
            assert not any(targets[length:])
    assert predicted == windows.ids.tolist()


@given(text_windows())
def test_inputs_are_the_tokens_before_the_targets(windows: TextWindows) -> None:
    """Except for START at the beginning of a window that starts a line."""
    starts = windows.cuts[1:] - windows.sizes
    batch = windows.gather(np.arange(len(windows)), len(windows))
    for start, size, row in zip(starts, windows.sizes, batch.inputs.values.tolist(), strict=True):
        expected = [START, *windows.ids.tolist()][start : start + size]
        if expected[0] == NEWLINE:
            expected[0] = START
        assert row == expected + [PAD] * (windows.shape.length - size)
    assert not {START, END} & set(batch.targets.values.flatten().tolist())


def test_rows_without_a_window_have_no_targets() -> None:
    windows = scoring_windows(np.arange(4, 9), WindowShape(4, 2), NEWLINE)
    batch = windows.gather(np.array([1]), rows=3)
    assert batch.targets.values.tolist() == [[PAD, PAD, 8, PAD], [PAD] * 4, [PAD] * 4]
    assert batch.inputs.values.tolist() == [[5, 6, 7, PAD], [PAD] * 4, [PAD] * 4]
    assert batch.num_targets == 1
    upper, lower = batch.halves()
    assert (upper.num_targets, lower.num_targets) == (1, 0)


def test_epochs_cover_the_text_with_different_window_starts(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, WindowShape(length=16, context=0))
    firsts = {dataset.for_epoch(epoch).windows.first for epoch in range(20)}
    assert len(firsts) > 8
    assert firsts <= set(range(1, 17))
    again = make_dataset(tmp_path, WindowShape(length=16, context=0)).for_epoch(5)
    assert again.windows.first == dataset.for_epoch(5).windows.first
    for epoch in range(3):
        assert int((dataset.for_epoch(epoch).target_lengths + 1).sum()) == len(TEXT)


def test_batches_have_one_shape_and_an_epoch_predicts_every_token(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, WindowShape(length=16, context=0))
    stream = BatchStream(dataset, WindowLayout(budget=100, length=16), seed=1)
    predicted = []
    while stream.epoch_of(stream.position) == 0:
        batch = next(stream)
        assert batch.inputs.values.shape == batch.targets.values.shape == (6, 16)
        predicted += batch.targets.values[batch.targets.mask].tolist()
    assert sorted(predicted) == sorted(dataset.windows.ids.tolist())


def test_window_longer_than_a_batch_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"a window of 16 tokens is longer than a whole batch"):
        WindowLayout(budget=15, length=16).refuse_too_long(None, np.array([1]))


def test_fingerprint_depends_on_the_section_not_on_the_windows(tmp_path: Path) -> None:
    """Changing the length of windows does not tokenise the text again."""
    (tmp_path / "text").write_text(TEXT, encoding="utf-8")

    def digest(**settings: float) -> str:
        text = LongTextConfig.model_validate({"path": "text", **settings})
        return fingerprint(DataConfig(folder=str(tmp_path), train=(text,), dev=(text,)), "train")

    assert digest() == digest(length=9) == digest(context=3)
    assert len({digest(), digest(begin=0.5), digest(end=0.5)}) == 3


def test_line_ending_is_one_token_and_not_a_character(tmp_path: Path) -> None:
    _, tokenizer = train_tokenizers(long_text_config(tmp_path))
    assert isinstance(tokenizer, LongTextTokenizer)
    letters = set(VERSES) - {"\n"}
    assert tokenizer.size == len(SPECIAL_TOKENS) + len(letters) + 1
    assert tokenizer.encode("\n") == [tokenizer.newline]


def test_default_context_is_half_a_window_for_scoring_and_zero_for_training() -> None:
    default, explicit = (
        LongTextConfig(path="a"),
        LongTextConfig(path="a", length=8, context=2),
    )
    data = DataConfig(train=(default,), dev=(default,), test=(explicit,))
    assert window_shape(data, "train") == WindowShape(256, 0)
    assert window_shape(data, "dev") == WindowShape(256, 128)
    assert window_shape(data, "test") == WindowShape(8, 2)
    assert window_shape(data.model_copy(update={"test": ()}), "test") is None

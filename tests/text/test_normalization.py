"""Unicode normalisation, in every tokenizer."""

import json
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seqloom.config.schema.text import (
    CharactersConfig,
    Normalization,
    SubwordsConfig,
    TokenizerConfig,
    WhitespaceConfig,
    WordsConfig,
)
from seqloom.core.errors import ConfigError
from seqloom.text.build import load_tokenizer, train_tokenizer
from seqloom.text.long_text import LongTextTokenizer
from seqloom.text.preprocessing import Preprocessing, Tags, decompose, normalise
from seqloom.text.subwords import SampledSubwordTokenizer, SubwordTokenizer
from seqloom.text.tokenizer import Tokenizer

NFC_LINE = "Das gefällt mir, é Å ﬁ ① İ ệ 각"
NFD_LINE = normalize("NFD", NFC_LINE)
TAGS = ("<U>", "<é>", "ze")
CONFIGS: dict[str, TokenizerConfig] = {
    "characters": CharactersConfig(),
    "words": WordsConfig(),
    "whitespace": WhitespaceConfig(),
    "bpe": SubwordsConfig(size=60),
    "unigram": SubwordsConfig(size=60, algorithm="unigram"),
}


def train(
    config: TokenizerConfig, lowercase: bool = False, normalization: Normalization = "nfc"
) -> Tokenizer:
    return train_tokenizer(config, [NFC_LINE, NFD_LINE] * 3, TAGS, lowercase, normalization)


TOKENIZERS = {
    f"{name}-{form}{'-lowercase' if lowercase else ''}": train(config, lowercase, form)
    for name, config in CONFIGS.items()
    for lowercase in (False, True)
    for form in ("nfc", "nfkc")
}
TOKENIZERS["long-text"] = LongTextTokenizer(TOKENIZERS["words-nfc"])
every_kind = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
every_tokenizer = pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)
MARKS = "\u0301\u0307\u0308\u0323\u0338\u0345"
texts = st.text(st.sampled_from(f"{NFC_LINE}{NFD_LINE}{MARKS}<U>ze≯ſΣςΩK") | st.characters()) | (
    st.lists(st.sampled_from([*TAGS, *MARKS, "≯", "<e\u0301>", "zé", "a", " "])).map("".join)
)


@every_tokenizer
@given(text=texts, ends=st.tuples(st.integers(0, 30), st.integers(0, 30)))
@example(text="<U>\u0338a", ends=(0, 4))
def test_equivalent_texts_have_the_same_tokens(
    tokenizer: Tokenizer, text: str, ends: tuple[int, int]
) -> None:
    if isinstance(tokenizer, SubwordTokenizer):
        text = text.encode("utf-8", "ignore").decode()
    start, end = min(ends), max(ends)
    form = tokenizer.preprocessing.normalization
    ids = tokenizer.encode(text)
    assert tokenizer.encode(decompose(text, form)) == ids
    assert tokenizer.encode(normalise(text, form)) == ids
    partly = text[:start] + decompose(text[start:end], form) + text[end:]
    assert tokenizer.encode(partly) == ids


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("form", ["nfc", "nfkc", "none"])
@given(text=texts)
def test_preprocessed_text_is_not_changed_again(
    lowercase: bool, form: Normalization, text: str
) -> None:
    preprocessing = Preprocessing(Tags(TAGS, form), lowercase)
    prepared = preprocessing.apply(text)
    assert preprocessing.apply(prepared) == prepared


@every_kind
def test_the_vocabulary_does_not_depend_on_the_form_of_the_training_text(
    config: TokenizerConfig,
) -> None:
    digests = {
        train_tokenizer(config, [line] * 3, (), False).digest for line in (NFC_LINE, NFD_LINE)
    }
    assert len(digests) == 1


@every_kind
@pytest.mark.parametrize("tag", ["<U>", "<é>", "<e\u0301>"])
@pytest.mark.parametrize("mark", ["", "\u0338"], ids=["tag", "tag and mark"])
def test_tags_stay_intact(config: TokenizerConfig, tag: str, mark: str) -> None:
    tokenizer = train(config)
    [first, *_] = (
        piece for piece in tokenizer.pieces(tokenizer.encode(f"{tag}{mark} Das")) if piece != "▁"
    )
    assert first == normalize("NFC", tag)


@every_kind
def test_none_keeps_the_text_as_it_is(config: TokenizerConfig) -> None:
    tokenizer = train(config, normalization="none")
    assert tokenizer.encode(NFC_LINE) != tokenizer.encode(NFD_LINE)
    for line in (NFC_LINE, NFD_LINE):
        assert tokenizer.decode(tokenizer.encode(line)) == line


@every_kind
@pytest.mark.parametrize("form", ["nfc", "nfkc", "none"])
def test_the_form_is_saved(config: TokenizerConfig, form: Normalization, tmp_path: Path) -> None:
    tokenizer = train(config, normalization=form)
    tokenizer.save(tmp_path, "source")
    loaded = load_tokenizer(tmp_path, "source")
    assert loaded.preprocessing.normalization == form
    assert loaded.digest == tokenizer.digest
    assert loaded.encode(NFD_LINE) == tokenizer.encode(NFD_LINE)
    content = json.loads((tmp_path / "source.json").read_bytes())
    assert content["normalization"] == form


def test_sampled_segmentations_are_normalised() -> None:
    plain = TOKENIZERS["bpe-nfc"]
    assert isinstance(plain, SubwordTokenizer)
    sampled = SampledSubwordTokenizer(plain, 0.5, 0)
    assert sampled.decode(sampled.encode(NFD_LINE)) == NFC_LINE


def test_tags_that_are_equal_after_normalisation_are_rejected() -> None:
    with pytest.raises(ConfigError, match=r"'<①>': is the same as an earlier tag .*'nfkc'"):
        Tags(["<1>", "<①>"], "nfkc")
    assert Tags(["<1>", "<①>"], "nfc").names == ("<1>", "<①>")


def test_nfkc_replaces_compatibility_characters() -> None:
    assert [normalise("ﬁ①é", form) for form in ("nfc", "nfkc", "none")] == ["ﬁ①é", "fi1é", "ﬁ①é"]
    assert Preprocessing(Tags(["<U>"], "nfkc")).apply("＜U＞ﬁ") == "<U>fi"

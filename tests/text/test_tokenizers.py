"""Laws that hold for every tokenizer."""

import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.text import (
    CharactersConfig,
    SubwordsConfig,
    TokenizerConfig,
    WhitespaceConfig,
    WordsConfig,
)
from seqloom.core.errors import ConfigError, DataError, NotFoundError, StorageError
from seqloom.text.build import load_tokenizer, train_tokenizer
from seqloom.text.tokenizer import Tokenizer, words_of
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN
from seqloom.text.whitespace import Whitespace
from seqloom.text.words import Words

TAGS = ("<U>", "<2fr>")
CORPUS = [
    "Das gefällt mir.",
    "Gefällt dir das (auch)?",
    'He said: "Don\'t go!"',
    "Un peu plus, s'il vous plaît !",
    "नमस्ते दुनिया",
    "ein ❤️ für alle",
] * 3
WORDS = [word for line in CORPUS for word in line.split()]
CONFIGS: list[TokenizerConfig] = [
    CharactersConfig(),
    WordsConfig(),
    WhitespaceConfig(),
    SubwordsConfig(size=75),
    SubwordsConfig(size=60, algorithm="unigram"),
]


def name(config: TokenizerConfig) -> str:
    return config.algorithm if isinstance(config, SubwordsConfig) else config.kind


TOKENIZERS = {name(config): train_tokenizer(config, CORPUS, TAGS, False) for config in CONFIGS}
every_config = pytest.mark.parametrize("config", CONFIGS, ids=name)
every_tokenizer = pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)
texts = st.lists(st.sampled_from([*WORDS, *TAGS, "<U>Das", "das<2fr>"])).map(" ".join)
any_ids = st.lists(st.integers(0, min(t.size for t in TOKENIZERS.values()) - 1))


def test_every_kind_of_tokenizer_is_tried() -> None:
    kinds = {config.kind for config in CONFIGS}
    assert kinds == {
        kind.model_fields["kind"].default for kind in get_args(get_args(TokenizerConfig)[0])
    }


@every_tokenizer
@given(text=texts)
def test_known_text_comes_back_as_it_was(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    if UNKNOWN not in ids or not isinstance(tokenizer, Words | Whitespace):
        assert tokenizer.decode(ids) == text


@every_tokenizer
@given(text=st.text())
def test_any_text_has_ids_of_text_only(tokenizer: Tokenizer, text: str) -> None:
    assert all(UNKNOWN <= id_ < tokenizer.size for id_ in tokenizer.encode(text))


@every_tokenizer
@given(text=texts, ends=st.lists(st.sampled_from([PAD, START, END])))
def test_special_tokens_leave_no_trace_in_the_text(
    tokenizer: Tokenizer, text: str, ends: list[int]
) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode([START, *ids, *ends]) == tokenizer.decode(ids)


@every_tokenizer
def test_an_unknown_character_can_be_seen(tokenizer: Tokenizer) -> None:
    assert "<unk>" in tokenizer.decode(tokenizer.encode("Das ☃ mir."))


@every_tokenizer
@given(ids=any_ids)
def test_each_token_belongs_to_a_word_of_the_text_in_order(
    tokenizer: Tokenizer, ids: list[int]
) -> None:
    words = tokenizer.word_of(ids)
    count = len(tokenizer.decode(ids).split())
    inside = [word for word in words if word >= 0]
    assert len(words) == len(ids)
    assert inside == sorted(inside)
    assert all(word < count for word in inside)


@every_tokenizer
@given(text=texts)
def test_every_word_of_a_text_has_tokens_that_spell_it(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    words = tokenizer.word_of(ids)
    for place, word in enumerate(tokenizer.decode(ids).split()):
        own = [id_ for id_, index in zip(ids, words, strict=True) if index == place]
        assert tokenizer.decode(own).replace(" ", "") == word


def test_a_space_belongs_to_the_word_after_it_and_special_tokens_to_none() -> None:
    assert words_of(["a", "b", " ", "c", "", " d", " "]) == [0, 0, 1, 1, -1, 2, -1]


@every_tokenizer
@pytest.mark.parametrize("text", ["<U> Das gefällt mir.", "das <2fr>", "<U><2fr> das", "Das<U>das"])
def test_a_tag_is_one_token_and_comes_back(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    pieces = tokenizer.pieces(ids)
    assert [piece for piece in pieces if piece in TAGS] == [
        tag for tag in sorted(TAGS, key=text.find) if tag in text
    ]
    assert tokenizer.decode(ids) == text


@every_config
def test_lower_case_folds_all_but_the_tags(config: TokenizerConfig) -> None:
    lines = [line.lower() for line in CORPUS]
    tokenizer = train_tokenizer(config, lines, TAGS, True)
    ids = tokenizer.encode("<U> DAS Gefällt MIR.")
    assert tokenizer.decode(ids) == "<U> das gefällt mir."


@every_config
def test_the_same_text_gives_the_same_tokenizer_and_other_text_another(
    config: TokenizerConfig,
) -> None:
    digests = {
        train_tokenizer(config, lines, tags, lowercase).digest
        for lines, tags, lowercase in [
            (CORPUS, TAGS, False),
            (iter(CORPUS), TAGS, False),
            ([*CORPUS, "Xylophon"], TAGS, False),
            (CORPUS, (), False),
            (CORPUS, TAGS, True),
        ]
        if lowercase is False or not isinstance(config, SubwordsConfig)
    }
    assert len(digests) == (3 if isinstance(config, SubwordsConfig) else 4)


@every_tokenizer
def test_a_saved_tokenizer_is_the_same_when_loaded(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path, "source")
    loaded = load_tokenizer(tmp_path, "source")
    text = "<U> Das gefällt mir. <unk> ☃"
    assert loaded.digest == tokenizer.digest
    assert loaded.size == tokenizer.size
    assert loaded.encode(text) == tokenizer.encode(text)


@every_tokenizer
def test_one_flipped_bit_anywhere_is_noticed(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path, "source")
    for path in sorted(tmp_path.iterdir()):
        whole = path.read_bytes()
        for place in range(0, len(whole), max(len(whole) // 40, 1)):
            harmed = bytearray(whole)
            harmed[place] ^= 4
            path.write_bytes(harmed)
            try:
                loaded = load_tokenizer(tmp_path, "source")
            except StorageError as error:
                assert "is damaged" in str(error)  # noqa: PT017
            else:  # white space between JSON values carries nothing
                assert loaded.digest == tokenizer.digest
        path.write_bytes(whole)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"digest": "x"}', b"\xff\xfe", b"[" * 99999]
)
def test_what_is_no_tokenizer_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "source.json").write_bytes(content)
    with pytest.raises(StorageError, match="is damaged, or is no tokenizer of seqloom"):
        load_tokenizer(tmp_path, "source")


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"target\.json: there is no such tokenizer"):
        load_tokenizer(tmp_path, "target")


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    TOKENIZERS["bpe"].save(tmp_path, "source")
    (tmp_path / "source.model").unlink()
    with pytest.raises(NotFoundError, match=r"source\.model: cannot be read"):
        load_tokenizer(tmp_path, "source")


def test_a_tokenizer_file_is_json_that_people_can_read(tmp_path: Path) -> None:
    TOKENIZERS["words"].save(tmp_path, "source")
    assert "gefällt" in json.loads((tmp_path / "source.json").read_bytes())["pieces"]


@every_config
@pytest.mark.parametrize("lines", [[], ["", "  "]], ids=["none", "blank"])
def test_nothing_cannot_be_learned_from(config: TokenizerConfig, lines: list[str]) -> None:
    with pytest.raises(DataError, match="no text to learn a vocabulary from"):
        train_tokenizer(config, lines, (), False)


@pytest.mark.parametrize(
    ("tag", "reason"),
    [("<s>", "special token"), ("a b", "no white space"), ("", "not empty"), ("▁x", "meaning")],
)
def test_a_tag_that_cannot_be_used_is_refused(tag: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        train_tokenizer(CharactersConfig(), CORPUS, (tag,), False)


@every_config
def test_of_two_tags_with_the_same_beginning_the_longer_is_meant(config: TokenizerConfig) -> None:
    tokenizer = train_tokenizer(config, CORPUS, ("<2", "<2fr"), False)
    assert "<2fr" in tokenizer.pieces(tokenizer.encode("<2fr das"))
    assert "<2" in tokenizer.pieces(tokenizer.encode("<2 das"))

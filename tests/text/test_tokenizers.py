"""Properties of every tokenizer."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqloom.text
from seqloom.config.extensions.section import ExtensionConfig, extension_section
from seqloom.config.schema.section import kinds_of
from seqloom.config.schema.text import (
    CharactersConfig,
    SubwordsConfig,
    TokenizerConfig,
    TokenizerExtensionConfig,
    WhitespaceConfig,
    WordsConfig,
)
from seqloom.core.errors import ConfigError, DataError, NotFoundError, StorageError
from seqloom.extensions.registry import FORM
from seqloom.text.build import load_tokenizer, train_tokenizer
from seqloom.text.tokenizer import Tokenizer, word_indices
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

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
EXTENSION = extension_section(TokenizerExtensionConfig, "custom_parts:WordsAndSpaces")()
assert isinstance(EXTENSION, TokenizerExtensionConfig)
CONFIGS: list[TokenizerConfig] = [
    CharactersConfig(),
    WordsConfig(),
    WhitespaceConfig(),
    SubwordsConfig(size=75),
    SubwordsConfig(size=60, algorithm="unigram"),
    EXTENSION,
]


def name(config: TokenizerConfig) -> str:
    return config.algorithm if isinstance(config, SubwordsConfig) else config.kind


WITH_UNKNOWN = {name(config): train_tokenizer(config, CORPUS, TAGS, False) for config in CONFIGS}
WITH_BYTES = {
    f"{name(config)}-with-bytes": train_tokenizer(
        config.model_copy(update={"size": config.size + 256}), CORPUS, TAGS, False, "nfc", True
    )
    for config in CONFIGS
    if isinstance(config, SubwordsConfig)
}
TOKENIZERS = WITH_UNKNOWN | WITH_BYTES
every_config = pytest.mark.parametrize("config", CONFIGS, ids=name)
every_tokenizer = pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)
texts = st.lists(st.sampled_from([*WORDS, *TAGS, "<U>Das", "das<2fr>"])).map(" ".join)
any_ids = st.lists(st.integers(0, 9_999))
"""Ids after division by the size of a vocabulary, with remainder."""


def test_every_kind_of_tokenizer_is_tested() -> None:
    kinds = {FORM if isinstance(config, ExtensionConfig) else config.kind for config in CONFIGS}
    kinds |= {"imported"}  # tests/interop tests this one
    assert kinds == {kind.model_fields["kind"].default for kind in kinds_of(TokenizerConfig)}


@every_tokenizer
@given(text=texts)
def test_known_text_is_restored(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert UNKNOWN not in ids
    assert tokenizer.decode(ids) == text


@every_tokenizer
@given(text=st.text())
def test_encoding_never_returns_pad_start_or_end(tokenizer: Tokenizer, text: str) -> None:
    assert all(UNKNOWN <= id_ < tokenizer.size for id_ in tokenizer.encode(text))


@every_tokenizer
@given(text=texts, ends=st.lists(st.sampled_from([PAD, START, END])))
def test_decoding_skips_special_tokens(tokenizer: Tokenizer, text: str, ends: list[int]) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode([START, *ids, *ends]) == tokenizer.decode(ids)


@pytest.mark.parametrize("tokenizer", WITH_UNKNOWN.values(), ids=WITH_UNKNOWN)
def test_an_unknown_character_is_shown_as_unk(tokenizer: Tokenizer) -> None:
    assert "<unk>" in tokenizer.decode(tokenizer.encode("Das ☃ mir."))


@every_tokenizer
@given(numbers=any_ids)
def test_word_indices_are_in_order_and_within_the_text(
    tokenizer: Tokenizer, numbers: list[int]
) -> None:
    ids = [number % tokenizer.size for number in numbers]
    indices = tokenizer.word_of(ids)
    count = len(tokenizer.decode(ids).split())
    words = [index for index in indices if index >= 0]
    assert len(indices) == len(ids)
    assert words == sorted(words)
    assert all(word < count for word in words)


@every_tokenizer
@given(text=texts)
def test_the_tokens_of_a_word_decode_to_that_word(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    indices = tokenizer.word_of(ids)
    for position, word in enumerate(tokenizer.decode(ids).split()):
        word_ids = [id_ for id_, index in zip(ids, indices, strict=True) if index == position]
        assert tokenizer.decode(word_ids).replace(" ", "") == word


def test_a_space_belongs_to_the_word_after_it_and_special_tokens_to_none() -> None:
    assert word_indices(["a", "b", " ", "c", "", " d", " "]) == [0, 0, 1, 1, -1, 2, -1]


@every_tokenizer
@pytest.mark.parametrize("text", ["<U> Das gefällt mir.", "das <2fr>", "<U><2fr> das", "Das<U>das"])
def test_a_tag_is_one_token_and_is_restored(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    pieces = tokenizer.pieces(ids)
    assert [piece for piece in pieces if piece in TAGS] == [
        tag for tag in sorted(TAGS, key=text.find) if tag in text
    ]
    assert tokenizer.decode(ids) == text


@every_config
def test_lowercase_changes_everything_but_the_tags(config: TokenizerConfig) -> None:
    lines = [line.lower() for line in CORPUS]
    tokenizer = train_tokenizer(config, lines, TAGS, True)
    ids = tokenizer.encode("<U> DAS Gefällt MIR.")
    assert tokenizer.decode(ids) == "<U> das gefällt mir."


@every_config
def test_equal_training_text_gives_equal_tokenizers(
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
def test_one_flipped_bit_is_detected(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path, "source")
    for path in sorted(tmp_path.iterdir()):
        intact = path.read_bytes()
        for position in range(0, len(intact), max(len(intact) // 40, 1)):
            damaged = bytearray(intact)
            damaged[position] ^= 4
            path.write_bytes(damaged)
            try:
                loaded = load_tokenizer(tmp_path, "source")
            except StorageError as error:
                assert "is damaged" in str(error)  # noqa: PT017
            else:  # white space between JSON values has no meaning
                assert loaded.digest == tokenizer.digest
        path.write_bytes(intact)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"digest": "x"}', b"\xff\xfe", b"[" * 99999]
)
def test_any_other_content_is_rejected(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "source.json").write_bytes(content)
    with pytest.raises(StorageError, match="is damaged, or is not a seqloom tokenizer"):
        load_tokenizer(tmp_path, "source")


def test_a_missing_tokenizer_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"target\.json: there is no such tokenizer"):
        load_tokenizer(tmp_path, "target")


def test_a_missing_sentencepiece_model_is_reported(tmp_path: Path) -> None:
    TOKENIZERS["bpe"].save(tmp_path, "source")
    (tmp_path / "source.model").unlink()
    with pytest.raises(NotFoundError, match=r"source\.model: cannot be read"):
        load_tokenizer(tmp_path, "source")


def test_a_tokenizer_file_is_readable_json(tmp_path: Path) -> None:
    TOKENIZERS["words"].save(tmp_path, "source")
    assert "gefällt" in json.loads((tmp_path / "source.json").read_bytes())["pieces"]


@every_config
@pytest.mark.parametrize("lines", [[], ["", "  "]], ids=["none", "blank"])
def test_training_without_text_is_rejected(config: TokenizerConfig, lines: list[str]) -> None:
    with pytest.raises(DataError, match="no text to learn a vocabulary from"):
        train_tokenizer(config, lines, (), False)


@pytest.mark.parametrize(
    ("tag", "reason"),
    [("<s>", "special token"), ("a b", "no white space"), ("", "not be empty"), ("▁x", "reserved")],
)
def test_an_invalid_tag_is_rejected(tag: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        train_tokenizer(CharactersConfig(), CORPUS, (tag,), False)


@every_config
def test_the_longer_of_two_tags_with_the_same_prefix_matches(config: TokenizerConfig) -> None:
    tokenizer = train_tokenizer(config, CORPUS, ("<2", "<2fr"), False)
    assert "<2fr" in tokenizer.pieces(tokenizer.encode("<2fr das"))
    assert "<2" in tokenizer.pieces(tokenizer.encode("<2 das"))


def test_every_name_of_the_public_face_exists() -> None:
    assert sorted(seqloom.text._MODULES) == sorted(seqloom.text.__all__)
    for name in seqloom.text.__all__:
        assert getattr(seqloom.text, name) is not None
    assert dir(seqloom.text) == sorted(seqloom.text.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Missing'"):
        _ = seqloom.text.Missing


@every_tokenizer
@given(text=texts)
def test_known_text_has_no_unknown_parts(tokenizer: Tokenizer, text: str) -> None:
    assert (tokenizer.unknown(text) == []) == (UNKNOWN not in tokenizer.encode(text))


@every_tokenizer
def test_unknown_parts_are_listed_in_order(tokenizer: Tokenizer) -> None:
    unknown = [] if tokenizer in WITH_BYTES.values() else ["😀", "ß", "😀"]
    assert tokenizer.unknown("<U> Das 😀 gefällt ß mir. 😀") == unknown
    assert tokenizer.unknown("Das gefällt mir.") == []


@every_tokenizer
@given(text=st.text(max_size=20))
def test_unknown_parts_are_in_the_text(tokenizer: Tokenizer, text: str) -> None:
    preprocessed = tokenizer.preprocessing.apply(text)
    position = 0
    for part in tokenizer.unknown(text):
        position = preprocessed.index(part, position) + len(part)

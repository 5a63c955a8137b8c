"""New tags are single tokens at the end of the vocabulary; all other texts keep their ids."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.text import (
    CharactersConfig,
    SubwordsConfig,
    TokenizerConfig,
    WhitespaceConfig,
    WordsConfig,
)
from seqloom.core.errors import ConfigError
from seqloom.text.build import load_tokenizer, train_tokenizer
from seqloom.text.long_text import LongTextTokenizer
from seqloom.text.new_tags import add_tags, token_id
from seqloom.text.tokenizer import Tokenizer

CONFIGS: dict[str, TokenizerConfig] = {
    "characters": CharactersConfig(),
    "words": WordsConfig(),
    "whitespace": WhitespaceConfig(),
    "bpe": SubwordsConfig(size=60),
    "unigram": SubwordsConfig(size=60, algorithm="unigram"),
}
LINES = ["<2en> der Hund läuft schnell", "<2en> die Katze schläft", "ein Hund, eine Katze!"] * 9
NEW = ("<2yo>", "<2" + "long" * 40 + ">")


def trained(kind: str, tags: tuple[str, ...] = ("<2en>",)) -> Tokenizer:
    return train_tokenizer(CONFIGS[kind], LINES, tags, lowercase=False)


TOKENIZERS = {kind: trained(kind) for kind in CONFIGS}
EXTENDED = {kind: add_tags(tokenizer, NEW) for kind, tokenizer in TOKENIZERS.items()}
every_kind = pytest.mark.parametrize("kind", CONFIGS)


@every_kind
@given(text=st.text(st.sampled_from("abdeHKt <>2en,!äß"), max_size=30))
def test_texts_without_a_new_tag_keep_their_ids(kind: str, text: str) -> None:
    ids = TOKENIZERS[kind].encode(text)
    assert EXTENDED[kind].encode(text) == ids
    assert EXTENDED[kind].decode(ids) == TOKENIZERS[kind].decode(ids)


@every_kind
def test_a_new_tag_takes_the_place_of_an_old_one(kind: str) -> None:
    old, new = TOKENIZERS[kind], EXTENDED[kind]
    assert new.size == old.size + len(NEW)
    for number, tag in enumerate(NEW):
        assert token_id(new, tag) == old.size + number
        ids = new.encode(f"{tag} der Hund")
        like = [token_id(old, "<2en>") if id_ == old.size + number else id_ for id_ in ids]
        assert like == old.encode("<2en> der Hund")
        assert new.decode(ids) == f"{tag} der Hund"
        assert new.preprocessing.tags.first(f"{tag} der Hund") == (tag, "der Hund")


@every_kind
def test_an_extended_tokenizer_can_be_saved_and_loaded(kind: str, tmp_path: Path) -> None:
    EXTENDED[kind].save(tmp_path, "source")
    loaded = load_tokenizer(tmp_path, "source")
    assert loaded.digest == EXTENDED[kind].digest != TOKENIZERS[kind].digest
    assert loaded.encode(f"{NEW[0]} ein Hund") == EXTENDED[kind].encode(f"{NEW[0]} ein Hund")


@every_kind
def test_a_known_tag_cannot_be_added_again(kind: str) -> None:
    with pytest.raises(ConfigError, match="<2en> is already in the vocabulary"):
        add_tags(TOKENIZERS[kind], ["<2en>"])


def test_unknown_and_special_tokens_have_no_id() -> None:
    for tokenizer in TOKENIZERS.values():
        assert token_id(tokenizer, "<2xx>") is None
        assert token_id(tokenizer, "<unk>") is None
        assert token_id(tokenizer, "</s>") is None


def test_a_tokenizer_of_long_text_has_no_tags() -> None:
    with pytest.raises(ConfigError, match="tags cannot be added to this tokenizer"):
        add_tags(LongTextTokenizer(TOKENIZERS["words"]), ["<2yo>"])

"""TokenStore: token ids on disk."""

from pathlib import Path

import pytest

from seqloom.config.schema.corpora import LinesConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.data.corpus import token_store
from seqloom.data.corpus.corpus import build_corpus
from seqloom.data.preparation.request import CorpusRequest
from seqloom.text.build import train_tokenizer

LETTERS = train_tokenizer(CharactersConfig(), ["abcdefghij"], (), False)


@pytest.mark.parametrize(("largest_uint16_vocabulary", "bytes_per_id"), [(2**16, 2), (3, 4)])
def test_ids_of_small_vocabularies_take_two_bytes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    largest_uint16_vocabulary: int,
    bytes_per_id: int,
) -> None:
    monkeypatch.setattr(token_store, "MAX_UINT16_VOCABULARY", largest_uint16_vocabulary)
    (tmp_path / "a").write_text("abc\njihg\n")
    data = DataConfig(folder=str(tmp_path), train=LinesConfig(path="a"), dev=LinesConfig(path="a"))
    corpus = build_corpus(CorpusRequest(data, "train", None, LETTERS))
    assert (corpus.folder / "00000" / "target.ids").stat().st_size == 7 * bytes_per_id
    assert LETTERS.decode(corpus.target(1).tolist()) == "jihg"
    corpus.release()
    assert LETTERS.decode(corpus.target(0).tolist()) == "abc"

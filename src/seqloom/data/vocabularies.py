"""The tokenizers of a run, learned from its training split."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import sentencepiece

from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.tags import training_tags
from seqloom.config.schema.text import TokenizerConfig
from seqloom.core.errors import StorageError
from seqloom.data.cache import cached_folder, discard
from seqloom.data.fingerprint import digest_of, fingerprint
from seqloom.data.splits import read_split
from seqloom.text.build import load_tokenizer, train_tokenizer
from seqloom.text.long_text import LongTextTokenizer
from seqloom.text.tokenizer import Tokenizer

Side = Literal["source", "target", "both"]

FORMAT = 1
"""Raised when the same text would give another vocabulary."""


def learn_tokenizers(config: RunConfig) -> tuple[Tokenizer | None, Tokenizer]:
    """(source, target), from the cache if they were learned before.

    The same object twice if the vocabulary is shared; no source where no text is read.
    """
    text = config.text
    speaks = not config.task.has_text_source
    tags = tuple(dict.fromkeys((*text.tags, *training_tags(config.data))))
    digest = digest_of(
        [
            FORMAT,
            sentencepiece.__version__,
            fingerprint(config.data, "train"),
            text.model_dump(mode="json", exclude={"sampling"}) | {"tags": list(tags)},
            speaks,
        ]
    )

    def fill(folder: Path) -> None:
        def learn(tokenizer: TokenizerConfig, side: Side) -> Tokenizer:
            lines = _lines(config, side)
            if not config.data.is_long_text:
                return train_tokenizer(tokenizer, lines, tags, text.lowercase)
            alone = (line.removesuffix("\n") for line in lines)
            return LongTextTokenizer(train_tokenizer(tokenizer, alone, tags, text.lowercase))

        if text.shared and not speaks:
            learn(text.tokenizer, "both").save(folder, "target")
        else:
            learn(text.target, "target").save(folder, "target")
            if not speaks:
                learn(text.tokenizer, "source").save(folder, "source")

    try:
        return _load(cached_folder("vocabularies", digest, fill), speaks, text.shared)
    except StorageError:
        # Its files have their full size, so it looked whole; it is small: learn it again.
        discard("vocabularies", digest)
        return _load(cached_folder("vocabularies", digest, fill), speaks, text.shared)


def _load(folder: Path, speaks: bool, shared: bool) -> tuple[Tokenizer | None, Tokenizer]:
    target = load_tokenizer(folder, "target")
    if speaks:
        return None, target
    return (target if shared else load_tokenizer(folder, "source")), target


def _lines(config: RunConfig, side: Side) -> Iterator[str]:
    for example in read_split(config.data, "train"):
        if side != "target":
            yield example.source
        if side != "source":
            yield example.target

"""Trains the tokenizers of a run on its training split."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import sentencepiece

from seqloom.config.loading.defaults import OLD_BEHAVIOUR
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.tags import training_tags
from seqloom.config.schema.text import TextConfig, TokenizerConfig, TokenizerExtensionConfig
from seqloom.core.errors import StorageError
from seqloom.data.corpus.disk_cache import cached_folder, discard
from seqloom.data.corpus.fingerprint import fingerprint, json_digest
from seqloom.data.readers.splits import read_split
from seqloom.extensions.identity import extension_version
from seqloom.text.build import load_tokenizer, train_tokenizer
from seqloom.text.long_text import LongTextTokenizer
from seqloom.text.tokenizer import Tokenizer

TextSides = Literal["source", "target", "both"]

FORMAT = 1
"""Part of the cache key. Increase it when a code change gives another vocabulary for the same
text."""


class Tokenizers(NamedTuple):
    """The tokenizers of a run.

    source: None if there are no sources (language models), or if the sources are images or frames
    target: the same object as `source` if the vocabulary is shared
    """

    source: Tokenizer | None
    target: Tokenizer


def train_tokenizers(config: RunConfig) -> Tokenizers:
    """Train the tokenizers of a run, or load them from the cache."""
    text = config.text
    target_only = not config.has_text_source
    tags = tuple(dict.fromkeys((*text.tags, *training_tags(config.data))))
    # The code of a tokenizer outside seqloom is part of the key. Without such a tokenizer, nothing
    # is added, so that existing caches stay valid.
    code = [
        extension_version(tokenizer.extension_target).sha256
        for tokenizer in (text.tokenizer, text.target)
        if isinstance(tokenizer, TokenizerExtensionConfig)
    ]
    digest = json_digest(
        [
            FORMAT,
            sentencepiece.__version__,
            fingerprint(config.data, "train"),
            _vocabulary_settings(text) | {"tags": list(tags)},
            target_only,
            *code,
        ]
    )

    def fill(folder: Path) -> None:
        def train(tokenizer: TokenizerConfig, sides: TextSides) -> Tokenizer:
            lines = _training_lines(config, sides)
            if config.data.is_long_text:
                lines = (line.removesuffix("\n") for line in lines)
            trained = train_tokenizer(
                tokenizer, lines, tags, text.lowercase, text.normalization, text.byte_fallback
            )
            return LongTextTokenizer(trained) if config.data.is_long_text else trained

        if text.shared and not target_only:
            train(text.tokenizer, "both").save(folder, "target")
        else:
            train(text.target, "target").save(folder, "target")
            if not target_only:
                train(text.tokenizer, "source").save(folder, "source")

    try:
        return _load(cached_folder("vocabularies", digest, fill), target_only, text.shared)
    except StorageError:
        # The cache checks only file sizes, so a damaged file of the right size is detected here.
        discard("vocabularies", digest)
        return _load(cached_folder("vocabularies", digest, fill), target_only, text.shared)


def _vocabulary_settings(text: TextConfig) -> dict[str, Any]:
    """Return the settings that determine the vocabularies.

    A setting that stands for the old behaviour is left out, so that vocabularies in the cache that
    are older than the setting are found.
    """
    unrelated = {"sampling", "split_sentences", "pass_through", "new_tags"}
    settings = text.model_dump(mode="json", exclude=unrelated)
    old = OLD_BEHAVIOUR["text"].items()
    return {name: value for name, value in settings.items() if (name, value) not in old}


def _load(folder: Path, target_only: bool, shared: bool) -> Tokenizers:
    target = load_tokenizer(folder, "target")
    if target_only:
        return Tokenizers(None, target)
    return Tokenizers(target if shared else load_tokenizer(folder, "source"), target)


def _training_lines(config: RunConfig, sides: TextSides) -> Iterator[str]:
    for example in read_split(config.data, "train"):
        if sides != "target":
            yield example.source
        if sides != "source":
            yield example.target

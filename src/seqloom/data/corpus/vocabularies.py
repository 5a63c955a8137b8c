"""Trains the tokenizers of a run on its training split."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import sentencepiece

from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.tags import training_tags
from seqloom.config.schema.text import TextConfig, TokenizerConfig, TokenizerExtensionConfig
from seqloom.data.corpus.dataset import (
    ProgressCallback,
    ReadingProgress,
    damage_note,
    ignore_progress,
)
from seqloom.data.corpus.digests import json_digest
from seqloom.data.corpus.disk_cache import cached_folder
from seqloom.data.example import Example
from seqloom.data.preparation.request import fingerprint
from seqloom.data.readers.splits import read_split
from seqloom.extensions.identity import extension_version
from seqloom.text.build import load_tokenizer, train_tokenizer
from seqloom.text.long_text import LongTextTokenizer
from seqloom.text.tokenizer import Tokenizer

SOURCES = "sources.jsonl"
"""Temporary file with the sources of the training split."""
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


def train_tokenizers(config: RunConfig, progress: ProgressCallback = ignore_progress) -> Tokenizers:
    """Train the tokenizers of a run, or load them from the cache.

    progress: called if this process must wait for another process that trains the same tokenizers,
              and if the cached tokenizers are damaged
    """
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
        def train(tokenizer: TokenizerConfig, lines: Iterable[str]) -> Tokenizer:
            if config.data.is_long_text:
                lines = (line.removesuffix("\n") for line in lines)
            trained = train_tokenizer(
                tokenizer, lines, tags, text.lowercase, text.normalization, text.byte_fallback
            )
            return LongTextTokenizer(trained) if config.data.is_long_text else trained

        examples = read_split(config.data, "train")
        if target_only:
            train(text.target, (example.target for example in examples)).save(folder, "target")
        elif text.shared:
            lines = (line for example in examples for line in (example.source, example.target))
            train(text.tokenizer, lines).save(folder, "target")
        else:
            # The sources are kept in a file, so that the data is read only once.
            sources = folder / SOURCES
            targets = _targets(examples, sources)
            train(text.target, targets).save(folder, "target")
            for _ in targets:  # a tokenizer outside seqloom may not have read all lines
                pass
            train(text.tokenizer, _stored_lines(sources)).save(folder, "source")
            sources.unlink()

    folder = cached_folder(
        "vocabularies",
        digest,
        fill,
        on_wait=lambda: progress(ReadingProgress(0, waits=True)),
        on_damage=lambda files: progress(damage_note(files)),
    )
    return _load(folder, target_only, text.shared)


def _vocabulary_settings(text: TextConfig) -> dict[str, Any]:
    """Return the settings that determine the vocabularies.

    The result is part of the cache key.
    """
    unrelated = {"sampling", "split_sentences", "pass_through", "new_tags"}
    return text.model_dump(mode="json", exclude=unrelated)


def _load(folder: Path, target_only: bool, shared: bool) -> Tokenizers:
    target = load_tokenizer(folder, "target")
    if target_only:
        return Tokenizers(None, target)
    return Tokenizers(target if shared else load_tokenizer(folder, "source"), target)


def _targets(examples: Iterable[Example], sources: Path) -> Iterator[str]:
    """Yield the target of each example. Also write each source to the file `sources`."""
    with sources.open("w", encoding="utf-8", newline="\n") as file:
        for example in examples:
            # A source can contain line breaks, for example in a CSV file.
            file.write(json.dumps(example.source, ensure_ascii=False) + "\n")
            yield example.target


def _stored_lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="\n") as file:
        yield from map(json.loads, file)

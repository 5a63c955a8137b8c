"""Trains the tokenizers that a [text] section describes, and loads saved tokenizers."""

import inspect
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from seqloom.config.schema.text import Normalization, TokenizerConfig, TokenizerExtensionConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.extensions.registry import FORM, built_in_parts, is_extension
from seqloom.text.build_extension import load_extension_tokenizer, train_extension_tokenizer
from seqloom.text.long_text import LongTextTokenizer, line_tokenizer_name
from seqloom.text.preprocessing import Preprocessing, Tags
from seqloom.text.tokenizer import Tokenizer, damaged_file_error, read_content


def train_tokenizer(
    config: TokenizerConfig,
    lines: Iterable[str],
    tags: Sequence[str],
    lowercase: bool,
    normalization: Normalization = "nfc",
    byte_fallback: bool = False,
) -> Tokenizer:
    """Train a tokenizer. The lines are read once.

    Character and word tokenizers count the characters or words of all lines. Their memory grows
    with the number of distinct characters or words. Subword tokenizers learn from all lines
    or, if there are more than two million, from a random sample of two million lines.

    lines:         the training text. Blank lines are skipped
    tags:          strings that are always encoded as a single token
    lowercase:     True to lowercase the training text, and later every text that is encoded
    normalization: Unicode normalisation of the training text and of every text that is encoded
    byte_fallback: True to encode characters that are not in the vocabulary as bytes. Only subword
                   tokenizers use this argument
    """
    preprocessing = Preprocessing(Tags(tags, normalization), lowercase)
    text = _non_blank_lines(lines)
    if isinstance(config, TokenizerExtensionConfig):
        return train_extension_tokenizer(config, text, preprocessing)
    kind: Any = config.part_class()
    if not hasattr(kind, "train"):
        raise ConfigError(
            f"text.tokenizer: the kind '{config.kind}' cannot be trained; use kind = 'subwords'"
        )
    options = {**config.part_settings, "byte_fallback": byte_fallback}
    names = inspect.signature(kind.train).parameters
    tokenizer: Tokenizer = kind.train(
        text, preprocessing, **{name: options[name] for name in options if name in names}
    )
    return tokenizer


def _non_blank_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines that are not blank. Raises DataError if there are none."""
    empty = True
    for line in lines:
        if line.strip():
            empty = False
            yield line
    if empty:
        raise DataError("there is no text to learn a vocabulary from: every training line is empty")


def load_tokenizer(folder: Path, name: str) -> Tokenizer:
    """Load the tokenizer that was saved in this folder under this name."""
    path = folder / f"{name}.json"
    content = read_content(path)
    try:
        kind = content["kind"]
        if kind == LongTextTokenizer.kind:
            return LongTextTokenizer(load_tokenizer(folder, line_tokenizer_name(name)))
        if kind != FORM and kind in (settings := built_in_parts("tokenizer")):
            tokenizer: Tokenizer = (
                settings[kind].part_class().load(folder / f"{name}.model", content)
            )
            return tokenizer
        if is_extension("tokenizer", kind):
            return load_extension_tokenizer(content)
    except (KeyError, TypeError, ValueError, AssertionError, RuntimeError) as error:
        raise damaged_file_error(path) from error
    raise damaged_file_error(path)

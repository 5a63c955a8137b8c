"""Trains and loads tokenizers that are defined outside seqloom."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from seqloom.config.extensions.section import extension_section
from seqloom.config.schema.text import TokenizerExtensionConfig
from seqloom.core.errors import ConfigError
from seqloom.text.piece_tokenizer import PieceTokenizer
from seqloom.text.preprocessing import Preprocessing
from seqloom.text.vocabulary import Vocabulary


def train_extension_tokenizer(
    config: TokenizerExtensionConfig, lines: Iterable[str], preprocessing: Preprocessing
) -> PieceTokenizer:
    """Return a tokenizer whose vocabulary contains the most frequent pieces of these lines."""
    untrained = _build(config, Vocabulary(()), preprocessing)
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(untrained.split(line))
    if "" in counts:
        raise ConfigError(
            f"the tokenizer '{config.kind}' yields empty pieces; split_text must leave them out"
        )
    vocabulary = Vocabulary.from_counts(counts, preprocessing.tags.names, config.size)
    return _build(config, vocabulary, preprocessing)


def load_extension_tokenizer(content: dict[str, Any]) -> PieceTokenizer:
    """Create a tokenizer from the content of its JSON file."""
    section = extension_section(TokenizerExtensionConfig, content["kind"])
    config = section(kind=content["kind"], **content["options"])
    assert isinstance(config, TokenizerExtensionConfig)
    return _build(config, Vocabulary(content["pieces"]), Preprocessing.from_content(content))


def _build(
    config: TokenizerExtensionConfig, vocabulary: Vocabulary, preprocessing: Preprocessing
) -> PieceTokenizer:
    tokenizer = config.build_part(vocabulary=vocabulary, preprocessing=preprocessing)
    if not isinstance(tokenizer, PieceTokenizer):
        raise ConfigError(
            f"the tokenizer '{config.kind}' is a {type(tokenizer).__name__}, but a tokenizer must "
            "be a subclass of seqloom.text.PieceTokenizer"
        )
    tokenizer.kind = config.kind  # type: ignore[misc]  # the class may have several names
    tokenizer.options = config.extension_options
    return tokenizer

"""Tokenizers that are defined outside seqloom: their base class, training and loading."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from seqloom.config.extensions.section import extension_section
from seqloom.config.schema.text import TokenizerExtensionConfig
from seqloom.core.errors import ConfigError
from seqloom.extensions.identity import extension_version
from seqloom.text.tokenizer import Tags, content_digest
from seqloom.text.vocabulary import Vocabulary
from seqloom.text.vocabulary_tokenizer import VocabularyTokenizer


class PieceTokenizer(VocabularyTokenizer):
    """Base class of tokenizers outside seqloom. Subclasses implement `split_text`.

    The vocabulary, tags, lowercasing, saving and loading are the work of this class. The parameters
    of a subclass' constructor, other than `vocabulary`, `tags` and `lowercase`, are its settings.

    Decoding concatenates the pieces. A subclass whose pieces are not the text itself, for example
    because it leaves out spaces, also implements `surfaces`.
    """

    options: dict[str, Any] = {}  # noqa: RUF012 -- set on each tokenizer, never changed
    """The settings of the recipe."""

    def split_text(self, text: str) -> Iterable[str]:
        """Split a text without tags into pieces. A piece must not be empty."""
        raise NotImplementedError

    def split(self, text: str) -> Iterator[str]:
        normalised = self.tags.lower(text) if self.lowercase else text
        for part, is_tag in self.tags.split(normalised):
            if is_tag:
                yield part
            else:
                yield from self.split_text(part)

    def _content(self) -> dict[str, Any]:
        return {**super()._content(), "options": self.options}

    @property
    def digest(self) -> str:
        """See `Tokenizer.digest`. The code of the tokenizer determines the ids, too."""
        return content_digest({**self._content(), "code": extension_version(type(self)).sha256})


def train_extension_tokenizer(
    config: TokenizerExtensionConfig, lines: Iterable[str], tags: Tags, lowercase: bool
) -> PieceTokenizer:
    """Count the pieces of these lines and keep the most frequent ones."""
    untrained = _build(config, Vocabulary(()), tags, lowercase)
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(untrained.split(line))
    if "" in counts:
        raise ConfigError(
            f"the tokenizer '{config.kind}' yields empty pieces; split_text must leave them out"
        )
    vocabulary = Vocabulary.from_counts(counts, tags.names, config.size)
    return _build(config, vocabulary, tags, lowercase)


def load_extension_tokenizer(content: dict[str, Any]) -> PieceTokenizer:
    """Create a tokenizer from the content of its JSON file."""
    section = extension_section(TokenizerExtensionConfig, content["kind"])
    config = section(kind=content["kind"], **content["options"])
    assert isinstance(config, TokenizerExtensionConfig)
    vocabulary, tags = Vocabulary(content["pieces"]), Tags(content["tags"])
    return _build(config, vocabulary, tags, content["lowercase"])


def _build(
    config: TokenizerExtensionConfig, vocabulary: Vocabulary, tags: Tags, lowercase: bool
) -> PieceTokenizer:
    tokenizer = config.build_extension(vocabulary=vocabulary, tags=tags, lowercase=lowercase)
    if not isinstance(tokenizer, PieceTokenizer):
        raise ConfigError(
            f"the tokenizer '{config.kind}' is a {type(tokenizer).__name__}, but a tokenizer must "
            "be a subclass of seqloom.text.PieceTokenizer"
        )
    tokenizer.kind = config.kind  # type: ignore[misc]  # the class may have several names
    tokenizer.options = config.extension_options
    return tokenizer

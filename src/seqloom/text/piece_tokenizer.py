"""PieceTokenizer: the base class of tokenizers that are defined outside seqloom."""

from collections.abc import Iterable, Iterator
from typing import Any

from seqloom.extensions.identity import extension_version
from seqloom.text.tokenizer import content_digest
from seqloom.text.vocabulary_tokenizer import VocabularyTokenizer


class PieceTokenizer(VocabularyTokenizer):
    """Base class of tokenizers outside seqloom. Subclasses implement `split_text`.

    This class handles the vocabulary, tags, normalisation, lowercasing, saving and loading. If the
    constructor of a subclass has more parameters than `vocabulary` and `preprocessing`, the recipe
    can set the additional parameters.

    Decoding concatenates the pieces. If this does not restore the text, for example because the
    pieces leave out spaces, the subclass also implements `surfaces`, which returns the text that
    each piece adds to the decoded text.
    """

    options: dict[str, Any] = {}  # noqa: RUF012 -- set on each tokenizer, never changed
    """The settings of the recipe."""

    def split_text(self, text: str) -> Iterable[str]:
        """Split a text into pieces, which must not be empty.

        The text contains no tags such as <2de>: they have been split off.
        """
        raise NotImplementedError

    def split(self, text: str) -> Iterator[str]:
        for part, is_tag in self.preprocessing.split(text):
            if is_tag:
                yield part
            else:
                yield from self.split_text(part)

    def _content(self) -> dict[str, Any]:
        return {**super()._content(), "options": self.options}

    @property
    def digest(self) -> str:
        """SHA-256 of everything that determines token ids, such as vocabulary and source code."""
        return content_digest({**self._content(), "code": extension_version(type(self)).sha256})

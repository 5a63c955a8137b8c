"""Tokenizers: convert text to token ids and back. This package never imports torch.

The names of this package are imported from its modules on first use, because sentencepiece is slow
to load.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqloom.text.build import load_tokenizer, train_tokenizer
    from seqloom.text.long_text import LongTextTokenizer
    from seqloom.text.piece_tokenizer import PieceTokenizer
    from seqloom.text.preprocessing import Preprocessing, Tags
    from seqloom.text.subwords import SampledSubwordTokenizer, SubwordTokenizer
    from seqloom.text.tokenizer import Tokenizer
    from seqloom.text.vocabulary import END, PAD, SPECIAL_TOKENS, START, UNKNOWN, Vocabulary
    from seqloom.text.vocabulary_tokenizer import CharacterTokenizer, VocabularyTokenizer
    from seqloom.text.words import WhitespaceTokenizer, WordTokenizer

__all__ = [
    "END",
    "PAD",
    "SPECIAL_TOKENS",
    "START",
    "UNKNOWN",
    "CharacterTokenizer",
    "LongTextTokenizer",
    "PieceTokenizer",
    "Preprocessing",
    "SampledSubwordTokenizer",
    "SubwordTokenizer",
    "Tags",
    "Tokenizer",
    "Vocabulary",
    "VocabularyTokenizer",
    "WhitespaceTokenizer",
    "WordTokenizer",
    "load_tokenizer",
    "train_tokenizer",
]

_MODULES = {
    "CharacterTokenizer": "vocabulary_tokenizer",
    "END": "vocabulary",
    "LongTextTokenizer": "long_text",
    "PAD": "vocabulary",
    "PieceTokenizer": "piece_tokenizer",
    "Preprocessing": "preprocessing",
    "SPECIAL_TOKENS": "vocabulary",
    "START": "vocabulary",
    "SampledSubwordTokenizer": "subwords",
    "SubwordTokenizer": "subwords",
    "Tags": "preprocessing",
    "Tokenizer": "tokenizer",
    "UNKNOWN": "vocabulary",
    "Vocabulary": "vocabulary",
    "VocabularyTokenizer": "vocabulary_tokenizer",
    "WhitespaceTokenizer": "words",
    "WordTokenizer": "words",
    "load_tokenizer": "build",
    "train_tokenizer": "build",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'seqloom.text' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"seqloom.text.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__

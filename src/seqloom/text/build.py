"""From a [text] section to a tokenizer, and from a folder back to one."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import assert_never

from seqloom.config.text import (
    CharactersConfig,
    SubwordsConfig,
    TokenizerConfig,
    WhitespaceConfig,
    WordsConfig,
)
from seqloom.core.errors import DataError
from seqloom.text.characters import Characters
from seqloom.text.running import RunningText, inner_name
from seqloom.text.subwords import Subwords
from seqloom.text.tags import Tags
from seqloom.text.tokenizer import Tokenizer, damaged, read_content
from seqloom.text.whitespace import Whitespace
from seqloom.text.words import Words


def train_tokenizer(
    config: TokenizerConfig, lines: Iterable[str], tags: Sequence[str], lowercase: bool
) -> Tokenizer:
    """Learn a vocabulary from these lines, read once.

    Characters and words are counted: memory grows with the number of different ones. Subwords
    are learned from all lines, or from two million drawn at random if there are more. Lower case
    is part of the tokenizer: it folds whatever it is given.
    """
    known = Tags(tags)
    text = _some_text(lines)
    match config:
        case CharactersConfig():
            return Characters.train(text, known, lowercase)
        case WordsConfig(size=size, min_count=min_count):
            return Words.train(text, known, lowercase, size, min_count)
        case WhitespaceConfig(size=size):
            return Whitespace.train(text, known, lowercase, size)
        case SubwordsConfig(size=size, algorithm=algorithm):
            return Subwords.train(text, known, lowercase, size, algorithm)
        case _:
            assert_never(config)


def _some_text(lines: Iterable[str]) -> Iterator[str]:
    """The lines that are not blank, of which there must be one."""
    empty = True
    for line in lines:
        if line.strip():
            empty = False
            yield line
    if empty:
        raise DataError("there is no text to learn a vocabulary from: every training line is empty")


def load_tokenizer(folder: Path, name: str) -> Tokenizer:
    """The tokenizer that was saved in this folder under this name."""
    path = folder / f"{name}.json"
    content = read_content(path)
    try:
        match content["kind"]:
            case "characters":
                return Characters.from_content(content)
            case "words":
                return Words.from_content(content)
            case "whitespace":
                return Whitespace.from_content(content)
            case "running-text":
                return RunningText(load_tokenizer(folder, inner_name(name)))
            case "subwords":
                return Subwords.load(folder / f"{name}.model", content)
    except (KeyError, TypeError, ValueError, AssertionError, RuntimeError) as error:
        raise damaged(path) from error
    raise damaged(path)

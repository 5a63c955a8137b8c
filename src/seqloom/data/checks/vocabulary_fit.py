"""Measures how well the vocabulary of the parent fits the new data of a fine-tuning.

The parent is the run that fine-tuning starts from. Its vocabulary does not fit if many tokens of
the new data are unknown, or if it splits the words of the new data into more pieces (tokens) than
the words of the parent's data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import SeqloomError
from seqloom.data.checks.warnings import MAX_UNKNOWN, Finding
from seqloom.data.corpus.vocabularies import Tokenizers
from seqloom.data.example import Split
from seqloom.data.readers.splits import read_split
from seqloom.text.long_text import encode_target
from seqloom.text.vocabulary import UNKNOWN

MAX_EXAMPLES = 10_000
"""Maximum number of examples to count, from the start of the data."""
MAX_SPLITTING = 1.5
"""There is a warning if the mean number of pieces per word in the new data is more than this
multiple of the mean number in the parent's data."""

Side = Literal["source", "target"]


@dataclass
class PieceCounts:
    """Numbers of words, tokens and unknown tokens in a text."""

    words: int = 0
    tokens: int = 0
    unknown: int = 0

    def add(self, text: str, ids: Sequence[int]) -> None:
        self.words += len(text.split())
        self.tokens += len(ids)
        self.unknown += list(ids).count(UNKNOWN)

    @property
    def pieces_per_word(self) -> float:
        return self.tokens / max(self.words, 1)

    @property
    def unknown_share(self) -> float:
        return self.unknown / max(self.tokens, 1)


@dataclass(frozen=True)
class VocabularyFit:
    """Token counts of the sources or the targets, in the new data and in the parent's data. The
    parent is the run that fine-tuning starts from.

    new:    counts in the new data
    parent: counts in the parent's data; None if this data is not known or cannot be read
    """

    side: Side
    new: PieceCounts
    parent: PieceCounts | None


def measure_fit(data: DataConfig, tokenizers: Tokenizers) -> list[VocabularyFit]:
    """Count the tokens in the new data and in the data of the parent.

    The parent is the run that fine-tuning starts from. Returns one `VocabularyFit` for the sources,
    if they are text, and one for the targets. Returns [] if the new data cannot be read.
    """
    new = _count(data.model_copy(update={"replay": None}), "train", tokenizers)
    parent = None
    if data.parent_data is not None:
        parent = _count(data.parent_data, "train", tokenizers)
        if parent is None and data.parent_data.dev:
            parent = _count(data.parent_data, "dev", tokenizers)
    if new is None:
        return []  # the dataset check reports why the data cannot be read
    return [
        VocabularyFit(side, counts, None if parent is None else parent.get(side))
        for side, counts in new.items()
    ]


def _count(
    data: DataConfig, split: Split, tokenizers: Tokenizers
) -> dict[Side, PieceCounts] | None:
    """Return the token counts of the sources and of the targets of a split.

    Return None if the data cannot be read.
    """
    counts: dict[Side, PieceCounts] = {}
    if tokenizers.source is not None:
        counts["source"] = PieceCounts()
    counts["target"] = PieceCounts()
    try:
        for example in islice(read_split(data, split), MAX_EXAMPLES):
            if tokenizers.source is not None:
                source = example.source.strip()
                counts["source"].add(source, tokenizers.source.encode(source))
            ids = encode_target(tokenizers.target, example.target)
            counts["target"].add(example.target, ids)
    except SeqloomError:
        return None
    return counts


def fit_warnings(fits: Sequence[VocabularyFit]) -> Iterator[Finding]:
    """Yield a warning if the vocabulary of the parent does not fit the sources, and a warning if
    it does not fit the targets. The parent is the run that fine-tuning starts from."""
    for fit in fits:
        if fit.new.unknown_share > MAX_UNKNOWN:
            yield Finding(
                "warning",
                f"data.train ({fit.side})",
                f"{fit.new.unknown_share:.1%} of the tokens are unknown to the vocabulary of the "
                "parent, and fine-tuning cannot learn them",
                "train a new model on all data together, or replace these characters or words",
            )
        elif (
            fit.parent is not None
            and fit.new.pieces_per_word > MAX_SPLITTING * fit.parent.pieces_per_word
        ):
            yield Finding(
                "warning",
                f"data.train ({fit.side})",
                f"a word has {fit.new.pieces_per_word:.2f} pieces, but "
                f"{fit.parent.pieces_per_word:.2f} in the data of the parent: the vocabulary of the "
                "parent splits the new words into many pieces",
                "expect slower training and lower scores than with a vocabulary of the new data",
            )

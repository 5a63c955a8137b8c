"""Wish: what is asked about texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from seqloom.core.errors import DataError

Probabilities = Literal["unasked", "score", "steps"]
"""How probable an output is: of no interest, as its score, or piece by piece too."""


@dataclass(frozen=True)
class Wish:
    """What is wanted for each text.

    n_best:        outputs
    attention:     where each piece looked, too
    prefixes:      how each output must begin, in words; a blank one leaves it free
    first:         the number of the first text, if these are a portion of a longer list: errors
                   name lines by it and samples depend on it, so that portions may be cut anywhere
    probabilities: torch knows all of them anyway. To CTranslate2 each step of detail is more work:
                   unasked, its greedy search gives no score (NaN)
    to:            the target language, where a run has learned several; several of them: first to
                   one, then from there to the next. None: each text says it by its tag
    heads:         with attention: that of each layer and head, too
    """

    n_best: int = 1
    attention: bool = True
    prefixes: Sequence[str] | None = None
    first: int = 0
    probabilities: Probabilities = "steps"
    to: str | Sequence[str] | None = None
    heads: bool = False


WORDS_ALONE = Wish(attention=False, probabilities="unasked")
WORDS_LOOKED_AT = Wish()


def refuse_other_than_texts(texts: Sequence[str | Path]) -> None:
    if isinstance(texts, str | Path):
        raise DataError("texts come as a list, even a single one: write [text] instead of text")
    for number, text in enumerate(texts):
        if not isinstance(text, str | Path):
            raise DataError(
                f"text {number} of the list, counted from 0, is no str but {text!r:.60}"
            )

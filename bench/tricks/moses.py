"""BLEU as the published Multi30k figures have it: of lower-cased, Moses-tokenised text.

Both sides are treated as the data set's own script treats them (lower case, punctuation
normalised, Moses tokeniser), and BLEU is computed on what is then between the spaces. Needs
sacremoses; without it there is no such figure.

    python -m bench.tricks.moses OUTPUTS REFERENCES LANGUAGE      files, a sentence a line; or .gz
"""

import gzip
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqloom.metrics.bleu import bleu


def tokenised(lines: Sequence[str], language: str) -> list[str] | None:
    """Each line as the published systems saw it; None if sacremoses is not installed."""
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer
    except ImportError:
        return None
    clean, cut = MosesPunctNormalizer(lang=language), MosesTokenizer(lang=language)
    return [cut.tokenize(clean.normalize(line.lower()), return_str=True) for line in lines]


def moses_bleu(
    outputs: Sequence[str], references: Sequence[str], language: str
) -> tuple[float, Any] | None:
    """The score, and its signature with how the text was cut."""
    both = [tokenised(lines, language) for lines in (outputs, references)]
    if both[0] is None or both[1] is None:
        return None
    score = bleu(both[0], [[line] for line in both[1]], tokenize="none")
    return score.value, f"{score.signature}, lower-cased, normalised and tokenised by sacremoses"


def _lines(name: str) -> list[str]:
    data = Path(name).read_bytes()
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode().splitlines()


def main() -> None:
    outputs, references, language = sys.argv[1:]
    score = moses_bleu(_lines(outputs), _lines(references), language)
    print("sacremoses is not installed" if score is None else f"BLEU {score[0]:.2f} ({score[1]})")


if __name__ == "__main__":
    main()

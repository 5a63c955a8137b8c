"""BLEU of lower-cased, Moses-tokenised text, as published for Multi30k.

Outputs and references are lower-cased, their punctuation is normalised, and the Moses tokeniser
splits them, as in the script of the data set. BLEU is computed on the tokens between spaces.
Requires sacremoses.

    python -m bench.tricks.moses OUTPUTS REFERENCES LANGUAGE      files with one sentence per line, plain or .gz
"""

import gzip
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqloom.metrics.bleu import bleu


def moses_tokenise(lines: Sequence[str], language: str) -> list[str] | None:
    """Lower-case, normalise and tokenise each line. None if sacremoses is not installed."""
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer
    except ImportError:
        return None
    normaliser, tokeniser = MosesPunctNormalizer(lang=language), MosesTokenizer(lang=language)
    normalised = [normaliser.normalize(line.lower()) for line in lines]
    return [tokeniser.tokenize(line, return_str=True) for line in normalised]


def moses_bleu(
    outputs: Sequence[str], references: Sequence[str], language: str
) -> tuple[float, Any] | None:
    """The score and its signature, which names the tokenisation. None without sacremoses."""
    hypotheses = moses_tokenise(outputs, language)
    targets = moses_tokenise(references, language)
    if hypotheses is None or targets is None:
        return None
    score = bleu(hypotheses, [[line] for line in targets], tokenize="none")
    return score.value, f"{score.signature}, lower-cased, normalised and tokenised by sacremoses"


def _read_lines(name: str) -> list[str]:
    data = Path(name).read_bytes()
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode().splitlines()


def main() -> None:
    outputs, references, language = sys.argv[1:]
    score = moses_bleu(_read_lines(outputs), _read_lines(references), language)
    print("sacremoses is not installed" if score is None else f"BLEU {score[0]:.2f} ({score[1]})")


if __name__ == "__main__":
    main()

"""Scores of single sentences, and the words in which two of them differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from seqloom.metrics.bleu import chrf_metric, sentence_bleu_metric


def sentence_chrf(output: str, references: Sequence[str], lowercase: bool = False) -> float:
    """chrF2 of one sentence, 0 to 100, by sacrebleu."""
    return float(chrf_metric(lowercase).sentence_score(output, list(references)).score)


def sentence_bleu(output: str, references: Sequence[str], lowercase: bool = False) -> float:
    """BLEU of one sentence, 0 to 100, by sacrebleu: smoothed, and without the orders that it is too
    short for."""
    return float(sentence_bleu_metric(lowercase).sentence_score(output, list(references)).score)


@dataclass(frozen=True)
class Part:
    """Some words of two texts: the same in both, or what one says where the other says this."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]

    @property
    def same(self) -> bool:
        return self.ours == self.theirs


def word_difference(ours: str, theirs: str) -> list[Part]:
    """Two texts side by side: all their words, in order, in as long equal parts as can be found."""
    one, other = ours.split(), theirs.split()
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return [Part(tuple(one[a:b]), tuple(other[c:d])) for _, a, b, c, d in matcher.get_opcodes()]

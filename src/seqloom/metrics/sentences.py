"""Scores of single sentences, and the words in which two of them differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from seqloom.metrics.bleu import chrf_metric


def sentence_chrf(output: str, references: Sequence[str], lowercase: bool = False) -> float:
    """chrF2 of one sentence, 0 to 100, by sacrebleu."""
    return float(chrf_metric(lowercase).sentence_score(output, list(references)).score)


def each_chrf(outputs: Sequence[str], references: Sequence[str]) -> list[float]:
    """chrF2, 0 to 100, by sacrebleu, of several outputs that all have these references."""
    return _each(CHRF(references=[[one] for one in references]), outputs)


def each_bleu(outputs: Sequence[str], references: Sequence[str]) -> list[float]:
    """The same for BLEU of a sentence: smoothed, and without the orders that it is too short for."""
    kept = [[one] for one in references]
    return _each(BLEU(force=True, effective_order=True, references=kept), outputs)


def _each(metric: BLEU | CHRF, outputs: Sequence[str]) -> list[float]:
    """Each as a corpus of one sentence: so the references are counted once for all of them."""
    return [float(metric.corpus_score([output], None).score) for output in outputs]


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

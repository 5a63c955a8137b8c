"""Scores of single sentences, and the words in which two sentences differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from seqloom.metrics.bleu import bleu_metric, chrf_metric


def sentence_chrf(output: str, references: Sequence[str], lowercase: bool = False) -> float:
    """chrF2 of one sentence, 0 to 100, by sacrebleu."""
    return float(chrf_metric(lowercase).sentence_score(output, list(references)).score)


# The two functions below score each output as a corpus of one sentence. sacrebleu then counts the
# n-grams of the references only once for all outputs.


def sentence_chrf_scores(outputs: Sequence[str], references: Sequence[str]) -> list[float]:
    """Sentence chrF2 of each output, 0 to 100, by sacrebleu. All outputs share the references."""
    metric = chrf_metric(references=[[reference] for reference in references])
    return [float(metric.corpus_score([output], None).score) for output in outputs]


def sentence_bleu_scores(outputs: Sequence[str], references: Sequence[str]) -> list[float]:
    """Sentence BLEU of each output, 0 to 100, by sacrebleu. All outputs share the references.

    BLEU is smoothed, and n-grams that are longer than the output do not count.
    """
    columns = [[reference] for reference in references]
    metric = bleu_metric(effective_order=True, references=columns)
    return [float(metric.corpus_score([output], None).score) for output in outputs]


@dataclass(frozen=True)
class DiffSpan:
    """One part of a comparison of two texts: words that are equal, or words that differ.

    ours:   consecutive words of the first text; empty if only the second text has words here
    theirs: consecutive words of the second text; empty if only the first text has words here
    """

    ours: tuple[str, ...]
    theirs: tuple[str, ...]

    @property
    def same(self) -> bool:
        return self.ours == self.theirs


def diff_words(ours: str, theirs: str) -> list[DiffSpan]:
    """Compare the words of two texts. Return spans of equal and of different words, in order.

    Together, the spans contain all words of both texts.
    """
    our_words, their_words = ours.split(), theirs.split()
    matcher = SequenceMatcher(None, our_words, their_words, autojunk=False)
    return [
        DiffSpan(tuple(our_words[a:b]), tuple(their_words[c:d]))
        for _, a, b, c, d in matcher.get_opcodes()
    ]

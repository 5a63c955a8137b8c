"""BLEU, chrF and TER, computed by sacrebleu so that they are comparable with published scores.

sacrebleu is imported on first use, because importing it takes longer than importing this package.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

from seqloom.metrics.score import References, Score, check_references

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacrebleuMetric
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

_WORD = re.compile(r"[\w'-]*\w[\w'-]*")
_WORD_OR_MARK = re.compile(rf"{_WORD.pattern}|\S")

BleuTokenizer = Literal["13a", "char", "zh", "none"]
"""sacrebleu tokenizers for BLEU that work without a download."""


def bleu_metric(
    lowercase: bool = False,
    tokenize: BleuTokenizer = "13a",
    max_ngram_order: int = 4,
    effective_order: bool = False,
    references: Sequence[Sequence[str]] | None = None,
) -> "BLEU":
    """Return sacrebleu's BLEU metric.

    effective_order: True to ignore n-gram lengths larger than the hypothesis. Scores of single
                     sentences need this. Default: False
    references:      the references, in the format of `reference_columns`. Pass them if the metric
                     scores several sets of outputs with the same references. sacrebleu then counts
                     the n-grams of the references only once. Default: None
    """
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(
        lowercase=lowercase,
        tokenize=tokenize,
        max_ngram_order=max_ngram_order,
        effective_order=effective_order,
        references=references,
        force=True,  # only disables a warning about text that seems to be tokenised
    )


def chrf_metric(
    lowercase: bool = False, references: Sequence[Sequence[str]] | None = None
) -> "CHRF":
    """Return sacrebleu's chrF metric.

    references: the references, in the format of `reference_columns`. Pass them if the metric scores
                several sets of outputs with the same references. sacrebleu then counts the n-grams
                of the references only once. Default: None
    """
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(lowercase=lowercase, references=references)


def reference_columns(references: References) -> list[list[str]]:
    """Convert references to the columns that sacrebleu expects.

    The first column contains the first reference of each sentence, the second column the second
    reference, and so on. A missing reference is None, which sacrebleu skips, although its type
    annotations do not allow None.
    """
    columns: list[list[str]] = [list(column) for column in zip_longest(*references)]
    return columns


def _score(
    metric: "SacrebleuMetric",
    hypotheses: Sequence[str],
    references: References,
    higher_is_better: bool,
) -> Score:
    check_references(hypotheses, references)
    result = metric.corpus_score(hypotheses, reference_columns(references))
    signature = metric.get_signature().format()
    return Score(result.name, float(result.score), signature, higher_is_better)


def bleu(
    hypotheses: Sequence[str],
    references: References,
    lowercase: bool = False,
    tokenize: BleuTokenizer = "13a",
) -> Score:
    """Corpus BLEU, 0 to 100 (Papineni et al. 2002): the geometric mean of the precisions of 1- to
    4-grams, times a penalty for short outputs."""
    return _score(bleu_metric(lowercase, tokenize), hypotheses, references, True)


def tokenised_bleu(
    hypotheses: Sequence[str], references: References, lowercase: bool = False
) -> Score:
    """Corpus BLEU of tokenised text, in which white space separates words.

    sacrebleu does not tokenise the text again. The signature of the score contains `tok:none`.
    """
    score = bleu(hypotheses, references, lowercase, tokenize="none")
    return replace(score, name="BLEU tokenised")


def lowercased_bleu(hypotheses: Sequence[str], references: References) -> Score:
    """Case-insensitive corpus BLEU. The signature of the score contains `case:lc`."""
    score = bleu(hypotheses, references, lowercase=True)
    return replace(score, name="BLEU lower-cased")


def mean_sentence_bleu(
    hypotheses: Sequence[str], references: References, lowercase: bool = False
) -> Score:
    """Mean of the BLEU scores of all sentences, 0 to 100. White space separates words.

    This score is used for generated code. All outputs have the same weight, whatever their length.
    A correct output has a score of 100, even if it has fewer than four words.
    """
    check_references(hypotheses, references)
    metric = bleu_metric(lowercase, tokenize="none", effective_order=True)
    pairs = zip(hypotheses, references, strict=True)
    values = [metric.sentence_score(text, list(texts)).score for text, texts in pairs]
    signature = f"{metric.get_signature().format()}, mean of {len(values):,} sentences"
    return Score("BLEU of sentences", sum(values) / max(len(values), 1), signature, True)


def bleu_by_order(hypotheses: Sequence[str], references: References) -> list[Score]:
    """Corpus BLEU-1 to BLEU-4 of captions. BLEU-n uses n-grams of 1 to n words.

    Case and punctuation are ignored (Karpathy and Li 2015).
    """
    scores = []
    for order in (1, 2, 3, 4):
        score = _caption_bleu(hypotheses, references, order, _WORD)
        signature = f"{score.signature}, without punctuation"
        scores.append(replace(score, name=f"BLEU-{order}", signature=signature))
    return scores


def bleu_1_with_punctuation(hypotheses: Sequence[str], references: References) -> Score:
    """BLEU-1 of captions, as in many papers. Each punctuation mark counts as a word.

    Most captions end in a full stop, which is easy to predict and raises the score a little.
    """
    score = _caption_bleu(hypotheses, references, 1, _WORD_OR_MARK)
    return replace(score, name="BLEU-1 with punctuation")


def _caption_bleu(
    hypotheses: Sequence[str], references: References, order: int, word: re.Pattern[str]
) -> Score:
    """Return case-insensitive corpus BLEU with n-grams of 1 to `order` words.

    word: regular expression that matches one word. Other text is ignored
    """
    check_references(hypotheses, references)
    tokenised = [" ".join(word.findall(text)) for text in hypotheses]
    tokenised_references = [
        [" ".join(word.findall(text)) for text in texts] for texts in references
    ]
    metric = bleu_metric(lowercase=True, tokenize="none", max_ngram_order=order)
    return _score(metric, tokenised, tokenised_references, True)


def chrf(hypotheses: Sequence[str], references: References, lowercase: bool = False) -> Score:
    """Corpus chrF2, 0 to 100 (Popović 2015): an F-score over character n-grams of length 1 to 6,
    in which recall is twice as important as precision."""
    return _score(chrf_metric(lowercase), hypotheses, references, True)


def ter(hypotheses: Sequence[str], references: References) -> Score:
    """Translation edit rate: edits per hundred words of the reference (Snover et al. 2006).

    A shift of a phrase counts as one edit. Lower is better. Case is ignored, which is the default
    of sacrebleu.
    """
    from sacrebleu.metrics.ter import TER

    return _score(TER(), hypotheses, references, False)

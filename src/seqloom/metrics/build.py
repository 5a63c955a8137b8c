"""Maps the name of a score in a recipe to the function that computes it."""

from collections.abc import Sequence
from functools import partial
from typing import assert_never

from seqloom.config.schema.names import ScoreName
from seqloom.metrics.bleu import bleu, chrf, mean_sentence_bleu, ter, tokenised_bleu
from seqloom.metrics.classification import accuracy, macro_f1
from seqloom.metrics.error_rates import (
    exact_match,
    phoneme_error_rate,
    token_accuracy,
    tokenised_match,
    word_error_rate,
)
from seqloom.metrics.rouge import rouge
from seqloom.metrics.score import Metric, References, Score


def build_metric(name: ScoreName, lowercase: bool) -> Metric:
    """Return the metric with this name.

    lowercase: True if the outputs are lower-cased. The metric then lower-cases the references too,
               and the signatures of BLEU and chrF mention it.
    """
    metric = _build(name, lowercase)
    return partial(_lowercase_references, metric) if lowercase else metric


def _lowercase_references(
    metric: Metric, hypotheses: Sequence[str], references: References
) -> Score:
    return metric(hypotheses, [tuple(text.lower() for text in texts) for texts in references])


def _build(name: ScoreName, lowercase: bool) -> Metric:
    match name:
        case "bleu":
            return partial(bleu, lowercase=lowercase)
        case "bleu-tokenised":
            return partial(tokenised_bleu, lowercase=lowercase)
        case "bleu-of-sentences":
            return partial(mean_sentence_bleu, lowercase=lowercase)
        case "chrf2":
            return partial(chrf, lowercase=lowercase)
        case "ter":
            return ter
        case "exact-match":
            return exact_match
        case "exact-match-tokenised":
            return tokenised_match
        case "token-accuracy":
            return token_accuracy
        case "phoneme-error-rate":
            return phoneme_error_rate
        case "word-error-rate":
            return word_error_rate
        case "accuracy":
            return accuracy
        case "macro-f1":
            return macro_f1
        case "rouge-1" | "rouge-2" | "rouge-l":
            return partial(rouge, name)
        case _:
            assert_never(name)

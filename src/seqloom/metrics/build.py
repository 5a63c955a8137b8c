"""Maps the name of a score in a recipe to the function that computes it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any

from seqloom.config.extensions.section import MetricExtensionConfig, find_metric
from seqloom.config.schema.names import ExtensionName, ScoreName
from seqloom.core.errors import DataError
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
from seqloom.metrics.score import Metric, References, Score, check_references


def build_metric(name: ScoreName | ExtensionName, lowercase: bool) -> Metric:
    """Return the metric with this name.

    lowercase: True if the outputs are lower-cased. The metric then lower-cases the references too.
    """
    metric = _build(name, lowercase)
    return partial(_lowercase_references, metric) if lowercase else metric


def _lowercase_references(
    metric: Metric, hypotheses: Sequence[str], references: References
) -> Score:
    return metric(hypotheses, [tuple(text.lower() for text in texts) for texts in references])


def _build(name: ScoreName | ExtensionName, lowercase: bool) -> Metric:
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
        case "rouge-1":
            return partial(rouge, "rouge-1")
        case "rouge-2":
            return partial(rouge, "rouge-2")
        case "rouge-l":
            return partial(rouge, "rouge-l")
        case _:
            return partial(extension_score, find_metric(name))


def extension_score(
    metric: MetricExtensionConfig, hypotheses: Sequence[str], references: References
) -> Score:
    """Call a metric that is defined outside seqloom, and return its result as a `Score`.

    The metric returns a number or a `Score`. The name of the result is the metric's name in the
    recipe. If the metric returns a number, its attribute `higher_is_better` says whether higher
    values are better. Default of this attribute: True.
    """
    check_references(hypotheses, references)
    result: Any = metric.extension_target(hypotheses=hypotheses, references=references)
    if isinstance(result, Score):
        return replace(result, name=metric.kind)
    if not isinstance(result, Real) or not math.isfinite(result):
        raise DataError(
            f"the metric '{metric.kind}' returned {result!r}; it must return a finite number or a "
            "seqloom.metrics.Score"
        )
    is_higher_better = getattr(metric.extension_target, "higher_is_better", True)
    return Score(metric.kind, float(result), None, is_higher_better)

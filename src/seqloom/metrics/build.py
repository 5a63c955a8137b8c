"""The name of a score → the function that computes it."""

from collections.abc import Sequence
from functools import partial
from typing import assert_never

from seqloom.config.schema.names import ScoreName
from seqloom.metrics.bleu import bleu, chrf, sentence_bleu, ter, tokenised_bleu
from seqloom.metrics.edits import phoneme_error_rate, word_error_rate
from seqloom.metrics.labels import accuracy, macro_f1
from seqloom.metrics.overlap import exact_match, token_accuracy, tokenised_match
from seqloom.metrics.rouge import rouge
from seqloom.metrics.score import Metric, References, Score


def build_metric(name: ScoreName, lowercase: bool) -> Metric:
    """lowercase: text is folded to lower case, so references are, too, and signatures say so"""
    plain = _plain(name, lowercase)
    return partial(_folded, plain) if lowercase else plain


def _folded(metric: Metric, hypotheses: Sequence[str], references: References) -> Score:
    return metric(hypotheses, [tuple(one.lower() for one in several) for several in references])


def _plain(name: ScoreName, lowercase: bool) -> Metric:
    match name:
        case "bleu":
            return partial(bleu, lowercase=lowercase)
        case "bleu-tokenised":
            return partial(tokenised_bleu, lowercase=lowercase)
        case "bleu-of-sentences":
            return partial(sentence_bleu, lowercase=lowercase)
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

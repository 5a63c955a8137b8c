"""Metrics that score outputs. They take strings or numbers and do not depend on a model.

bleu(["a dog barks"], [["the dog barks"]]).value
"""

from seqloom.metrics.alignment import Alignment, align_words, symmetrise
from seqloom.metrics.alignment_error import AlignmentScores, GoldLinks, score_alignments
from seqloom.metrics.bleu import (
    bleu,
    bleu_1_with_punctuation,
    bleu_by_order,
    chrf,
    lowercased_bleu,
    mean_sentence_bleu,
    ter,
    tokenised_bleu,
)
from seqloom.metrics.build import build_metric
from seqloom.metrics.by_length import LengthBucket, by_length
from seqloom.metrics.classification import accuracy, macro_f1
from seqloom.metrics.error_rates import (
    edit_distance,
    exact_match,
    phoneme_error_rate,
    token_accuracy,
    tokenised_match,
    word_error_rate,
)
from seqloom.metrics.likelihood import (
    Likelihood,
    bits_per_character,
    bits_per_token,
    nats_per_character,
    nats_per_token,
    perplexity,
    perplexity_per_word,
)
from seqloom.metrics.mbr_utility import expected_utility, pairwise_utility
from seqloom.metrics.rouge import rouge
from seqloom.metrics.sari import sari
from seqloom.metrics.score import Metric, References, Score
from seqloom.metrics.sentence_scores import DiffSpan, diff_words, sentence_chrf
from seqloom.metrics.significance import PairedComparison, compare_systems
from seqloom.metrics.subword_merging import AttentionMap, merge_words
from seqloom.metrics.trajectory import (
    absolute_error,
    average_displacement,
    final_displacement,
    squared_error,
)

__all__ = [
    "Alignment",
    "AlignmentScores",
    "AttentionMap",
    "DiffSpan",
    "GoldLinks",
    "LengthBucket",
    "Likelihood",
    "Metric",
    "PairedComparison",
    "References",
    "Score",
    "absolute_error",
    "accuracy",
    "align_words",
    "average_displacement",
    "bits_per_character",
    "bits_per_token",
    "bleu",
    "bleu_1_with_punctuation",
    "bleu_by_order",
    "build_metric",
    "by_length",
    "chrf",
    "compare_systems",
    "diff_words",
    "edit_distance",
    "exact_match",
    "expected_utility",
    "final_displacement",
    "lowercased_bleu",
    "macro_f1",
    "mean_sentence_bleu",
    "merge_words",
    "nats_per_character",
    "nats_per_token",
    "pairwise_utility",
    "perplexity",
    "perplexity_per_word",
    "phoneme_error_rate",
    "rouge",
    "sari",
    "score_alignments",
    "sentence_chrf",
    "squared_error",
    "symmetrise",
    "ter",
    "token_accuracy",
    "tokenised_bleu",
    "tokenised_match",
    "word_error_rate",
]

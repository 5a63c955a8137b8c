"""Sets of valid names, such as the names of scores.

The schema of recipes and the help texts of the command line use them. This module must not import
pydantic, which would slow down the help of every command.
"""

from dataclasses import dataclass
from typing import Literal, NewType

EngineKind = Literal["auto", "torch", "compiled", "ctranslate2"]
StoppingRule = Literal["count", "estimate", "bound"]
"""When beam search stops, see the setting decoding.stopping."""
ScoreName = Literal[
    "bleu",
    "bleu-tokenised",
    "bleu-of-sentences",
    "chrf2",
    "ter",
    "exact-match",
    "exact-match-tokenised",
    "token-accuracy",
    "phoneme-error-rate",
    "word-error-rate",
    "accuracy",
    "macro-f1",
    "rouge-1",
    "rouge-2",
    "rouge-l",
    "sari",
]
"""Scores of outputs, by their names in recipes and event logs."""


@dataclass(frozen=True)
class MetricFacts:
    """What seqloom knows about a metric before it imports its module.

    builds:           the function that computes the score, in the form "module:name"
    label:            name in tables. Default: the name in recipes, with spaces
    higher_is_better: False for error rates
    is_slow:          True if the score can take longer than the training steps between two
                      evaluations. Evaluations during training leave it out
    reads_sources:    True if the function compares outputs with their sources, too
    """

    builds: str
    label: str = ""
    higher_is_better: bool = True
    is_slow: bool = False
    reads_sources: bool = False


METRICS: dict[str, MetricFacts] = {
    "bleu": MetricFacts("seqloom.metrics.bleu:bleu", label="BLEU"),
    "bleu-tokenised": MetricFacts("seqloom.metrics.bleu:tokenised_bleu"),
    "bleu-of-sentences": MetricFacts("seqloom.metrics.bleu:mean_sentence_bleu"),
    "chrf2": MetricFacts("seqloom.metrics.bleu:chrf", label="chrF2"),
    # TER tries every shift of every phrase, for each reference.
    "ter": MetricFacts(
        "seqloom.metrics.bleu:ter", label="TER", higher_is_better=False, is_slow=True
    ),
    "exact-match": MetricFacts("seqloom.metrics.error_rates:exact_match"),
    "exact-match-tokenised": MetricFacts("seqloom.metrics.error_rates:tokenised_match"),
    "token-accuracy": MetricFacts("seqloom.metrics.error_rates:token_accuracy"),
    "phoneme-error-rate": MetricFacts(
        "seqloom.metrics.error_rates:phoneme_error_rate", higher_is_better=False
    ),
    "word-error-rate": MetricFacts(
        "seqloom.metrics.error_rates:word_error_rate", higher_is_better=False
    ),
    "accuracy": MetricFacts("seqloom.metrics.classification:accuracy"),
    "macro-f1": MetricFacts("seqloom.metrics.classification:macro_f1", label="macro F1"),
    "rouge-1": MetricFacts("seqloom.metrics.rouge:rouge_1"),
    "rouge-2": MetricFacts("seqloom.metrics.rouge:rouge_2"),
    "rouge-l": MetricFacts("seqloom.metrics.rouge:rouge_l"),
    "sari": MetricFacts("seqloom.metrics.sari:sari", reads_sources=True),
}
"""The metrics of seqloom, by their names in recipes (`ScoreName`)."""
ExtensionName = NewType("ExtensionName", str)
"""A metric outside seqloom: "module:name" or a registered name."""
ModelPart = Literal["embeddings", "encoder", "decoder", "cross-attention", "output"]
"""Parts of a model that training.freeze can name."""

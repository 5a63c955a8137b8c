"""Names that both the command line's help and the schema know. Nothing heavy is imported here."""

from typing import Literal

EngineKind = Literal["auto", "torch", "compiled", "ctranslate2"]
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
]
"""How outputs can be compared with references, as recipes and journals name it."""
SourceScoreName = Literal["sari"]
"""Scores that compare outputs with their sources, too."""

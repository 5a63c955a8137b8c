"""Sets of valid names, such as the names of scores.

The schema of recipes and the help texts of the command line use them. This module must not import
pydantic, which would slow down the help of every command.
"""

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
]
"""Scores that compare outputs with references, by their names in recipes and event logs."""
SourceScoreName = Literal["sari"]
"""Scores that compare outputs with their sources and with references."""
ExtensionName = NewType("ExtensionName", str)
"""A metric outside seqloom: "module:name" or a registered name."""
ModelPart = Literal["embeddings", "encoder", "decoder", "cross-attention", "output"]
"""Parts of a model that training.freeze can name."""

"""Extensions: classes and functions, defined outside seqloom, that a recipe uses.

A recipe names an extension as `kind = "module:Name"`, or by a name that was registered. There are
two ways to register a name:

- an entry point of an installed package, in the group `seqloom.score` (or `seqloom.metric`, …)
- a decorator of this package, `score` (or `metric`, …), in code that is imported before the recipe
  is loaded:

    from seqloom import extensions

    @extensions.score("cosine")
    class Cosine(AttentionScore): ...

docs/extending.md describes what each kind of extension receives and returns. This package never
imports torch.
"""

from seqloom.extensions.registry import (
    decoder,
    encoder,
    metric,
    reader,
    rule,
    score,
    tokenizer,
)

__all__ = ["decoder", "encoder", "metric", "reader", "rule", "score", "tokenizer"]

"""Checks whether other toolkits can split text as the tokenizers of a run do."""

from collections.abc import Iterator

from seqloom.text.subwords import SubwordTokenizer
from seqloom.text.tokenizer import Tokenizer


def tokenizer_reasons(source: Tokenizer | None, target: Tokenizer) -> Iterator[str]:
    """Yield the reasons why a sentencepiece model alone cannot replace the tokenizers."""
    sides = {"text.tokenizer": source, "text.target_tokenizer": target}
    if source is not None and source.digest == target.digest:
        del sides["text.target_tokenizer"]
    for name, tokenizer in sides.items():
        if tokenizer is None:
            continue
        if not isinstance(tokenizer, SubwordTokenizer):
            kind = getattr(tokenizer, "kind", "unknown")
            yield f"{name}.kind: '{kind}' is not possible; train with kind = 'subwords'"
    if target.lowercase or (source is not None and source.lowercase):
        yield "text.lowercase: a sentencepiece model cannot lowercase; train with lowercase = false"
    if any(getattr(side, "normalization", "none") != "none" for side in (source, target)):
        yield (
            "text.normalization: a sentencepiece model cannot apply it; train with normalization = "
            "'none'"
        )

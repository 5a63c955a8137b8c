"""Checks whether other toolkits can split text as the tokenizers of a run do."""

from collections.abc import Iterator, Sequence

from seqloom.core.errors import ConfigError
from seqloom.inference.run import Run
from seqloom.text.subwords import SubwordTokenizer
from seqloom.text.tokenizer import Tokenizer


def tokenizer_reasons(source: Tokenizer | None, target: Tokenizer) -> Iterator[str]:
    """Yield a message for each setting of these tokenizers that sentencepiece cannot reproduce."""
    sides = {"text.tokenizer": source, "text.target_tokenizer": target}
    if source is not None and source.digest == target.digest:
        del sides["text.target_tokenizer"]
    for name, tokenizer in sides.items():
        if tokenizer is None:
            continue
        if not isinstance(tokenizer, SubwordTokenizer):
            kind = getattr(tokenizer, "kind", "unknown")
            yield f"{name}.kind: '{kind}' is not possible; train with kind = 'subwords'"
    rules = [side.preprocessing for side in (source, target) if side is not None]
    if any(rule.lowercase for rule in rules):
        yield "text.lowercase: a sentencepiece model cannot lowercase; train with lowercase = false"
    # Texts are usually in NFC already, so the model card can ask for it. NFKC changes common texts.
    if any(rule.normalization == "nfkc" for rule in rules):
        yield (
            "text.normalization: the exported tokenizer does not apply 'nfkc'; train with "
            "normalization = 'nfc'"
        )


def raise_reasons(run: Run, format_name: str, reasons: Sequence[str]) -> None:
    """Raise a ConfigError that lists the reasons why a run cannot be exported to a format.

    Do nothing if there are no reasons.
    """
    if reasons:
        listed = "\n".join(f"  {reason}" for reason in reasons)
        raise ConfigError(
            f"{run.folder}: this run cannot be exported to {format_name}:\n{listed}\n"
            'Train with preset = "exportable": such a run can be exported to every format.'
        )

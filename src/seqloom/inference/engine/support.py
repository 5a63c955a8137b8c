"""Checks whether CTranslate2 supports a model and a request, and lists the reasons if not."""

from collections.abc import Iterator

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig
from seqloom.core.signature import Signature, Tokens
from seqloom.inference.engine.translator import max_saved, ranks_differently
from seqloom.inference.options import PredictionOptions
from seqloom.models.seq2seq import Model
from seqloom.text.piece_tokenizer import PieceTokenizer
from seqloom.text.tokenizer import Tokenizer
from seqloom.text.words import WhitespaceTokenizer, WordTokenizer


def unsupported_model(model: Model) -> list[str]:
    """List the reasons why CTranslate2 cannot run this model. The list is empty if it can."""
    if model.encoder is None:
        return ["a language model has no encoder and runs on torch"]
    reasons = model.encoder.unsupported_by_ctranslate2("model.encoder")
    reasons += model.decoder.unsupported_by_ctranslate2("model.decoder")
    if model.decoder.copying is not None:
        reasons.append("model.decoder.copying: the copy mechanism is not supported")
    return reasons


def unsupported_request(
    decoding: DecodingConfig, options: PredictionOptions, signature: Signature, target: Tokenizer
) -> list[str]:
    """List the reasons why CTranslate2 would not return the same result as torch for a request.

    The list is empty if CTranslate2 supports the request.
    """
    assert isinstance(signature.target, Tokens)
    reasons = list(_unsupported_search(decoding, options, signature.target.count))
    if decoding.min_length:
        reasons.append(
            "decoding.min_length: CTranslate2 renormalises probabilities when it forbids END"
        )
    if decoding.no_repeat_ngram:
        reasons.append(
            "decoding.no_repeat_ngram: CTranslate2 renormalises probabilities when it forbids tokens"
        )
    if decoding.rules:
        names = ", ".join(f"'{rule.kind}'" for rule in decoding.rules)
        reasons.append(f"decoding.rules: only torch applies rules outside seqloom ({names})")
    has_words = isinstance(target, WordTokenizer | WhitespaceTokenizer | PieceTokenizer)
    if has_words and not decoding.allow_unknown:
        reasons.append(
            "decoding.allow_unknown: with a word vocabulary the unknown token is probable, and "
            "CTranslate2 renormalises probabilities when it forbids it"
        )
    if options.stores_attention:
        reasons.append("attention: only torch returns the weights of all layers and heads")
    if any(prefix.strip() for prefix in options.prefixes or ()):
        reasons.append("prefixes: CTranslate2 does not score the tokens of a prefix")
    return reasons


def _unsupported_search(
    decoding: DecodingConfig, options: PredictionOptions, vocabulary: int
) -> Iterator[str]:
    if not isinstance(decoding, GreedyConfig | BeamConfig):
        yield f"decoding.kind: '{decoding.kind}' runs only on torch"
    if isinstance(decoding, BeamConfig):
        if 2 * decoding.width > vocabulary:
            yield (
                f"decoding.width: a beam width of {decoding.width} needs a vocabulary of "
                f"{2 * decoding.width} or more, not {vocabulary}"
            )
        if decoding.stopping != "count" and decoding.width > 1:
            yield (
                f"decoding.stopping: CTranslate2 has no rule '{decoding.stopping}'; "
                "--set decoding.stopping=count stops earlier"
            )
        saved = max_saved(decoding)
        if options.n_best > saved:
            yield f"decoding.finished: {decoding.finished} returns fewer than {options.n_best} outputs"
        elif options.n_best == saved and ranks_differently(decoding):
            yield (
                f"decoding.length_counts_end: CTranslate2 counts END when it selects the {saved} "
                "best outputs; with length_counts_end = false, other outputs may be better. Set it "
                "to true, use a wider beam, or ask for fewer outputs"
            )

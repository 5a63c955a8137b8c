"""Why CTranslate2 cannot take a model, or a request: every reason at once."""

from collections.abc import Iterator

from torch import nn

from seqloom.config.decoding import BeamConfig, DecodingConfig, GreedyConfig
from seqloom.core.signature import Signature, Tokens
from seqloom.models.interface import DecoderModule
from seqloom.models.recurrent import RecurrentDecoder, RecurrentEncoder
from seqloom.models.seq2seq import Model
from seqloom.models.transformer import TransformerDecoder, TransformerEncoder
from seqloom.nn.attention import DotScore
from seqloom.nn.embedding import Embedder, LearnedLookup
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.positions import PositionTable
from seqloom.runs.wish import Wish
from seqloom.text.tokenizer import Tokenizer
from seqloom.text.whitespace import Whitespace
from seqloom.text.words import Words


def model_reasons(model: Model) -> list[str]:
    """What of this model CTranslate2 cannot express; empty if nothing."""
    if model.encoder is None:
        return ["a language model has no encoder, and stays on torch"]
    sides: tuple[tuple[str, nn.Module], ...] = (
        ("model.encoder", model.encoder),
        ("model.decoder", model.decoder),
    )
    return [reason for name, part in sides for reason in _part_reasons(name, part)]


def _part_reasons(name: str, part: nn.Module) -> Iterator[str]:
    if isinstance(part, RecurrentEncoder | RecurrentDecoder):
        yield f"{name} is recurrent, and CTranslate2 knows Transformers alone"
    elif not isinstance(part, TransformerEncoder | TransformerDecoder):
        yield f"{name} is no Transformer ({type(part).__name__}), and CTranslate2 knows no other"
    else:
        yield from _embedder_reasons(name, part.embedder)
        # All layers of a part are alike, and so are a decoder's two attentions.
        yield from _attention_reasons(f"{name}.attention", part.layers[0].attention)
        if any(layer.around_attention.gap for layer in part.layers):
            yield f"{name}.residual_gap: a layer without a way around it cannot be expressed"
    if isinstance(part, DecoderModule) and part.copying is not None:
        yield f"{name}.copying: a mixture with the source's tokens cannot be expressed"


def _embedder_reasons(name: str, embedder: Embedder) -> Iterator[str]:
    positions = embedder.positions
    if not isinstance(embedder.lookup, LearnedLookup):
        yield f"{name}.embedding: one-hot tokens cannot be expressed"
    if isinstance(positions, PositionTable) and positions.join == "append":
        yield f"{name}.positions: appended positions cannot be expressed, only added ones"
    elif not isinstance(embedder.fit, nn.Identity):
        yield f"{name}.embedding.width: a width of its own cannot be expressed"


def _attention_reasons(name: str, attention: MultiHeadAttention) -> Iterator[str]:
    plan = attention.plan
    if not isinstance(attention.score, DotScore):
        kind = type(attention.score).__name__.removesuffix("Score").lower()
        yield f"{name}.score: only dot products can be expressed, not '{kind}'"
    if plan.projection != "linear":
        yield f"{name}.projection: only 'linear' can be expressed, not '{plan.projection}'"
    if not plan.learned_values:
        yield f"{name}.values: only 'learned' can be expressed, not 'states'"
    if plan.merged_width is None:
        yield f"{name}.merge: heads that are not merged cannot be expressed"
    if attention.selection != "softmax":
        yield f"{name}.selection: only 'softmax' can be expressed"


def request_reasons(
    decoding: DecodingConfig, wish: Wish, signature: Signature, target: Tokenizer
) -> list[str]:
    """What of this request CTranslate2 cannot answer as we would; empty if nothing."""
    assert isinstance(signature.target, Tokens)
    reasons = list(_search_reasons(decoding, wish, signature.target.count))
    if decoding.min_length:
        reasons.append("decoding.min_length: forbidding END would change its probabilities")
    if decoding.no_repeat_ngram:
        reasons.append("decoding.no_repeat_ngram: forbidding tokens would change its probabilities")
    if isinstance(target, Words | Whitespace) and not decoding.allow_unknown:
        reasons.append(
            "decoding.allow_unknown: with a vocabulary of words the unknown token is probable, and "
            "forbidding it would change its probabilities"
        )
    if wish.attention:
        reasons.append("attention: where all layers and heads looked is known to torch alone")
    if any(prefix.strip() for prefix in wish.prefixes or ()):
        reasons.append("prefixes: it does not count what a beginning costs")
    return reasons


def _search_reasons(decoding: DecodingConfig, wish: Wish, vocabulary: int) -> Iterator[str]:
    if not isinstance(decoding, GreedyConfig | BeamConfig):
        yield f"decoding.kind: '{decoding.kind}' is done by torch alone"
    if isinstance(decoding, BeamConfig):
        if 2 * decoding.width > vocabulary:
            yield (
                f"decoding.width: a beam of {decoding.width} needs a vocabulary of "
                f"{2 * decoding.width} or more, not {vocabulary}"
            )
        if wish.n_best > (decoding.finished or decoding.width):
            yield f"decoding.finished: {decoding.finished} leaves fewer than {wish.n_best} outputs"

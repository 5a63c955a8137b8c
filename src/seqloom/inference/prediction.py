"""Prediction: a hypothesis converted to text, with its attention and alignment."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from torch import Tensor

from seqloom.decoding.hypothesis import PER_TOKEN, Hypothesis, LengthNormalisation
from seqloom.inference.attention_maps import AttentionReduction
from seqloom.inference.length_limits import cut_at_newline
from seqloom.metrics.alignment import align_words
from seqloom.metrics.subword_merging import NO_WORD, AttentionMap, merge_labels, merge_words
from seqloom.tasks.task import ModelInput
from seqloom.tasks.token_task import TokenTask
from seqloom.text.vocabulary import END, SPECIAL_TOKENS


@dataclass(frozen=True)
class OutputAttention:
    """The attention weights of an output, and what is computed from them.

    The fields have the names of the properties of `Prediction`, except `attention`, the mean over
    all layers and heads.
    """

    attention: Tensor | None = None
    heads: Tensor | None = None
    alignment: tuple[tuple[int, int], ...] = ()
    alignment_weights: Tensor | None = None
    word_of: tuple[int, ...] = ()
    source_word_of: tuple[int, ...] = ()
    source_text: str = ""


NO_ATTENTION = OutputAttention()


class LaterAttention(Protocol):
    """Computes the attention of an output when it is first read."""

    def compute(self) -> OutputAttention:
        """Raises a ConfigError if this is not possible any more."""
        ...


@dataclass(frozen=True)
class Prediction:
    """One output of a model.

    text:              the output text
    score:             log p / length^length_penalty. With minimum Bayes risk decoding, the expected
                       utility from 0 to 100. Higher is better. For a text of several segments, the
                       mean of their scores, weighted by their numbers of pieces.
    pieces:            the output tokens as text, followed by "</s>" if END was generated
    source_pieces:     the source tokens as text, followed by "</s>". For a source of frames, the
                       numbers of the frames, counted from 1. Empty for images and if there is no
                       source.
    log_probabilities: log-probability of each piece
    finished:          False if the output reached the length limit before END
    tokens:            token ids of the pieces
    warnings:          problems with the source or the output, for example that the source has no
                       tag although the run was trained with tags
    unknown:           the characters or words of the source that the vocabulary does not contain,
                       in order
    copied:            True if the source contains nothing to translate and was copied to the output
                       without the model. The score is then 0, and there are no pieces.
    copied_parts:      the parts of the text that were copied from the source, such as URLs, in
                       order. The model has not generated them.
    segments:          the outputs of the segments, if the text was split into several segments.
                       `inference/texts/joining.py` says how they are joined.
    attention_values:  the attention weights, or how to compute them. Read the properties
                       `attention`, `alignment`, … instead.
    """

    text: str
    score: float
    pieces: tuple[str, ...] = ()
    source_pieces: tuple[str, ...] = ()
    log_probabilities: tuple[float, ...] = ()
    finished: bool = True
    tokens: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    copied: bool = False
    copied_parts: tuple[str, ...] = ()
    segments: "tuple[Prediction, ...]" = ()
    attention_values: OutputAttention | LaterAttention = field(
        default=NO_ATTENTION, compare=False, repr=False
    )

    def read_attention(self) -> OutputAttention:
        """Return the attention weights. Computes them on the first call, if they are not stored."""
        values = self.attention_values
        if not isinstance(values, OutputAttention):
            values = values.compute()
            object.__setattr__(self, "attention_values", values)
        return values

    @property
    def attention(self) -> Tensor | None:
        """(pieces, source pieces) cross-attention, averaged over layers and heads.

        For an image, the columns are its grid cells in reading order. A row sums to 1. Exception:
        with the attention selection "exact", a row is 0 if no key equals the query. None if the
        model has no attention, or if the option `attention` is False.
        """
        return self.read_attention().attention

    @property
    def heads(self) -> Tensor | None:
        """(pieces, layers, heads, source pieces) attention of each layer and head.

        None if the option `heads` is False.
        """
        return self.read_attention().heads

    @property
    def alignment(self) -> tuple[tuple[int, int], ...]:
        """Pairs (index of source word, index of target word), from `alignment_weights`."""
        return self.read_attention().alignment

    @property
    def alignment_weights(self) -> Tensor | None:
        """(pieces, source pieces) mean attention of the heads selected for alignment.

        If no heads were selected, the mean of all heads.
        """
        return self.read_attention().alignment_weights

    @property
    def word_of(self) -> tuple[int, ...]:
        """For each piece, the index of its word in the text; -1 if it belongs to no word."""
        return self.read_attention().word_of

    @property
    def source_word_of(self) -> tuple[int, ...]:
        """For each source piece, the index of its word in the source text, or -1."""
        return self.read_attention().source_word_of

    @property
    def source_text(self) -> str:
        """The source text, decoded from its pieces.

        For a text of several segments, the source text as it was given.
        """
        return self.read_attention().source_text

    def with_attention(self, **changes: Any) -> "Prediction":
        """Return a copy with other values of some fields of `OutputAttention`."""
        return replace(self, attention_values=replace(self.read_attention(), **changes))

    def compute_attention_later(self, later: LaterAttention) -> None:
        """Set how the attention is computed when it is first read."""
        object.__setattr__(self, "attention_values", later)

    def to_json(self) -> dict[str, Any]:
        """Return the prediction as JSON-compatible values, with its attention.

        Leaves out the alignment weights, word indices, source text, token ids and segments. Leaves
        out `heads` if it is None.
        """
        names = ("text", "score", "pieces", "source_pieces", "log_probabilities", "attention")
        more = ("finished", "alignment", "warnings", "unknown", "copied", "copied_parts")
        values = {name: getattr(self, name) for name in (*names, *more)}
        attention = None if self.attention is None else self.attention.tolist()
        heads = {} if self.heads is None else {"heads": self.heads.tolist()}
        return {**values, "attention": attention, **heads}

    def attention_map(self, weights: Tensor, *, merged: bool = True) -> AttentionMap:
        """Return attention weights with the labels of their rows and columns.

        weights: (pieces, …, source pieces) tensor: one of the fields `attention`,
                 `alignment_weights` and `heads`, or a mean of some heads
        merged:  if True, the pieces of each word are merged into one row or column
        """
        if not merged:
            return AttentionMap(self.pieces, self.source_pieces, weights.double().numpy())
        return AttentionMap(
            merge_labels(self.pieces, self.word_of, self.text),
            merge_labels(self.source_pieces, self.source_word_of, self.source_text),
            merge_words(weights.double().numpy(), self.word_of, self.source_word_of),
        )


@dataclass(frozen=True)
class PredictionBuilder:
    """Converts the results of a search to predictions. Needs neither the model nor its device.

    reduction:     computes attention maps from the weights that the search stored
    newline:       token at which outputs are cut; None if they are not cut
    normalisation: computes the score of an output that is cut
    """

    task: TokenTask
    reduction: AttentionReduction
    newline: int | None = None
    normalisation: LengthNormalisation = PER_TOKEN

    def build(self, model_input: ModelInput, hypotheses: Sequence[Hypothesis]) -> list[Prediction]:
        """Convert the hypotheses of an input."""
        return [
            build_prediction(self.task, model_input, self.cut(model_input, each), self.reduction)
            for each in hypotheses
        ]

    def cut(self, model_input: ModelInput, hypothesis: Hypothesis) -> Hypothesis:
        """Cut a hypothesis at its first newline, if outputs are cut."""
        if self.newline is None:
            return hypothesis
        return cut_at_newline(hypothesis, model_input, self.newline, self.normalisation)


def build_prediction(
    task: TokenTask,
    model_input: ModelInput,
    hypothesis: Hypothesis,
    reduction: AttentionReduction | None = None,
) -> Prediction:
    """Convert a hypothesis to a prediction.

    reduction: computes attention maps from the weights that the search stored. None if the search
               stored no attention weights.
    """
    target, tokens = task.target_tokenizer, hypothesis.tokens
    end = (END,) if hypothesis.finished else ()
    source_pieces: tuple[str, ...] = ()
    if model_input.source is not None and task.modality is not None:
        source_pieces = task.modality.pieces(model_input.source)
    prediction = Prediction(
        text=target.decode(tokens[model_input.hidden_prefix :]),
        score=hypothesis.score,
        pieces=(*target.pieces(tokens), *(SPECIAL_TOKENS[token] for token in end)),
        source_pieces=source_pieces,
        log_probabilities=hypothesis.log_probabilities,
        finished=hypothesis.finished,
        tokens=(*tokens, *end),
    )
    if hypothesis.attention is None or reduction is None:
        return prediction
    maps = reduction.maps(hypothesis.attention[: len(prediction.pieces)])
    # The attention also has columns for padding. An image has no pieces and no padding.
    length = len(source_pieces) or None
    if task.source_tokenizer is None:  # only a text has words
        heads = None if maps.heads is None else maps.heads[..., :length]
        values = OutputAttention(maps.mean[:, :length], heads)
        return replace(prediction, attention_values=values)
    source = model_input.source_tokens
    # Neither END nor a hidden tag belongs to a word.
    words = [
        *[NO_WORD] * model_input.hidden_prefix,
        *target.word_of(tokens[model_input.hidden_prefix :]),
    ]
    word_of = (*words, *[NO_WORD] * (len(prediction.pieces) - len(words)))
    source_word_of = (*task.source_tokenizer.word_of(source), NO_WORD)
    alignment_weights = maps.alignment[:, :length]
    values = OutputAttention(
        attention=maps.mean[:, :length],
        heads=None if maps.heads is None else maps.heads[..., :length],
        alignment=tuple(align_words(alignment_weights.numpy(), word_of, source_word_of)),
        alignment_weights=alignment_weights,
        word_of=word_of,
        source_word_of=source_word_of,
        source_text=task.source_tokenizer.decode(source),
    )
    return replace(prediction, attention_values=values)

"""Extensions for tests: one of each kind, and some that do not follow the interface."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from seqloom.core.batch import Packing, Padded
from seqloom.core.signature import Tokens
from seqloom.models import (
    DecoderModule,
    DecoderOutput,
    EncoderModule,
    Memory,
    NoRows,
    State,
    Step,
)
from seqloom.nn import (
    AttentionScore,
    DotScore,
    Embedder,
    KeysValues,
    LearnedLookup,
    MultiHeadAttention,
    Readout,
)
from seqloom.nn.positions import PositionIds, Positions, expand_position_ids
from seqloom.text import PieceTokenizer, Preprocessing, Tokenizer, Vocabulary


class Cosine(AttentionScore):
    """The cosine of query and key.

    temperature: divisor of the cosine,
                 above 0.
    """

    def __init__(
        self,
        temperature: Annotated[float, Field(gt=0)] = 1.0,
        mode: Literal["plain", "absolute"] = "plain",
    ) -> None:
        super().__init__()
        self.temperature = temperature

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: object = 0) -> Tensor:
        keys = F.normalize(prepared, dim=-1)
        return F.normalize(queries, dim=-1) @ keys.transpose(-2, -1) / self.temperature


class DescribedCosine(Cosine):
    """A cosine that states its formulas."""

    formula = "cos(q, k)"
    query_gradient = "Σ ∂L/∂e · ∂cos(q, k)/∂q"
    key_gradient = "∂L/∂e · ∂cos(q, k)/∂k"
    gradient_note = "cos(q, k) = q · k / (‖q‖ ‖k‖)"


class StaticCosine(Cosine):
    """A cosine that states facts about itself."""

    is_static = True
    compares_directly = True


class ThirdOfDot(AttentionScore):
    """q · k / 3, which fused kernels and CTranslate2 can compute."""

    is_product = True
    divisor = 3.0

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: object = 0) -> Tensor:
        return queries @ prepared.transpose(-2, -1) / self.divisor


class Distance(AttentionScore):
    """q · k - |t - s| for a query at position t and a key at position s."""

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: PositionIds = 0) -> Tensor:
        query_ids = expand_position_ids(position_ids, queries.shape[-2], queries.device)  # (T,)
        key_ids = torch.arange(prepared.shape[-2], device=prepared.device)
        distances = (query_ids.unsqueeze(-1) - key_ids).abs()  # (T, S) or (B, T, S)
        if distances.dim() == 3:
            distances = distances.unsqueeze(1)
        return queries @ prepared.transpose(-2, -1) - distances


class WeightedDot(AttentionScore):
    """q · (w ∘ k), with a vector w for each head."""

    def __init__(self, query_width: int, key_width: int, heads: int) -> None:
        super().__init__()
        if query_width != key_width:
            raise ValueError(f"the widths {query_width} and {key_width} differ")
        self.heads = heads
        self.weight = nn.Parameter(torch.ones(heads, 1, key_width))

    def prepare(self, keys: Tensor) -> Tensor:
        return keys * self.weight

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: object = 0) -> Tensor:
        return queries @ prepared.transpose(-2, -1)


class NegatedDot(DotScore):
    """A subclass of a built-in score: -q · k"""

    def __init__(self, query_width: int) -> None:
        super().__init__("one", query_width)

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: object = 0) -> Tensor:
        return -queries @ prepared.transpose(-2, -1)


class CentredDot(AttentionScore):
    """Wrong: subtracts the mean of all keys, so padding changes the scores."""

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: object = 0) -> Tensor:
        return queries @ (prepared - prepared.mean(dim=-2, keepdim=True)).transpose(-2, -1)


class UnsafeCosine(AttentionScore):
    """Wrong: divides by zero for vectors of zeros."""

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: object = 0) -> Tensor:
        norms = queries.norm(dim=-1, keepdim=True) * prepared.norm(dim=-1).unsqueeze(-2)
        return queries @ prepared.transpose(-2, -1) / norms


class WrongShape(AttentionScore):
    """Wrong: one score per query."""

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: object = 0) -> Tensor:
        return queries.sum(dim=-1)


class NotAScore:
    """Wrong: not a subclass of AttentionScore."""


def untyped(folder: Path, path) -> Iterator[tuple[str, str]]:  # type: ignore[no-untyped-def]
    """Wrong: the type of a setting is missing."""
    yield "", path


def unsupported(folder: Path, tensor: Tensor) -> None:
    """Wrong: a recipe cannot contain a tensor."""


def variadic(*paths: str, **options: Any) -> None:
    """Wrong: settings without names."""


def reserved(folder: Path, kind: str, name: str, copy: bool) -> None:
    """Wrong: seqloom uses these names itself."""


def exact_length(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Percentage of outputs as long as a reference."""
    hits = [
        len(one) in {len(text) for text in texts}
        for one, texts in zip(hypotheses, references, strict=True)
    ]
    return 100 * sum(hits) / len(hits)


def length_error(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Mean difference of lengths."""
    pairs = zip(hypotheses, references, strict=True)
    return sum(abs(len(one) - len(texts[0])) for one, texts in pairs) / len(hypotheses)


length_error.higher_is_better = False  # type: ignore[attr-defined]


def not_a_number(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Wrong: the result is not finite."""
    return float("nan")


def first_length(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Wrong: depends on the order of the sentences."""
    return len(hypotheses[0])


def without_references(hypotheses: Sequence[str]) -> float:
    """Wrong: a parameter is missing."""
    return len(hypotheses)


def read_bars(folder: Path, path: str, reverse: bool = False) -> Iterator[tuple[str, str]]:
    """Lines of the form source|target."""
    for line in (folder / path).read_text(encoding="utf-8").splitlines():
        source, target = line.split("|")
        yield (target, source) if reverse else (source, target)


def read_single_words(folder: Path) -> Iterator[str]:
    """Wrong: yields no pairs."""
    yield "word"


class Syllables(PieceTokenizer):
    """Splits after vowels."""

    def __init__(
        self, vocabulary: Vocabulary, preprocessing: Preprocessing, *, vowels: str = "ab"
    ) -> None:
        super().__init__(vocabulary, preprocessing)
        self.vowels = vowels

    def split_text(self, text: str) -> Iterable[str]:
        piece = ""
        for letter in text:
            piece += letter
            if letter in self.vowels:
                yield piece
                piece = ""
        if piece:
            yield piece


class WordsAndSpaces(PieceTokenizer):
    """Each word and each space is a piece."""

    def split_text(self, text: str) -> Iterable[str]:
        return re.findall(r"\s|\S+", text)


class LossyTokenizer(PieceTokenizer):
    """Wrong: removes spaces."""

    def split_text(self, text: str) -> Iterable[str]:
        return text.split()


class EmptyPieces(PieceTokenizer):
    """Wrong: yields empty pieces."""

    def split_text(self, text: str) -> Iterable[str]:
        return text.split(" ")


class ForbidText:
    """Forbids the tokens of a text.

    text: the text.
    """

    def __init__(self, tokenizer: Tokenizer, text: str) -> None:
        self.ids = tokenizer.encode(text)

    def __call__(self, generated: Tensor, log_probabilities: Tensor) -> Tensor:
        forbidden = torch.zeros(log_probabilities.shape[1], dtype=torch.bool)
        forbidden[self.ids] = True
        return forbidden


class ForbidAll:
    """Forbids every token."""

    def __call__(self, generated: Tensor, log_probabilities: Tensor) -> Tensor:
        return torch.ones_like(log_probabilities, dtype=torch.bool)


class NumericRule:
    """Wrong: returns numbers."""

    def __call__(self, generated: Tensor, log_probabilities: Tensor) -> Tensor:
        return log_probabilities


class FirstRowRule:
    """Wrong: what it forbids depends on the first row."""

    def __call__(self, generated: Tensor, log_probabilities: Tensor) -> Tensor:
        forbidden = torch.zeros_like(log_probabilities, dtype=torch.bool)
        forbidden[:, log_probabilities[0].argmax()] = True
        return forbidden


class BagOfWords(EncoderModule):
    """Encodes each token by its embedding."""

    def __init__(self, source: Tokens, width: int = 8) -> None:
        super().__init__()
        self.embedding = nn.Embedding(source.count, width)

    def forward(self, source: Any, packing: Packing | None = None) -> Memory:
        assert isinstance(source, Padded)
        states, mask = self.embedding(source.values), source.mask
        mean = (states * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
        return Memory(states, mask, mean.unsqueeze(1), source.tokens)


class EmbeddedBag(EncoderModule):
    """Encodes each token by the result of an `Embedder`."""

    def __init__(self, source: Tokens, width: int = 8) -> None:
        super().__init__()
        lookup = LearnedLookup(source.count, width, noise=0.0, scaled=False)
        self.embedder = Embedder(lookup, Positions(), None, 0.0)

    def forward(self, source: Any, packing: Packing | None = None) -> Memory:
        assert isinstance(source, Padded)
        states, mask = self.embedder(source.values), source.mask
        mean = (states * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
        return Memory(states, mask, mean.unsqueeze(1), source.tokens)


class NoisyBag(BagOfWords):
    """Uses random numbers in `forward`."""

    def forward(self, source: Any, packing: Packing | None = None) -> Memory:
        torch.rand(1)
        return super().forward(source)


class PaddedMean(BagOfWords):
    """Wrong: the summary includes padding."""

    def forward(self, source: Any, packing: Packing | None = None) -> Memory:
        memory = super().forward(source)
        return Memory(memory.states, memory.mask, memory.states.mean(1, keepdim=True))


class DoubleWidth(BagOfWords):
    """Wrong: the states are wider than `width`."""

    def __init__(self, source: Tokens, width: int = 8) -> None:
        super().__init__(source, 2 * width)


@dataclass(frozen=True)
class Hidden:
    """Hidden state of each hypothesis."""

    values: Tensor

    def select(self, rows: Tensor) -> "Hidden":
        return Hidden(self.values[rows])


class PlainDecoder(DecoderModule):
    """A GRU without attention."""

    def __init__(self, target: Tokens, encoder_width: int, width: int = 8) -> None:
        super().__init__()
        self.embedding = nn.Embedding(target.count, width)
        self.to_initial = nn.Linear(encoder_width, width)
        self.cell = nn.GRUCell(width, width)
        self.readout = Readout(width, target.count)

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        return State(NoRows(), Hidden(self.to_initial(memory.summary[:, -1])), 0)

    def step(self, tokens: Tensor, state: State) -> Step:
        hidden = self.cell(self.embedding(tokens), state.moving.values)
        return Step(self.readout(hidden), state.after(Hidden(hidden)), None)

    def forward(
        self, tokens: Tensor, memory: Memory, packing: Packing | None = None
    ) -> DecoderOutput:
        hidden, features = self.to_initial(memory.summary[:, -1]), []
        for embedded in self.embedding(tokens).unbind(1):
            hidden = self.cell(embedded, hidden)
            features.append(hidden)
        return DecoderOutput(torch.stack(features, dim=1), self.readout)


class AttentiveDecoder(PlainDecoder):
    """A GRU whose output attends to the source."""

    def __init__(self, target: Tokens, encoder_width: int, width: int = 8) -> None:
        super().__init__(target, encoder_width, width)
        self.attention = MultiHeadAttention(width, 2, key_width=encoder_width)

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        state = super().start(memory, max_steps)
        source = Source(self.attention.project_keys_values(memory.states), memory.mask)
        return replace(state, fixed=source, need_attention=need_attention)

    def step(self, tokens: Tensor, state: State) -> Step:
        hidden = self.cell(self.embedding(tokens), state.moving.values)
        mask = state.fixed.mask[:, None, None]
        context, weights = self.attention.step_cross(hidden, state.fixed.memory, mask, True)
        assert weights is not None
        logits = self.readout(hidden + context)
        return Step(logits, state.after(Hidden(hidden)), weights.unsqueeze(1))

    def forward(
        self, tokens: Tensor, memory: Memory, packing: Packing | None = None
    ) -> DecoderOutput:
        hidden = super().forward(tokens, memory).features
        context, _ = self.attention(hidden, memory.states, memory.mask)
        return DecoderOutput(hidden + context, self.readout)


@dataclass(frozen=True)
class Source:
    """Keys, values and mask of each source."""

    memory: KeysValues
    mask: Tensor

    def select(self, rows: Tensor) -> "Source":
        return Source(self.memory.select(rows), self.mask[rows])


class ForgetfulDecoder(PlainDecoder):
    """Wrong: `step` does not keep the hidden state."""

    def step(self, tokens: Tensor, state: State) -> Step:
        return Step(super().step(tokens, state).logits, state, None)


class FixedOrderDecoder(PlainDecoder):
    """Wrong: the state ignores `select`."""

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        state = super().start(memory, max_steps)
        return State(NoRows(), StubbornHidden(state.moving.values), 0)

    def step(self, tokens: Tensor, state: State) -> Step:
        step = super().step(tokens, state)
        return Step(step.logits, state.after(StubbornHidden(step.state.moving.values)), None)


@dataclass(frozen=True)
class StubbornHidden(Hidden):
    """Wrong: returns the first rows, whatever the indices."""

    def select(self, rows: Tensor) -> "StubbornHidden":
        return StubbornHidden(self.values[torch.arange(len(rows)) % len(self.values)])

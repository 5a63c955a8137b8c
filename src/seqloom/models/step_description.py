"""Defines `StepDescription`: the values of one decoder step, each with its name and formula.

A decoder adds its values in `DecoderModule.describe_step`. It runs the step with a `StepObserver` and
reads the values that its layers have reported. The methods of `StepDescription` add the values of
the layers that several kinds of decoder have in common.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from seqloom.nn.copying import Copying
from seqloom.nn.embedding import Embedder
from seqloom.nn.formulas import fitted, indexed
from seqloom.nn.multihead import AttentionFormulas, MultiHeadAttention
from seqloom.nn.observer import AttentionInputs, AttentionTrace, Observer, TraceableAttention
from seqloom.nn.positions import PositionTable


@dataclass(frozen=True)
class TracedValue:
    """One value of a decoder step.

    section: part of the step that computes the value, for example "attention"
    name:    for example "query"
    formula: how this model computes the value, for example "q₃ = Wq s₂ + bq"
    values:  one number (), one vector (D,), one number per position (N,), or one vector per
             position (N, D)
    labels:  tokens at the N positions; empty if there is only one number or one vector
    note:    remark that complements the formula; may be empty
    """

    section: str
    name: str
    formula: str
    values: Tensor
    labels: tuple[str, ...] = ()
    note: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)


@dataclass(frozen=True)
class PositionLabels:
    """Labels of the positions in an explanation: source tokens and decoder input tokens."""

    source: tuple[str, ...]
    target: tuple[str, ...]


@dataclass
class StepObserver(Observer):
    """Keeps the last value that each layer reports.

    values:     the values by layer and name, see `nn/observer.py`
    attentions: the values of each attention module at the last of its queries
    """

    values: dict[tuple[nn.Module, str], Tensor] = field(default_factory=dict)
    attentions: dict[TraceableAttention, AttentionTrace] = field(default_factory=dict)

    def observe(self, part: nn.Module, name: str, value: Tensor) -> Tensor:
        self.values[part, name] = value
        return value

    def attend(self, inputs: AttentionInputs) -> None:
        self.attentions[inputs.attention] = inputs.only(-1).trace()


@dataclass
class StepDescription:
    """The decoder step to describe, and the values added so far.

    tokens:  (1, t) START and the t - 1 tokens before the step
    labels:  labels of the source positions and of the decoder inputs
    layer:   layer of the attention to describe, counted from 0
    head:    head of the attention to describe, counted from 0
    section: heading of the values that `add` appends next, for example "output"
    parts:   all values that were added so far
    """

    tokens: Tensor
    labels: PositionLabels
    layer: int
    head: int
    section: str = ""
    parts: list[TracedValue] = field(default_factory=list)

    def begin_section(self, section: str) -> None:
        self.section = section

    def add(
        self, name: str, formula: str, values: Tensor, labels: Sequence[str] = (), note: str = ""
    ) -> None:
        """Add a value to the current section.

        name, formula, note: texts to show with the value
        values:              tensor without a batch dimension
        labels:              one label per row of `values`. Default: no labels
        """
        values = values.detach().cpu()
        assert not labels or len(labels) == len(values), "expected one label per row"
        self.parts.append(TracedValue(self.section, name, formula, values, tuple(labels), note))

    @property
    def number(self) -> int:
        """The number of the step, counted from 1."""
        return self.tokens.shape[1]

    def current(self, letter: str) -> str:
        """Return the symbol of a value at this step, for example h₃ for the letter h at step 3."""
        return indexed(letter, self.number)

    def previous(self, letter: str) -> str:
        """Return the symbol of a value at the previous step, for example h₂ in step 3."""
        return indexed(letter, self.number - 1)

    def add_input(self, embedder: Embedder, observed: StepObserver) -> None:
        """Add the embedding of the token that this step reads."""
        lookup, positions = embedder.lookup, embedder.positions
        formula = lookup.start_formula if self.number == 1 else lookup.formula
        vector = _last(observed.values[embedder, "vector"])
        embedded = _last(observed.values[embedder, "input"])
        symbol, vector_formula = self.current("x"), formula(self.previous("y"))
        if not isinstance(positions, PositionTable):
            fitted_formula = fitted(vector_formula, embedder.projection)
            self.add("embedding", f"{symbol} = {fitted_formula}", embedded)
            return
        table = positions.tabulate(self.number, vector)
        assert table is not None
        self.add("embedding", f"w = {vector_formula}", vector)
        self.add("position", f"p = {positions.formula(self.number - 1)}", table[self.number - 1])
        formula_of_sum = fitted(positions.join_formula, embedder.projection)
        self.add("input", f"{symbol} = {formula_of_sum}", embedded)

    def add_attention(
        self,
        attention: MultiHeadAttention,
        attended: AttentionTrace,
        query: str,
        source: str,
        labels: Sequence[str],
        note: str = "",
    ) -> None:
        """Add all values of the selected head, then the context computed from all heads.

        attended: values computed by `attention` for this step
        query:    symbol of the state from which the query is computed, for example s₃
        source:   symbol of the states from which keys and values are computed, for example h
        labels:   tokens at the positions of these states
        note:     remark on the context vector
        """
        head, score = self.head, attention.score
        formulas = AttentionFormulas(attention, head)
        if not score.is_positional:
            query_formula = formulas.query(query, self.number - 1)
            self.add("query", f"q = {query_formula}", attended.queries[0, head, 0])
            self.add("keys", f"k = {formulas.key(source)}", attended.keys[0, head], labels)
        scores = attended.scores[0, head, 0]  # (S,)
        if score.is_product and score.divisor != 1:
            self.add("products", "q · k", scores * score.divisor, labels)
            self.add("scale", f"1 / {score.divisor_formula}", torch.tensor(1 / score.divisor))
        self.add("scores", f"e = {score.formula}", scores, labels, score.note)
        self.add("weights", f"α = {formulas.weights}", attended.weights[0, head, 0], labels)
        if attention.heads > 1:
            all_weights = attended.weights[0, :, 0].transpose(0, 1)  # (S, H)
            self.add("weights of all heads", "α of each head", all_weights, labels)
        self.add("values", f"v = {formulas.value(source)}", attended.values[0, head], labels)
        if not formulas.is_single:
            letter = indexed("r", head + 1) if attention.heads > 1 else "r"
            self.add("head output", f"{letter} = Σ α v", attended.read[0, head, 0])
        context = f"{self.current('a')} = {formulas.context}"
        self.add("context", context, attended.context[0, 0], note=note)

    def add_copying(self, copying: Copying, observed: StepObserver) -> None:
        """Add the copy weights of the source tokens, and the gate of the copy mechanism."""
        self.begin_section("copying")
        labels, symbol = self.labels.source, self.current("f")
        names = ("query", "keys", "scores", "pointer", "gate")
        query, keys, scores, pointer, log_gate = (
            observed.values[copying, each][0] for each in names
        )
        self.add("pointer query", f"q = Wq {symbol} + bq", query[0])
        self.add("pointer keys", "k = Wk h", keys, labels)
        self.add("pointer scores", f"e = q · k / √{query.shape[-1]}", scores[0], labels)
        self.add("pointer", "α = softmax(e)", pointer[0], labels)
        note = "g is the share of the vocabulary distribution; 1 - g is the share of copying"
        self.add("gate", f"g = σ(W [{symbol}; Σ α k] + b)", log_gate[0, 0].exp(), note=note)

    def add_reported(self, decoder: nn.Module, observed: StepObserver) -> None:
        """Add all values that the layers of a decoder have reported, in this order.

        For decoders that do not describe their steps: the formulas are those of the layers, and the
        sections are the names of the layers in the decoder.
        """
        names = {part: name for name, part in decoder.named_modules()}
        added: list[Tensor] = []  # an identity reports its input again
        for (part, name), value in observed.values.items():
            if names.get(part) and not any(value is each for each in added):
                added.append(value)
                self.begin_section(names[part].replace("_", " "))
                formula = f"{name} of {type(part).__name__}"
                self.add(name, formula, _last(value))
        for attention, attended in observed.attentions.items():
            if isinstance(attention, MultiHeadAttention) and names.get(attention):
                self.begin_section(names[attention].replace("_", " "))
                self.head = min(self.head, attention.heads - 1)
                positions = attended.keys.shape[2]
                named = [
                    labels
                    for labels in (self.labels.source, self.labels.target)
                    if len(labels) == positions
                ]
                labels = named[0] if named else tuple(map(str, range(1, positions + 1)))
                self.add_attention(attention, attended, "s", "h", labels)


def _last(values: Tensor) -> Tensor:
    """Return the vector of the last position of the first row: (1, D) or (1, T, D) -> (D,)"""
    return values[0] if values.dim() <= 2 else values.flatten(1, -2)[0, -1]

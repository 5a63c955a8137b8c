"""Defines `StepTrace`, which collects the values of one decoder step.

The functions here trace the parts that several kinds of decoder have in common: the embedded input,
attention, the output layer, and copying if the decoder copies source tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from seqloom.analysis.explain import formulas
from seqloom.analysis.explain.explanation import PositionLabels, TracedValue
from seqloom.models.interface import DecoderModule, Memory
from seqloom.nn.attention import DotScore
from seqloom.nn.copying import Copyable, Copying
from seqloom.nn.embedding import Embedder, LabelReadout
from seqloom.nn.multihead import AttentionTrace, MultiHeadAttention
from seqloom.nn.positions import PositionTable


@dataclass
class StepTrace:
    """The decoder step to explain, and the values traced so far.

    memory:  encoder output of one source
    tokens:  (1, t) START and the t - 1 tokens before the step
    layer:   layer of the attention to explain, counted from 0
    head:    head of the attention to explain, counted from 0
    labels:  labels of the source positions and of the decoder inputs
    section: heading of the values that `add` appends next, for example "output"
    parts:   all values that were added so far
    """

    memory: Memory
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
        """Add a traced value to the current section.

        name, formula, note: texts to show with the value
        values:              tensor without a batch dimension
        labels:              one label per row of `values`. Default: no labels
        """
        values = values.detach().cpu()
        assert not labels or len(labels) == len(values), "expected one label per row"
        self.parts.append(TracedValue(self.section, name, formula, values, tuple(labels), note))

    @property
    def step(self) -> int:
        """The step to explain, counted from 1."""
        return self.tokens.shape[1]

    @property
    def source_mask(self) -> Tensor:
        """Mask of the source for attention: (1, 1, 1, S)"""
        return self.memory.mask[:, None, None]

    def current(self, letter: str) -> str:
        """Return the symbol of a value at this step, for example h₃ for the letter h at step 3."""
        return formulas.indexed(letter, self.step)

    def previous(self, letter: str) -> str:
        """Return the symbol of a value at the previous step, for example h₂ in step 3."""
        return formulas.indexed(letter, self.step - 1)


@dataclass(frozen=True)
class AttentionSymbols:
    """Symbols and labels for the formulas of an attention module.

    query:  symbol of the state from which the query is computed, for example s₃
    source: symbol of the states from which keys and values are computed, for example h
    labels: tokens at the positions of these states
    """

    query: str
    source: str
    labels: tuple[str, ...]


def trace_input(embedder: Embedder, trace: StepTrace) -> Tensor:
    """Trace the embedding of the token that this step reads. Returns the embedding: (1, D)"""
    positions = embedder.positions
    token = trace.tokens[:, -1]
    vector = embedder.lookup(token)  # (1, E)
    describe = formulas.start_embedding if trace.step == 1 else formulas.embedding
    formula = describe(embedder.lookup, trace.previous("y"))
    if not isinstance(positions, PositionTable):
        embedded = embedder.projection(vector)
        formula = formulas.fitted(formula, embedder.projection)
        trace.add("embedding", f"{trace.current('x')} = {formula}", embedded[0])
        return embedded
    table = positions.tabulate(trace.step, vector)
    assert table is not None
    row = table[trace.step - 1 :]  # (1, P)
    trace.add("embedding", f"w = {formula}", vector[0])
    trace.add("position", f"p = {formulas.position(positions, trace.step - 1)}", row[0])
    embedded = embedder.projection(positions.join_row(vector, row))
    formula = formulas.fitted(formulas.with_position(positions), embedder.projection)
    trace.add("input", f"{trace.current('x')} = {formula}", embedded[0])
    return embedded


def trace_attention(
    attention: MultiHeadAttention,
    attended: AttentionTrace,
    symbols: AttentionSymbols,
    trace: StepTrace,
    note: str = "",
) -> None:
    """Trace all values of the selected head, then the context vector computed from all heads.

    attended: values computed by `attention` for this step
    note:     remark on the context vector
    """
    plan, head, labels = attention, trace.head, symbols.labels
    score = attention.score
    if not score.is_positional:
        query = formulas.query(attention, symbols.query, head, trace.step - 1)
        trace.add("query", f"q = {query}", attended.queries[0, head, 0])
        key = formulas.key(attention, symbols.source, head)
        trace.add("keys", f"k = {key}", attended.keys[0, head], labels)
    scores = attended.scores[0, head, 0]  # (S,)
    if type(score) is DotScore and score.divisor != 1:
        trace.add("products", "q · k", scores * score.divisor, labels)
        scale = f"1 / {formulas.divisor(score, plan.query_head_width)}"
        trace.add("scale", scale, torch.tensor(1 / score.divisor))
    formula = formulas.score(score, plan.query_head_width)
    trace.add("scores", f"e = {formula}", scores, labels, formulas.score_note(score))
    weights = f"α = {formulas.weights(attention)}"
    trace.add("weights", weights, attended.weights[0, head, 0], labels)
    if plan.heads > 1:
        all_weights = attended.weights[0, :, 0].transpose(0, 1)  # (S, H)
        trace.add("weights of all heads", "α of each head", all_weights, labels)
    value = formulas.value(attention, symbols.source, head)
    trace.add("values", f"v = {value}", attended.values[0, head], labels)
    single = plan.heads == 1 and isinstance(attention.output_projection, nn.Identity)
    if not single:
        letter = formulas.indexed("r", head + 1) if plan.heads > 1 else "r"
        trace.add("head output", f"{letter} = Σ α v", attended.read[0, head, 0])
    context = "Σ α v" if single else formulas.context(attention)
    trace.add("context", f"{trace.current('a')} = {context}", attended.context[0, 0], note=note)


def trace_output(
    decoder: DecoderModule, features: Tensor, formula: str, trace: StepTrace
) -> Tensor:
    """Trace the output layer. Returns the probabilities of the next token: (V,)

    features: (1, F) input of the output layer
    formula:  text of the formula with which the features are computed
    """
    readout = decoder.readout
    trace.begin_section("output")
    # In a label decoder, the last feature only marks the end of the labels (see `LabelReadout`).
    inputs = features[:, :-1] if isinstance(readout, LabelReadout) else features
    trace.add("features", f"{trace.current('f')} = {formula}", inputs[0])
    symbol = trace.current("f")
    if not isinstance(readout.hidden_layer, nn.Identity):
        trace.add("hidden layer", f"u = tanh(W {symbol} + b)", readout.hidden_layer(inputs)[0])
        symbol = "u"
    logits = readout(features)  # (1, V)
    copyable = decoder.copyable(trace.memory)
    trace.add("logits", f"z = W {symbol} + b", logits[0], note=_impossible_tokens(logits))
    if decoder.copying is None or copyable is None:
        probabilities = logits[0].softmax(dim=-1)
        trace.add("probabilities", "p = softmax(z)", probabilities)
        return probabilities
    trace_copying(decoder.copying, features.unsqueeze(0), copyable, trace)
    probabilities = decoder.next_logits(features, copyable)[0].softmax(dim=-1)
    mixture = "p(y) = g · softmax(z)(y) + (1 - g) · Σ α over the source positions of y"
    trace.add("probabilities", mixture, probabilities)
    return probabilities


def _impossible_tokens(logits: Tensor) -> str:
    count = int(logits.isinf().sum())
    return f"{count} logits are -∞: these tokens are impossible here" if count else ""


def trace_copying(copying: Copying, features: Tensor, source: Copyable, trace: StepTrace) -> None:
    """Trace copying: the copy weights of the source tokens, and the gate of the copy mechanism.

    features: (1, 1, F) input of the output layer
    """
    labels = trace.labels.source
    queries = copying.to_query(features)  # (1, 1, D)
    scores = queries @ source.keys.transpose(1, 2) * copying.scale  # (1, 1, S)
    shares = copying.mixture(features, source)
    trace.begin_section("copying")
    symbol = trace.current("f")
    trace.add("pointer query", f"q = Wq {symbol} + bq", queries[0, 0])
    trace.add("pointer keys", "k = Wk h", source.keys[0], labels)
    trace.add("pointer scores", f"e = q · k / √{queries.shape[-1]}", scores[0, 0], labels)
    trace.add("pointer", "α = softmax(e)", shares.pointer[0, 0], labels)
    gate = f"g = σ(W [{symbol}; Σ α k] + b)"
    note = "g is the share of the vocabulary distribution; 1 - g is the share of copying"
    trace.add("gate", gate, shares.log_generate[0, 0, 0].exp(), note=note)

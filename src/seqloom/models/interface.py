"""The contract between models and the code that uses them.

A model is an encoder, which turns a source into a `Memory`, and a decoder with three methods:

    start    returns the state before the first token
    step     consumes one token per row and returns the logits of the next token and the new state
    forward  computes all target positions at once, with teacher forcing: `DecoderOutput`

Training calls `forward`, search calls `start` and `step`. Neither depends on the kind of model.

Shapes: B sources, S source positions, T target positions, R = B · K rows with K hypotheses per
source, L layers, H heads, D width of vectors, V tokens in the vocabulary.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self, TypeVar, cast, runtime_checkable

import torch
from torch import Tensor, nn

from seqloom.core.batch import Packing, Source
from seqloom.models.step_description import StepDescription, StepObserver
from seqloom.nn.copying import Copyable, Copying
from seqloom.nn.embedding import Readout
from seqloom.nn.formulas import origin_note
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.observer import observe, observing


@dataclass(frozen=True)
class Memory:
    """The output of an encoder.

    states:  (B, S, D) one vector per source position
    mask:    (B, S)    True where a position is real
    summary: one of these, depending on the encoder
             (B, L, D)   RNN or GRU: the final state of each of the L layers
             (B, L, 2 D) LSTM: the final hidden state and cell state of each layer
             (B, 1, D)   other encoders: the mean of `states`
             (B, 0, 0)   no source
    tokens:  (B, S)    source token ids; None if the source is not text
    """

    states: Tensor
    mask: Tensor
    summary: Tensor
    tokens: Tensor | None = None

    def only(self, source: int) -> "Memory":
        """Return the memory of the source with this index: a batch of one."""
        row = slice(source, source + 1)
        return self._map(lambda tensor: tensor[row])

    def select(self, sources: Tensor) -> "Memory":
        """Return the memory of the sources with these indices (B',), in this order."""
        return self._map(lambda tensor: tensor.index_select(0, sources))

    def repeated(self, count: int) -> "Memory":
        """Repeat each source `count` times. The copies of a source are adjacent rows."""
        return self._map(lambda tensor: tensor.repeat_interleave(count, dim=0))

    def _map(self, change: Callable[[Tensor], Tensor]) -> "Memory":
        tokens = None if self.tokens is None else change(self.tokens)
        return Memory(change(self.states), change(self.mask), change(self.summary), tokens)


class Rows(Protocol):
    """Protocol of `State.fixed` and `State.moving`, the two parts of a decoder state.

    Both hold tensors, from which a search selects rows. `State.fixed` has one row per source,
    `State.moving` one row per hypothesis.
    """

    def select(self, rows: Tensor) -> Self:
        """Return the rows with these indices (R',), in this order. Indices may be repeated."""
        ...


@dataclass(frozen=True)
class NoRows:
    """An empty `State.moving`, for decoders that keep nothing per hypothesis."""

    def select(self, rows: Tensor) -> Self:
        return self

    def copy_(self, later: "NoRows") -> None:
        """Do nothing: there are no tensors to overwrite."""

    def load(self, other: "NoRows", rows: Tensor) -> None:
        """Do nothing: there are no tensors to copy."""


@dataclass(frozen=True)
class State:
    """Everything a decoder keeps between two steps. The search algorithm does not read the contents
    of a state; it only selects rows of it.

    fixed:          tensors with one row per source (keys, values). All hypotheses of a source share
                    this row
    moving:         tensors with one row per hypothesis (hidden state, cache). The K hypotheses of a
                    source are adjacent: row r belongs to source r // K
    position:       number of tokens consumed so far; a 0-dim tensor in a state that
                    `StaticDecoder.start_static` returns
    need_attention: if False, attention weights are not returned (`Step.attention` is None), which
                    is faster

    Caches are updated in place, so a state must not be used again after `step`.

    Each decoder defines the types of `fixed` and `moving`; both implement `Rows`.
    """

    fixed: Any
    moving: Any
    position: int | Tensor
    need_attention: bool = True

    def select(self, rows: Tensor) -> "State":
        """Return a state with only the hypotheses at these indices (R',). It keeps all sources."""
        return replace(self, moving=self.moving.select(rows))

    def keep_sources(self, sources: Tensor) -> "State":
        """Return a state with only the sources at these indices (B',).

        This method does not drop the hypotheses of the other sources. The caller must also call
        `select` with the hypotheses to keep.
        """
        return replace(self, fixed=self.fixed.select(sources))

    def after(self, moving: Rows) -> "State":
        """Return the state after one more token: `position` grows by 1 and `moving` is replaced."""
        return replace(self, moving=moving, position=self.position + 1)


@dataclass(frozen=True)
class Step:
    """The result of `Decoder.step`.

    logits:    (R, V) logits of the next token. Decoders with a copy mechanism and ensembles return
               log-probabilities, which are valid logits
    state:     the new state
    attention: (R, L, H, S) cross-attention weights per layer and head; None if the decoder has no
               attention or the state was started with `need_attention=False`
    """

    logits: Tensor
    state: State
    attention: Tensor | None


@dataclass(frozen=True)
class DecoderOutput:
    """The result of `Decoder.forward`: features (B, T, D) and the readout that maps them to logits.

    Logits over the vocabulary are the largest tensor of a training step, so they are not stored
    here. `logits` computes them for all positions. `loss` can compute them in chunks and skip
    padding (see `Readout.loss`).
    """

    features: Tensor
    readout: Readout

    def logits(self) -> Tensor:
        """(B, T, V) unnormalised scores of every token at every position."""
        return self.readout(self.features)

    def loss(self, targets: Tensor, smoothing: float, padding: int) -> Tensor:
        """Return the cross-entropy, summed over all positions that are not padding: a scalar.

        targets:   (B, T) token ids
        smoothing: label smoothing, 0 to 1. With 0, the loss is Σ -log p(target).
        padding:   token id that marks padding in `targets`
        """
        return self.readout.loss(self.features, targets, smoothing, padding)


@dataclass(frozen=True)
class CopyDecoderOutput(DecoderOutput):
    """The result of `Decoder.forward` for a decoder with a copy mechanism."""

    copying: Copying
    source: Copyable

    def logits(self) -> Tensor:
        """(B, T, V) log-probabilities of every token at every position. They are valid logits."""
        return self.copying.mix(self.readout(self.features), self.features, self.source)

    def loss(self, targets: Tensor, smoothing: float, padding: int) -> Tensor:
        logits = self.readout(self.features)
        losses = self.copying.loss(logits, self.features, self.source, targets, smoothing)
        return (losses * (targets != padding)).sum()


class Encoder(Protocol):
    """Protocol of an encoder. It encodes the whole source before the decoder starts."""

    def __call__(self, source: Source, packing: Packing | None = None) -> Memory: ...


class Decoder(Protocol):
    """Protocol of a decoder. It generates a target token by token.

    Calling `step` for one token after another gives the same logits as `forward` for all tokens.
    """

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        """Return the state before the first token, with one hypothesis per source.

        max_steps:      maximum number of steps that may follow
        need_attention: if False, `step` returns no attention weights, which is faster. Default:
                        True
        """
        ...

    def step(self, tokens: Tensor, state: State) -> Step:
        """Consume one token per hypothesis (R,). Return the next logits and the new state.

        Every source has the same number of hypotheses.
        """
        ...

    def forward(
        self, tokens: Tensor, memory: Memory, packing: Packing | None = None
    ) -> DecoderOutput:
        """Compute the output at all positions at once, with teacher forcing.

        tokens: (B, T) the target shifted right: START y1 … y_{T-1}
        """
        ...


@runtime_checkable
class StaticDecoder(Protocol):
    """A decoder whose steps run the same operations on the same tensors at every position.

    `decoding/fast` captures such a step once, as a CUDA graph or as compiled code, and replays it.
    It may change the logits of a step in place.
    """

    def start_static(self, memory: Memory, max_steps: int) -> State:
        """Return the state before the first token, for steps on tensors of fixed shape.

        This state differs from the result of `Decoder.start`:

        - `position` is a tensor.
        - `moving`, which holds the tensors with one row per hypothesis, has two more methods.
          `copy_(later)` overwrites these tensors with those of a later state. `load(other, rows)`
          overwrites them with these rows of the state of another search, before the first step.
        - Steps return no attention weights.
        - The number of hypotheses can change only before the first step.
        - `State.keep_sources` must not be called, because the number of sources is fixed.
        """
        ...

    def step(self, tokens: Tensor, state: State) -> Step: ...


def static_position(device: torch.device) -> Tensor:
    """Return the position before the first step: 0, as a 0-dim tensor.

    Steps that are captured as a CUDA graph need a tensor.
    """
    return torch.zeros((), dtype=torch.long, device=device)


def row_at(table: Tensor, position: int | Tensor) -> Tensor:
    """Return the row for this position from a table with one row per position.

    (T, P) -> (1, P), with T positions and P columns
    """
    if isinstance(position, Tensor):
        return table.index_select(0, position.view(1))
    return table[position : position + 1]


Limits = dict[str, int]
"""Maps the name of a setting to the maximum number of tokens, END included, that it allows.

The names are relative to model.encoder or model.decoder, for example "positions.max_length". An
empty dict means that the number of tokens is unlimited."""


ContextReader = Literal["state", "next state", "output"]
"""A vector of the decoder that is computed from the attention context c_t of step t: the state s_t,
the state s_{t+1}, or the output of step t."""


@dataclass(frozen=True)
class HiddenLayer:
    """A layer whose hidden states an observer receives (`nn/observer.py`).

    name:        for example "layer 1", or "layer 1 ←" for the backward direction
    reporter:    the module that reports the states
    width:       width of the hidden vector. The states of an LSTM are wider: [h; c]
    is_reversed: True if the layer reads the source from the last token to the first
    query:       the state from which attention computes its query: the state after the "previous"
                 or after the "current" step. None: attention uses another layer
    is_replaced: True if the context of attention replaces this state
    """

    name: str
    reporter: nn.Module
    width: int
    is_reversed: bool = False
    query: Literal["previous", "current"] | None = None
    is_replaced: bool = False


class ModelPart(nn.Module):
    """Base class of encoders and decoders: what the rest of seqloom asks of both."""

    is_transformer = False
    """True for Transformers. CTranslate2 runs only these."""
    compiled_methods: tuple[str, ...] = ()
    """Names of the methods that torch.compile makes faster."""

    recurrent_cell: str | None = None
    """"rnn", "gru" or "lstm"; None if the part is not recurrent."""

    @property
    def layer_stack(self) -> Sequence[nn.Module]:
        """The layers that are compiled, sharded and recomputed one by one; empty if there are none."""
        return ()

    def hidden_layers(self) -> list[HiddenLayer]:
        """Return the layers whose hidden states an observer receives. Default: none."""
        return []

    def unsupported_by_ctranslate2(self, name: str) -> list[str]:
        """List the reasons why CTranslate2 cannot run this part. The list is empty if it can.

        name: the recipe section of the part, such as "model.encoder"
        """
        kind = type(self).__name__
        return [f"{name} is not a Transformer ({kind}), and CTranslate2 runs only Transformers"]


class DecoderModule(ModelPart):
    """Base class of decoders: an nn.Module that implements `Decoder`."""

    readout: Readout
    is_ensemble = False
    """True if the decoder combines the outputs of several models."""

    @property
    def context_readers(self) -> frozenset[ContextReader]:
        """The vectors that a recurrent decoder computes from the attention context of a step."""
        return frozenset()

    def __init__(self) -> None:
        super().__init__()
        self.source_limits: Limits = {}
        """Maximum number of source tokens that attention supports."""
        self.target_limits: Limits = {}
        """Maximum number of target tokens. Each table with one entry per position limits it."""
        self.copying: Copying | None = None
        """The copy mechanism; None if the decoder only generates."""

    @property
    def max_length(self) -> int | None:
        """Maximum number of target tokens; None means unlimited."""
        return min(self.target_limits.values(), default=None)

    def copyable(self, memory: Memory, mask: Tensor | None = None) -> Copyable | None:
        """Return the source tokens that can be copied; None if there is no copy mechanism.

        mask: (B, 1 or T, S) True where a target position may copy the source position. Default:
              None, which allows all source positions except padding
        """
        if self.copying is None:
            return None
        assert memory.tokens is not None, "the copy mechanism needs a source of tokens"
        visible = memory.mask.unsqueeze(1) if mask is None else mask
        return self.copying.prepare(memory.states, memory.tokens, visible)

    def next_logits(self, features: Tensor, source: Copyable | None) -> Tensor:
        """Compute the logits of the next token of every hypothesis from its features.

        (R, D) -> (R, V). With a copy mechanism, these are log-probabilities.

        source: source tokens that can be copied; None without a copy mechanism
        """
        logits = observe(self, "logits", self.readout(features))
        if self.copying is None or source is None:
            return logits
        return self.copying.step(logits, features, source)

    def output(self, features: Tensor, source: Copyable | None) -> DecoderOutput:
        """Wrap features (B, T, D) in a `DecoderOutput`, the result of `forward`.

        source: source tokens that can be copied; None without a copy mechanism
        """
        if self.copying is None or source is None:
            return DecoderOutput(features, self.readout)
        return CopyDecoderOutput(features, self.readout, self.copying, source)

    @property
    def attention_heads(self) -> tuple[int, int]:
        """Number of layers with attention, and of heads in each. Both are 0 without attention."""
        return 0, 0

    def source_attentions(self) -> list[MultiHeadAttention]:
        """Return the attention to the source of each layer that has it. Default: none."""
        return []

    def run_steps(self, tokens: Tensor, memory: Memory) -> Iterator[tuple[State, Step]]:
        """Run one step for each column of the tokens (B, T). Yield the state before it, and it."""
        state = self.start(memory, tokens.shape[1])
        for column in tokens.unbind(1):
            step = self.step(column, state)
            yield state, step
            state = step.state

    def stepwise_logits(self, tokens: Tensor, memory: Memory) -> Tensor:
        """Compute the logits of `forward` so that an observer receives each hidden state.

        (B, T) -> (B, T, V). Default: `forward`. Recurrent decoders compute position by position.
        """
        return self(tokens, memory).logits()

    def describe_step(self, memory: Memory, description: StepDescription) -> Tensor:
        """Run the decoder step that follows `description.tokens`, and describe it.

        Return the probabilities of the next token (V,). Default: run `step`, and add the values that
        the layers of the decoder report.

        memory: encoder output of one source
        """
        observed = StepObserver()
        with observing(observed):
            *_, (_, step) = self.run_steps(description.tokens, memory)
        description.add_reported(self, observed)
        description.begin_section("output")
        name = type(self).__name__
        probabilities = step.logits[0].softmax(dim=-1)
        description.add("logits", f"z, computed by {name}", step.logits[0], note=origin_note(self))
        description.add("probabilities", "p = softmax(z)", probabilities)
        return probabilities

    def describe_output(
        self, formula: str, logits: Tensor, observed: StepObserver, description: StepDescription
    ) -> Tensor:
        """Add the values of the output layer. Return the probabilities of the next token (V,).

        formula: text of the formula with which the features are computed
        logits:  (1, V) result of `next_logits`
        """
        readout, values = self.readout, observed.values
        description.begin_section("output")
        symbol = description.current("f")
        description.add("features", f"{symbol} = {formula}", values[readout, "features"][0])
        output_symbol = symbol
        if not isinstance(readout.hidden_layer, nn.Identity):
            output_symbol = "u"
            hidden = values[readout, "hidden layer"][0]
            description.add("hidden layer", f"u = tanh(W {symbol} + b)", hidden)
        vocabulary_logits = values[self, "logits"][0]
        count = int(vocabulary_logits.isinf().sum())
        note = f"{count} logits are -∞: these tokens are impossible here" if count else ""
        description.add("logits", f"z = W {output_symbol} + b", vocabulary_logits, note=note)
        probabilities, formula = logits[0].softmax(dim=-1), "p = softmax(z)"
        if self.copying is not None and (self.copying, "gate") in values:
            description.add_copying(self.copying, observed)
            formula = "p(y) = g · softmax(z)(y) + (1 - g) · Σ α over the source positions of y"
        description.add("probabilities", formula, probabilities)
        return probabilities

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        raise NotImplementedError

    def step(self, tokens: Tensor, state: State) -> Step:
        raise NotImplementedError

    def forward(
        self, tokens: Tensor, memory: Memory, packing: Packing | None = None
    ) -> DecoderOutput:
        raise NotImplementedError


class EncoderModule(ModelPart):
    """Base class of encoders: an nn.Module that implements `Encoder`."""

    def __init__(self) -> None:
        super().__init__()
        self.source_limits: Limits = {}
        """Maximum number of source tokens. Each table with one entry per position limits it."""

    @property
    def grid_cells(self) -> int | None:
        """Number of states of every source of an image encoder; None for other encoders."""
        return None

    @property
    def max_length(self) -> int | None:
        """Maximum number of source tokens; None means unlimited."""
        return min(self.source_limits.values(), default=None)

    def forward(self, source: Source, packing: Packing | None = None) -> Memory:
        raise NotImplementedError


Layer = TypeVar("Layer", bound=nn.Module)


def module_list(layers: Sequence[Layer]) -> Sequence[Layer]:
    """Return an nn.ModuleList that type checkers treat as a sequence of `Layer`."""
    return cast("Sequence[Layer]", nn.ModuleList(layers))

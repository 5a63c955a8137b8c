"""Recurrent encoder and decoder."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.core.batch import Packing, Padded, Source
from seqloom.models.interface import (
    ContextReader,
    DecoderModule,
    DecoderOutput,
    EncoderModule,
    HiddenLayer,
    Limits,
    Memory,
    State,
    Step,
    module_list,
    row_at,
    static_position,
)
from seqloom.models.step_description import StepDescription, StepObserver
from seqloom.nn.copying import Copyable, Copying
from seqloom.nn.dropout import Dropout
from seqloom.nn.embedding import Embedder, Readout
from seqloom.nn.fast.dispatch import trains_on_cpu
from seqloom.nn.fast.multihead import prepare_mask, prepare_steps
from seqloom.nn.formulas import concatenated, indexed, indexed_layer
from seqloom.nn.key_value_cache import KeysValues
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.observer import observe, observing
from seqloom.nn.recurrent import LayerStep, RecurrentLayer, reverse


class InitialState(nn.Module):
    """Computes the initial decoder state (B, L', C') from the output of the encoder.

    This base class returns zeros.

    layers:      L', number of decoder layers
    state_width: C', width of the state of a decoder layer
    """

    def __init__(self, layers: int, state_width: int) -> None:
        super().__init__()
        self.layers = layers
        self.state_width = state_width

    @property
    def formula(self) -> str:
        """Formula of the initial state. c is the final state of the encoder."""
        return "0: the initial state does not depend on the source"

    def forward(self, memory: Memory) -> Tensor:
        """Return the initial state of the decoder: (B, L', C') for L' layers of state width C'"""
        summary = memory.summary
        return summary.new_zeros(summary.shape[0], self.layers, self.state_width)


class CopiedInitialState(InitialState):
    """Uses the final state of encoder layer i as the initial state of decoder layer i.

    Sutskever et al. 2014
    """

    formula = "c"

    def forward(self, memory: Memory) -> Tensor:
        return memory.summary


class ProjectedInitialState(InitialState):
    """Computes the initial state as tanh(W c + b), or with a network of several such layers.

    c contains the final states of all encoder layers (`Memory.summary`), concatenated. The decoder
    may differ from the encoder in its number of layers, its width and its cell.

    input_width:   width of c
    hidden_layers: number of additional tanh layers before the last layer. They are as wide as the
                   result. Default: 0
    """

    def __init__(
        self, input_width: int, layers: int, state_width: int, hidden_layers: int = 0
    ) -> None:
        super().__init__(layers, state_width)
        width = layers * state_width
        widths = [input_width, *[width] * hidden_layers]
        self.hidden_layers = nn.ModuleList(nn.Linear(each, width) for each in widths[:-1])
        self.projection = nn.Linear(widths[-1], width)

    def forward(self, memory: Memory) -> Tensor:
        hidden = self.inputs(memory)
        for layer in self.hidden_layers:
            hidden = torch.tanh(layer(hidden))
        return torch.tanh(self.projection(hidden)).unflatten(1, (self.layers, -1))

    def inputs(self, memory: Memory) -> Tensor:
        """Return the vector from which the initial state is computed: (B, input_width)"""
        return memory.summary.flatten(1)

    @property
    def input_formula(self) -> str:
        """Formula of the vector that `inputs` returns."""
        return "c"

    @property
    def formula(self) -> str:
        formula, layers = self.input_formula, len(self.hidden_layers) + 1
        for number in range(1, layers + 1):
            weight, bias = (letter if layers == 1 else indexed(letter, number) for letter in "Wb")
            formula = f"tanh({weight} {formula} + {bias})"
        return formula


class FlattenedInitialState(ProjectedInitialState):
    """Computes the initial state as tanh(W [h_1; …; h_G] + b) from all grid cells of an image.

    h_i is the encoder state of cell i. The concatenated states show where in the image a feature
    is. Their mean would not show this.

    cells:         G, the number of grid cells, which is the same for all images
    cell_width:    width of h_i
    hidden_layers: number of additional tanh layers before the last layer. Default: 0
    """

    def __init__(
        self, cells: int, cell_width: int, layers: int, state_width: int, hidden_layers: int = 0
    ) -> None:
        super().__init__(cells * cell_width, layers, state_width, hidden_layers)
        self.cells = cells

    def inputs(self, memory: Memory) -> Tensor:
        # A captured search pads the states of all sources to one of a few lengths.
        return memory.states[:, : self.cells].flatten(1)

    @property
    def input_formula(self) -> str:
        return f"[h₁; …; {indexed('h', self.cells)}]"


ContextUse = Literal["input", "readout", "layer", "state"]
SummaryUse = Literal["input", "readout"]


class RecurrentEncoder(EncoderModule):
    """Recurrent layers that run forwards, backwards, or in both directions.

    `Memory.states` holds the hidden vector of the top layer at every position. With both
    directions, the two hidden vectors of a position are concatenated (Bahdanau et al. 2015, section
    3.2).

    self_attention: attention from the hidden vectors h of the top layer to themselves.
                    `Memory.states` is then the result h'_t = Σ_s α_ts v_s. `Memory.summary` does
                    not change. None: no self-attention. Default: None
    residual:       with self-attention, `Memory.states` is h_t + h'_t. Default: False
    """

    def __init__(
        self,
        embedder: Embedder,
        forward_layers: list[RecurrentLayer],
        backward_layers: list[RecurrentLayer],
        dropout: Dropout,
        self_attention: MultiHeadAttention | None = None,
        residual: bool = False,
    ) -> None:
        super().__init__()
        self.embedder = embedder
        self.recurrent_cell = (forward_layers or backward_layers)[0].cell
        self.forward_layers = module_list(forward_layers)
        self.backward_layers = module_list(backward_layers)
        self.dropout = dropout
        self.self_attention = self_attention
        self.residual = residual
        self.source_limits = embedder.positions.limits
        if self_attention is not None:
            score = self_attention.score
            self.source_limits |= score_limits(
                "self_attention", score.source_limits | score.target_limits
            )

    def unsupported_by_ctranslate2(self, name: str) -> list[str]:
        return [f"{name} is recurrent, and CTranslate2 runs only Transformers"]

    def forward(self, source: Source, packing: Packing | None = None) -> Memory:
        """Encode token ids (B, S) or vectors.

        The memory holds the hidden vectors (B, S, D) of the top layer and, as its summary, the
        final states (B, L, C) of all layers.
        """
        assert isinstance(source, Padded), "this encoder needs tokens or vectors, not images"
        assert packing is None, "packed rows would carry the state of one pair into the next"
        if self._shares_inputs(source):
            tokens, index = source.values.unique(return_inverse=True)  # (U,), (B, S)
            vectors = self.embedder(tokens)  # (U, D)
            states, end = self._encode_layer(0, Padded(index, source.lengths), vectors)
        else:
            embedded = self.embedder(source.values)  # (B, S, D)
            states, end = self._encode_layer(0, Padded(embedded, source.lengths))
        ends = [end]
        depth = max(len(self.forward_layers), len(self.backward_layers))
        for level in range(1, depth):
            layer_input = Padded(self.dropout(states), source.lengths)
            states, end = self._encode_layer(level, layer_input)
            ends.append(end)
        mask = source.mask
        if self.self_attention is not None:
            attended = self.self_attention.attend_self(states, mask=mask)
            states = states + attended if self.residual else attended
        return Memory(states, mask, torch.stack(ends, dim=1), source.tokens)

    def hidden_layers(self) -> list[HiddenLayer]:
        has_both = bool(self.forward_layers) and bool(self.backward_layers)
        return [
            HiddenLayer(
                f"layer {level} {arrow}" if has_both else f"layer {level}",
                layer,
                layer.width,
                is_reversed=arrow == "←",
            )
            for level in range(1, max(len(self.forward_layers), len(self.backward_layers)) + 1)
            for layers, arrow in ((self.forward_layers, "→"), (self.backward_layers, "←"))
            for layer in layers[level - 1 : level]
        ]

    def _shares_inputs(self, source: Padded) -> bool:
        """Return True if the lowest layer projects the vector of each distinct token only once.

        This is possible for a GRU in training on a CPU, if equal tokens have equal vectors. In
        evaluation mode the result is False, because analyses need the embedded input of each
        position.
        """
        if not (self.training and source.tokens is not None):
            return False
        lowest = [*self.forward_layers[:1], *self.backward_layers[:1]]
        return self.embedder.is_function_of_token and all(
            layer.cell == "gru" and trains_on_cpu(source.values, layer.network.all_weights[0][0])
            for layer in lowest
        )

    def _encode_layer(
        self, level: int, source: Padded, vectors: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Run layer `level` in each direction.

        Return the hidden vectors (B, S, D) and the final state (B, C).

        source:  the input vector of each position; with `vectors`, a row index of `vectors` for
                 each position
        vectors: the distinct input vectors, one per row. Default: None, `source` holds the vectors
        """

        def encode(layer: RecurrentLayer, source: Padded) -> tuple[Tensor, Tensor]:
            return (
                layer.encode(source) if vectors is None else layer.encode_repeated(source, vectors)
            )

        states, ends = [], []
        if self.forward_layers:
            hidden, end = encode(self.forward_layers[level], source)
            states.append(hidden)
            ends.append(end)
        if self.backward_layers:
            hidden, end = encode(self.backward_layers[level], reverse(source))
            # Reverse the result, so that position s of the memory belongs to source token s.
            states.append(reverse(Padded(hidden, source.lengths)).values)
            ends.append(end)
        # The final state of an LSTM is [h; c]. Concatenate h of all directions, then c.
        parts = zip(*(end.split(hidden.shape[-1], dim=-1) for end in ends), strict=True)
        return torch.cat(states, -1), torch.cat([torch.cat(part, -1) for part in parts], -1)


def score_limits(attention: str, limits: Limits) -> Limits:
    """Replace the setting names in `limits` by full names.

    For example, "max_length" becomes "attention.score.max_length".

    attention: table of the attention layer in the config, for example "attention"
    limits:    maps each setting that limits the number of tokens to its limit
    """
    return {f"{attention}.score.{setting}": limit for setting, limit in limits.items()}


@dataclass(frozen=True)
class RecurrentSource:
    """The part of a decoder state that is computed once per source (`State.fixed`).

    keys_values: keys and values of the source; None without attention
    mask:        (B, 1, 1, S) True at visible source positions, or the faster form of this mask that
                 `prepare_mask` returns
    summary:     (B, D) vector for the whole source, from the top encoder layer
    copyable:    source tokens that can be copied; None without a copy mechanism
    positions:   (T, P) table of position vectors of width P, shared by all rows; None if there is
                 no table
    """

    keys_values: KeysValues | None
    mask: Tensor | None
    summary: Tensor
    copyable: Copyable | None
    positions: Tensor | None = None

    def select(self, rows: Tensor) -> "RecurrentSource":
        return RecurrentSource(
            keys_values=None if self.keys_values is None else self.keys_values.select(rows),
            mask=None if self.mask is None else self.mask.index_select(0, rows),
            summary=self.summary.index_select(0, rows),
            copyable=None if self.copyable is None else self.copyable.select(rows),
            positions=self.positions,
        )


@dataclass(frozen=True)
class RecurrentState:
    """The part of a decoder state that changes at every step (`State.moving`).

    It has one row for each of R hypotheses.

    states:  (R, L, C) states of the L layers, each of width C
    context: (R, A)    attention context of the previous step; A is 0 without attention
    """

    states: Tensor
    context: Tensor

    def select(self, rows: Tensor) -> "RecurrentState":
        return RecurrentState(self.states.index_select(0, rows), self.context.index_select(0, rows))

    def copy_(self, later: "RecurrentState") -> None:
        """Overwrite the tensors with those of a later state."""
        self.states.copy_(later.states)
        self.context.copy_(later.context)

    def load(self, other: "RecurrentState", rows: Tensor) -> None:
        self.copy_(other.select(rows))


class RecurrentDecoder(DecoderModule):
    """Recurrent layers that compute the state s_t from s_{t-1} and the embedded previous token.

    The state of a layer is its hidden vector h; an LSTM layer appends its cell state. Attention to
    the source runs once per step. The query is h of one layer, called the query layer. This is the
    lowest layer if `context_uses` contains "layer", otherwise the top layer. The result is the
    attention context a. `context_uses` lists where the decoder uses it:

        input    a is appended to the input of the lowest layer. If `query_is_previous_state` is
                 False, this is the context of the previous step
        layer    a is appended to the input of the layer above the query layer
        state    a replaces the query h. If the widths differ, a is projected first
        readout  a is appended to the input of the output layer

    initial_state:           computes s_0 from the output of the encoder
    attention:               attention to the source; None: no attention
    query_is_previous_state: True: the query is h before the step. False: h after the step
    summary_uses:            where `Memory.summary`, the vector for the whole source, is appended:
                             to the input of the lowest layer ("input"), to the input of the output
                             layer ("readout"), or to both
    readout_uses_input:      True: the embedded previous token is appended to the input of the
                             output layer
    dropout:                 dropout between layers and before the output layer
    """

    compiled_methods = ("advance",)

    def __init__(
        self,
        *,
        embedder: Embedder,
        layers: list[RecurrentLayer],
        initial_state: InitialState,
        attention: MultiHeadAttention | None,
        query_is_previous_state: bool,
        context_uses: frozenset[ContextUse],
        summary_uses: frozenset[SummaryUse],
        readout: Readout,
        readout_uses_input: bool,
        copying: Copying | None,
        dropout: Dropout,
    ) -> None:
        super().__init__()
        self.embedder = embedder
        self.recurrent_cell = layers[0].cell
        self.layers = module_list(layers)
        self.initial_state = initial_state
        self.attention = attention
        self.query_is_previous_state = query_is_previous_state
        self.context_uses = context_uses if attention is not None else frozenset()
        self.summary_uses = summary_uses
        self.readout = readout
        self.copying = copying
        self.readout_uses_input = readout_uses_input
        self.dropout = dropout
        self.target_limits = embedder.positions.limits
        if attention is not None:
            self.target_limits |= score_limits("attention", attention.score.target_limits)
            self.source_limits = score_limits("attention", attention.score.source_limits)
        self.width = layers[-1].width
        # With "layer" the context goes into the layer above the query layer, so the query layer
        # cannot be the top layer.
        self.query_layer = 0 if "layer" in self.context_uses else len(layers) - 1
        context_width = 0 if attention is None else attention.context_width
        self.context_width = context_width
        self.to_state = (
            nn.Linear(context_width, self.width)
            if "state" in self.context_uses and context_width != self.width
            else nn.Identity()
        )

    def unsupported_by_ctranslate2(self, name: str) -> list[str]:
        return [f"{name} is recurrent, and CTranslate2 runs only Transformers"]

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        moving = self._initial(memory)
        source = self._source(memory, max_steps, moving.states)
        if self.attention is not None and source.mask is not None and not need_attention:
            mask = prepare_mask(self.attention, source.mask, moving.states.dtype)
            source = replace(source, mask=mask)
        return State(source, moving, 0, need_attention)

    def start_static(self, memory: Memory, max_steps: int) -> State:
        moving = self._initial(memory)
        source = self._source(memory, max_steps, moving.states)
        return State(source, moving, static_position(memory.mask.device), need_attention=False)

    def step(self, tokens: Tensor, state: State) -> Step:
        source: RecurrentSource = state.fixed
        table = source.positions
        row = None if table is None else row_at(table, state.position)
        inputs = self.embedder.step(tokens, row)
        features, moving, weights = self.advance(
            inputs, source, state.moving, state.need_attention, self._query_position(state.position)
        )
        logits = self.next_logits(self.dropout(features), source.copyable)
        attention = None if weights is None else weights.unsqueeze(1)  # (R, 1, H, S)
        return Step(logits, state.after(moving), attention)

    def forward(
        self, tokens: Tensor, memory: Memory, packing: Packing | None = None
    ) -> DecoderOutput:
        assert packing is None, "packed rows would carry the state of one pair into the next"
        moving = self._initial(memory)
        source = self._source(memory, 0, moving.states)
        embedded = self.embedder(tokens)  # (B, T, E)
        if self.context_uses & {"input", "state"}:
            features = self._forward_stepwise(embedded, source, moving)
        else:
            features = self._forward_parallel(embedded, source, moving.states)
        return self.output(self.dropout(features), source.copyable)

    def _forward_stepwise(
        self, embedded: Tensor, source: RecurrentSource, moving: RecurrentState
    ) -> Tensor:
        """Compute the input features of the readout (B, T, F) position by position.

        Used if the recurrent state depends on the attention context. The context also depends on
        the state, so positions cannot be computed in parallel.
        """
        keys_values, mask = source.keys_values, source.mask
        if self.attention is not None and keys_values is not None and mask is not None:
            steps = embedded.shape[1]
            prepared = prepare_steps(self.attention, keys_values, mask, steps)
            source = replace(source, keys_values=prepared)
        # Before the first step, only the embedded tokens are known. The lowest layer reads them.
        known = [embedded, *[embedded[:, :, :0]] * (len(self.layers) - 1)]
        layer_steps = [
            layer.prepare_steps(each) for layer, each in zip(self.layers, known, strict=True)
        ]
        features = []
        for step, inputs in enumerate(embedded.unbind(1)):
            feature, moving, _ = self.advance(
                inputs, source, moving, False, self._query_position(step), layer_steps
            )
            features.append(feature)
        return torch.stack(features, dim=1)

    def _forward_parallel(
        self, embedded: Tensor, source: RecurrentSource, states: Tensor
    ) -> Tensor:
        """Compute the input features (B, T, F) of the readout. A layer computes all positions at once.

        Used only if the attention queries do not depend on the attention context.
        """
        length = embedded.shape[1]
        summary = source.summary.unsqueeze(1).expand(-1, length, -1)
        hidden = torch.cat((embedded, summary), -1) if "input" in self.summary_uses else embedded
        context: Tensor | None = None
        for level, layer in enumerate(self.layers):
            if (
                context is not None
                and "layer" in self.context_uses
                and level == self.query_layer + 1
            ):
                hidden = torch.cat((hidden, context), -1)
            start = states[:, level]
            hidden, _ = layer(hidden if level == 0 else self.dropout(hidden), start)
            if self.attention is not None and level == self.query_layer:
                assert source.keys_values is not None
                previous = torch.cat((start[:, None, : self.width], hidden[:, :-1]), dim=1)
                queries = previous if self.query_is_previous_state else hidden
                context = self.attention.attend(queries, source.keys_values, source.mask)
        return self.features(hidden, context, summary, embedded)

    @property
    def context_readers(self) -> frozenset[ContextReader]:
        return context_readers(self.context_uses, self.query_is_previous_state)

    @property
    def attention_heads(self) -> tuple[int, int]:
        return (0, 0) if self.attention is None else (1, self.attention.heads)

    def hidden_layers(self) -> list[HiddenLayer]:
        query: Literal["previous", "current"] | None = None
        if self.attention is not None:
            query = "previous" if self.query_is_previous_state else "current"
        return [
            HiddenLayer(
                f"layer {level + 1}",
                layer,
                layer.width,
                query=query if level == self.query_layer else None,
                is_replaced="state" in self.context_uses,
            )
            for level, layer in enumerate(self.layers)
        ]

    def source_attentions(self) -> list[MultiHeadAttention]:
        return [] if self.attention is None else [self.attention]

    def stepwise_logits(self, tokens: Tensor, memory: Memory) -> Tensor:
        logits = [step.logits for _, step in self.run_steps(tokens, memory)]
        return torch.stack(logits, dim=1)

    def describe_step(self, memory: Memory, description: StepDescription) -> Tensor:
        return RecurrentStepDescription(self, memory, description).add_all()

    def _query_position(self, position: int | Tensor) -> Tensor | None:
        """Return the position as a 0-dim tensor; None if the attention score does not need it."""
        if self.attention is None:
            return None
        return self.attention.query_position(position, self.readout.output.weight.device)

    def advance(
        self,
        inputs: Tensor,
        source: RecurrentSource,
        moving: RecurrentState,
        need_attention: bool,
        position: Tensor | None = None,
        layer_steps: Sequence[LayerStep] | None = None,
    ) -> tuple[Tensor, RecurrentState, Tensor | None]:
        """Compute one target position.

        Return three values: the input features of the readout (R, F), the new state, and the
        attention weights (R, H, S). The weights are None if there is no attention or
        `need_attention` is False. F is the width of the features.

        inputs:      (R, E) embedded previous token of each row; E is the width of the embedder
        position:    () the position, if the attention score needs it. Default: None
        layer_steps: for each layer, the function that computes its next state
                     (`RecurrentLayer.prepare_steps`). That of the lowest layer already has the
                     embedded tokens, so `inputs` is not passed to it. Default: None, the method
                     `step` of each layer
        """
        weights: Tensor | None = None
        states, context = moving.states, moving.context
        summary = source.summary.repeat_interleave(len(inputs) // len(source.summary), dim=0)
        before = list(states.unbind(1))  # L of (R, C)
        if self.attention is not None and self.query_is_previous_state:
            query = before[self.query_layer]
            context, weights = self._attend(query, source, need_attention, position)
            before[self.query_layer] = self.replace_hidden_state(query, context)
        hidden = inputs if layer_steps is None else inputs[:, :0]
        layer_steps = [layer.step for layer in self.layers] if layer_steps is None else layer_steps
        if "input" in self.context_uses:
            hidden = torch.cat((hidden, context), -1)
        if "input" in self.summary_uses:
            hidden = torch.cat((hidden, summary), -1)
        after = []
        for level, layer_step in enumerate(layer_steps):
            if "layer" in self.context_uses and level == self.query_layer + 1:
                hidden = torch.cat((hidden, context), -1)
            state = layer_step(hidden if level == 0 else self.dropout(hidden), before[level])
            is_query = self.attention is not None and level == self.query_layer
            if is_query and not self.query_is_previous_state:
                context, weights = self._attend(state, source, need_attention, position)
                state = self.replace_hidden_state(state, context)
            hidden = state[:, : self.width]
            after.append(state)
        features = self.features(hidden, context, summary, inputs)
        return features, RecurrentState(torch.stack(after, dim=1), context), weights

    def features(
        self, hidden: Tensor, context: Tensor | None, summary: Tensor, inputs: Tensor
    ) -> Tensor:
        """Concatenate the parts that the readout uses as its input features: (…, F)"""
        parts = [hidden]
        if context is not None and "readout" in self.context_uses:
            parts.append(context)
        if "readout" in self.summary_uses:
            parts.append(summary)
        if self.readout_uses_input:
            parts.append(inputs)
        return torch.cat(parts, dim=-1)

    def _attend(
        self,
        state: Tensor,
        source: RecurrentSource,
        need_attention: bool,
        position: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend to the source. The query is the hidden vector h in the state (R, C).

        Return the context (R, A), and the weights (R, H, S) if `need_attention`, otherwise None.
        """
        assert self.attention is not None
        assert source.keys_values is not None
        return self.attention.step_cross(
            state[:, : self.width], source.keys_values, source.mask, need_attention, position
        )

    def replace_hidden_state(self, state: Tensor, context: Tensor) -> Tensor:
        """Replace the hidden vector h in the state (R, C) by the context.

        If their widths differ, the context is first projected. If `context_uses` does not contain
        "state", return the state unchanged.
        """
        if "state" not in self.context_uses:
            return state
        cell = state[:, self.width :]  # c of an LSTM; empty for other cells
        replaced = torch.cat((self.to_state(context), cell), dim=-1)
        return observe(self, "replaced state", replaced)

    def _source(self, memory: Memory, max_steps: int, like: Tensor) -> RecurrentSource:
        """Compute the part of the decoder state that is the same at every step (`State.fixed`).

        max_steps: number of rows of the position table; 0: no table
        like:      a tensor with the dtype and device of the position table
        """
        attention, positions = self.attention, self.embedder.positions
        return RecurrentSource(
            keys_values=None if attention is None else attention.project_keys_values(memory.states),
            mask=memory.mask[:, None, None],
            summary=memory.summary[:, -1] if memory.summary.shape[1] else memory.summary.flatten(1),
            copyable=self.copyable(memory),
            positions=positions.tabulate(max_steps, like) if max_steps else None,
        )

    def _initial(self, memory: Memory) -> RecurrentState:
        """Return the state before the first step. Its attention context is zero."""
        states = observe(
            self.initial_state, "initial state", self.initial_state(memory)
        )  # (B, L, C)
        return RecurrentState(states, states.new_zeros(states.shape[0], self.context_width))


def context_readers(
    uses: frozenset[ContextUse], query_is_previous_state: bool
) -> frozenset[ContextReader]:
    """Return which decoder vectors are computed from the attention context of step t.

    The vectors are "state" (of step t), "output" (of step t) and "next state" (of step t + 1).

    uses:                    where the decoder uses the context, for example at its "input"
    query_is_previous_state: True if the attention query is the state of the previous step. The
                             context is then known before the new state is computed.
    """
    readers: set[ContextReader] = set()
    if uses & {"readout", "layer"}:
        readers.add("output")
    if query_is_previous_state:
        if uses & {"input", "state"}:
            readers.add("state")
        return frozenset(readers)
    if "input" in uses:
        readers.add("next state")
    if "state" in uses:
        # The context replaces the new state, which the output and the next step read.
        readers |= {"output", "next state"}
    return frozenset(readers)


class RecurrentStepDescription:
    """Describes one step of a recurrent decoder.

    memory:      encoder output of one source
    description: receives the values
    """

    def __init__(
        self, decoder: RecurrentDecoder, memory: Memory, description: StepDescription
    ) -> None:
        self.decoder, self.memory, self.description = decoder, memory, description
        self.observed = StepObserver()
        with observing(self.observed):
            *_, (state, step) = decoder.run_steps(description.tokens, memory)
        self.before: RecurrentState = state.moving
        self.logits = step.logits

    def add_all(self) -> Tensor:
        """Add all values of the step. Return the probabilities of the next token: (V,)"""
        description, decoder = self.description, self.decoder
        description.begin_section("input")
        description.add_input(decoder.embedder, self.observed)
        description.begin_section("previous state")
        self._add_previous_state()
        if decoder.attention is not None and decoder.query_is_previous_state:
            self._add_attention(decoder.attention, self._state(decoder.query_layer, step_back=True))
        self._add_layers()
        symbols = [self._state(len(decoder.layers) - 1)]
        symbols += [description.current("a")] if "readout" in decoder.context_uses else []
        symbols += ["c"] if "readout" in decoder.summary_uses else []
        symbols += [description.current("x")] if decoder.readout_uses_input else []
        formula = concatenated(symbols)
        return decoder.describe_output(formula, self.logits, self.observed, description)

    def _state(self, layer: int, step_back: bool = False) -> str:
        """Return the symbol of a layer's state after this step, for example s₃ after step 3.

        If there are several layers, the symbol contains the number of the layer: s¹₃.

        layer:     index of the layer, from 0
        step_back: if True, return the symbol of the state after the previous step: s₂
        """
        step = self.description.number - step_back
        return indexed_layer("s", layer + 1, len(self.decoder.layers), step)

    def _add_previous_state(self) -> None:
        description, decoder = self.description, self.decoder
        is_first = description.number == 1
        # Without attention, the encoder summary is all that the decoder receives from the source.
        if description.labels.source and (is_first or decoder.attention is None):
            self._add_per_layer(
                "encoder summary", "c = the encoder's last state", self.memory.summary
            )
        origin = f" = {decoder.initial_state.formula}" if is_first else " of the previous step"
        note = "s, then its cell m" if decoder.recurrent_cell == "lstm" else ""
        formula = f"{description.previous('s')}{origin}"
        self._add_per_layer("state", formula, self.before.states, note)
        reads_context = "input" in decoder.context_uses and not decoder.query_is_previous_state
        if reads_context and not is_first:
            formula = f"{description.previous('a')} of the previous step"
            description.add("previous context", formula, self.before.context[0])

    def _add_per_layer(self, name: str, formula: str, values: Tensor, note: str = "") -> None:
        """Add a vector for each layer (1, L, D), with labels; without them if L is 1."""
        labels = tuple(f"layer {number + 1}" for number in range(values.shape[1]))
        if len(labels) > 1:
            self.description.add(name, formula, values[0], labels, note)
        else:
            self.description.add(name, formula, values[0, 0], note=note)

    def _add_attention(self, attention: MultiHeadAttention, symbol: str) -> None:
        """Add the attention to the source. symbol: that of the state that is the query"""
        description, decoder = self.description, self.decoder
        description.begin_section("attention")
        attended, labels = self.observed.attentions[attention], description.labels.source
        note = self._context_note()
        description.add_attention(attention, attended, symbol, "h", labels, note)
        if "state" in decoder.context_uses:
            context = description.current("a")
            formula = context if isinstance(decoder.to_state, nn.Identity) else f"W {context} + b"
            replaced = self.observed.values[decoder, "replaced state"]
            description.add("replaced state", f"{symbol} = {formula}", replaced[0])

    def _add_layers(self) -> None:
        """Add the new state of each layer, and the attention that runs after the query layer."""
        decoder, description = self.decoder, self.description
        is_previous = decoder.query_is_previous_state
        symbols = [description.current("x")]
        if "input" in decoder.context_uses:
            symbols.append((description.current if is_previous else description.previous)("a"))
        if "input" in decoder.summary_uses:
            symbols.append("c")
        for level, layer in enumerate(decoder.layers):
            if "layer" in decoder.context_uses and level == decoder.query_layer + 1:
                symbols.append(description.current("a"))
            description.begin_section("state update")
            update = layer.formula(concatenated(symbols), self._state(level, step_back=True))
            name = "new state" if len(decoder.layers) == 1 else f"new state of layer {level + 1}"
            state = self.observed.values[layer, "state"]
            description.add(name, f"{self._state(level)} = {update}", state[0], note=layer.note)
            is_query = level == decoder.query_layer and not is_previous
            if decoder.attention is not None and is_query:
                self._add_attention(decoder.attention, self._state(level))
            symbols = [self._state(level)]

    def _context_note(self) -> str:
        """Return a note that says where the decoder uses the context vector."""
        decoder = self.decoder
        step = "" if decoder.query_is_previous_state else " of the next step"
        uses = {
            "input": f"the input{step}",
            "layer": f"the input of layer {decoder.query_layer + 2}",
            "state": "the new value of the querying state",
            "readout": "the readout",
        }
        used = [text for use, text in uses.items() if use in decoder.context_uses]
        return f"used in {' and '.join(used)}"

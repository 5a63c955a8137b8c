"""Traces one step of a recurrent decoder.

`RecurrentDecoder.step` processes the tokens before this step. This module then runs the decoder's
layers for the step itself and traces every value. A test checks that the result equals the result
of `RecurrentDecoder.step`.
"""

import torch
from torch import Tensor, nn

from seqloom.analysis.explain import formulas
from seqloom.analysis.explain.step_trace import (
    AttentionSymbols,
    StepTrace,
    trace_attention,
    trace_input,
    trace_output,
)
from seqloom.models.recurrent import (
    CopiedInitialState,
    FlattenedInitialState,
    InitialState,
    ProjectedInitialState,
    RecurrentDecoder,
)


def trace_recurrent(decoder: RecurrentDecoder, trace: StepTrace) -> Tensor:
    """Trace one step of a recurrent decoder. Returns the probabilities of the next token: (V,)"""
    return _RecurrentStep(decoder, trace).run()


class _RecurrentStep:
    """Computes one step of a recurrent decoder and traces its values."""

    def __init__(self, decoder: RecurrentDecoder, trace: StepTrace) -> None:
        self.decoder = decoder
        self.trace = trace
        summary = trace.memory.summary
        self.summary = summary[:, -1] if summary.shape[1] else summary.flatten(1)  # (1, D)
        self.states, self.context = self._previous_state()
        """States (1, L, C) and context vector (1, A) after the previous step."""

    def run(self) -> Tensor:
        self.trace.begin_section("input")
        inputs = trace_input(self.decoder.embedder, self.trace)
        self.trace.begin_section("previous state")
        self._trace_previous_state()
        previous = list(self.states.unbind(1))  # L of (1, C)
        layer = self.decoder.query_layer
        if self.decoder.attention is not None and self.decoder.query_is_previous_state:
            previous[layer] = self._attend(previous[layer], self._state(layer, step_back=True))
        hidden = self._run_layers(inputs, previous)
        features = self.decoder.features(hidden, self.context, self.summary, inputs)
        return trace_output(self.decoder, features, self._features_formula(), self.trace)

    def _previous_state(self) -> tuple[Tensor, Tensor]:
        state = self.decoder.start(self.trace.memory, self.trace.step)
        for token in self.trace.tokens[:, :-1].unbind(1):
            state = self.decoder.step(token, state).state
        states, context = state.moving.states, state.moving.context
        return states, context

    def _state(self, layer: int, step_back: bool = False) -> str:
        """Return the symbol of a layer's state after this step, for example s₃ after step 3.

        If there are several layers, the symbol contains the number of the layer: s¹₃.

        layer:     index of the layer, from 0
        step_back: if True, return the symbol of the state after the previous step: s₂
        """
        step = self.trace.step - step_back
        return formulas.indexed_layer("s", layer + 1, len(self.decoder.layers), step)

    def _trace_previous_state(self) -> None:
        trace, is_first = self.trace, self.trace.step == 1
        # Without attention, the encoder summary is all that the decoder receives from the source.
        if trace.labels.source and (is_first or self.decoder.attention is None):
            summary = trace.memory.summary
            labels = _layer_labels(summary.shape[1])
            values = summary[0] if labels else summary[0, 0]
            trace.add("encoder summary", "c = the encoder's last state", values, labels)
        labels = _layer_labels(len(self.decoder.layers))
        values = self.states[0] if labels else self.states[0, 0]
        formula = (
            _initial_state(self.decoder.initial_state) if is_first else " of the previous step"
        )
        note = "s, then its cell m" if self.decoder.layers[0].cell == "lstm" else ""
        trace.add("state", f"{trace.previous('s')}{formula}", values, labels, note)
        if (
            not is_first
            and "input" in self.decoder.context_uses
            and not self.decoder.query_is_previous_state
        ):
            formula = f"{trace.previous('a')} of the previous step"
            trace.add("previous context", formula, self.context[0])

    def _attend(self, state: Tensor, symbol: str) -> Tensor:
        """Trace attention with the state (1, C) as its query. C is the width of a state.

        Returns the state (1, C) with which the step continues. Most decoders continue with the
        given state. If `context_uses` of the decoder contains "state", the context vector replaces
        the hidden vector in the state. It is first projected if the two widths differ.
        """
        attention, trace = self.decoder.attention, self.trace
        assert attention is not None
        trace.begin_section("attention")
        source, query = trace.memory.states, state[:, None, : self.decoder.width]
        attended = attention.trace(query, source, trace.source_mask, position_ids=trace.step - 1)
        symbols = AttentionSymbols(symbol, "h", trace.labels.source)
        trace_attention(attention, attended, symbols, trace, self._context_note())
        self.context = attended.context[:, 0]
        replaced = self.decoder.replace_hidden_state(state, self.context)
        if "state" in self.decoder.context_uses:
            is_identity = isinstance(self.decoder.to_state, nn.Identity)
            context = trace.current("a")
            formula = context if is_identity else f"W {context} + b"
            trace.add("replaced state", f"{symbol} = {formula}", replaced[0])
        return replaced

    def _run_layers(self, inputs: Tensor, previous: list[Tensor]) -> Tensor:
        """Run and trace all layers in order.

        Returns the hidden vector of the top layer: (1, D). The cell of an LSTM is not returned.
        """
        decoder, trace = self.decoder, self.trace
        hidden, symbols = inputs, [trace.current("x")]
        if "input" in decoder.context_uses:
            hidden = torch.cat((hidden, self.context), -1)
            symbols.append(
                (trace.current if decoder.query_is_previous_state else trace.previous)("a")
            )
        if "input" in decoder.summary_uses:
            hidden = torch.cat((hidden, self.summary), -1)
            symbols.append("c")
        for number, layer in enumerate(decoder.layers):
            if "layer" in decoder.context_uses and number == decoder.query_layer + 1:
                hidden = torch.cat((hidden, self.context), -1)
                symbols.append(trace.current("a"))
            trace.begin_section("state update")
            state = layer.step(hidden, previous[number])
            update = formulas.cell(
                layer, formulas.concatenated(symbols), self._state(number, step_back=True)
            )
            name = "new state" if len(decoder.layers) == 1 else f"new state of layer {number + 1}"
            formula = f"{self._state(number)} = {update}"
            trace.add(name, formula, state[0], note=formulas.cell_note(layer.cell))
            attends = decoder.attention is not None and number == decoder.query_layer
            if attends and not decoder.query_is_previous_state:
                state = self._attend(state, self._state(number))
            hidden, symbols = state[:, : decoder.width], [self._state(number)]
        return hidden

    def _features_formula(self) -> str:
        decoder = self.decoder
        symbols = [self._state(len(decoder.layers) - 1)]
        symbols += [self.trace.current("a")] if "readout" in decoder.context_uses else []
        symbols += ["c"] if "readout" in decoder.summary_uses else []
        symbols += [self.trace.current("x")] if decoder.readout_uses_input else []
        return formulas.concatenated(symbols)

    def _context_note(self) -> str:
        """Describe where the decoder uses the context vector."""
        step = "" if self.decoder.query_is_previous_state else " of the next step"
        uses = {
            "input": f"the input{step}",
            "layer": f"the input of layer {self.decoder.query_layer + 2}",
            "state": "the new value of the querying state",
            "readout": "the readout",
        }
        used = [
            description for use, description in uses.items() if use in self.decoder.context_uses
        ]
        return f"used in {' and '.join(used)}"


def _layer_labels(count: int) -> tuple[str, ...]:
    """Return one label per layer, or no labels if there is only one layer."""
    return tuple(f"layer {number + 1}" for number in range(count)) if count > 1 else ()


def _initial_state(initial_state: InitialState) -> str:
    match initial_state:
        case CopiedInitialState():
            return " = c"
        case ProjectedInitialState():
            formula = "c"
            if isinstance(initial_state, FlattenedInitialState):
                formula = f"[h₁; …; {formulas.indexed('h', initial_state.cells)}]"
            layers = len(initial_state.hidden_layers) + 1
            for number in range(1, layers + 1):
                weight, bias = (
                    letter if layers == 1 else formulas.indexed(letter, number) for letter in "Wb"
                )
                formula = f"tanh({weight} {formula} + {bias})"
            return f" = {formula}"
        case _:
            return " = 0: the initial state does not depend on the source"

"""A step of a recurrent decoder, told as `RecurrentDecoder` takes it.

The tokens before the step go through the decoder itself. The step is then taken once more with the
decoder's own parts, and every value is told on the way; a test finds the same answer as `step` gives.
"""

import torch
from torch import Tensor, nn

from seqloom.inside import formulas
from seqloom.inside.scene import Asking, Scene, tell_answer, tell_input, tell_look
from seqloom.models.handover import Handover, LayerHandover, WholeHandover
from seqloom.models.recurrent import RecurrentDecoder


def tell_recurrent(decoder: RecurrentDecoder, scene: Scene) -> Tensor:
    """(V,) the probabilities of the next token, and in the story how they come about."""
    return _Telling(decoder, scene).tell()


class _Telling:
    def __init__(self, decoder: RecurrentDecoder, scene: Scene) -> None:
        self.decoder = decoder
        self.scene = scene
        self.story = scene.story
        summary = scene.memory.summary
        self.summary = summary[:, -1] if summary.shape[1] else summary.flatten(1)  # (1, D)
        self.states, self.context = self._remembered()
        """(1, L, C) and (1, A): of the step before."""

    def tell(self) -> Tensor:
        self.story.begin("what goes in")
        inputs = tell_input(self.decoder.embedder, self.scene)
        self.story.begin("what it remembers")
        self._tell_memory()
        before = list(self.states.unbind(1))  # L of (1, C)
        asking = self.decoder.asking_layer
        if self.decoder.attention is not None and self.decoder.asks_with_previous:
            before[asking] = self._look(before[asking], self._state(asking, earlier=True))
        hidden = self._go_on(inputs, before)
        features = self.decoder.features(hidden, self.context, self.summary, inputs)
        return tell_answer(self.decoder, features, self._seen_by_readout(), self.scene)

    def _remembered(self) -> tuple[Tensor, Tensor]:
        state = self.decoder.start(self.scene.memory, self.scene.step)
        for token in self.scene.tokens[:, :-1].unbind(1):
            state = self.decoder.step(token, state).state
        states, context = state.moving.states, state.moving.context
        return states, context

    def _state(self, level: int, earlier: bool = False) -> str:
        """s₃, or s¹₃ where there are several layers."""
        step = self.scene.step - earlier
        return formulas.of_layer("s", level + 1, len(self.decoder.layers), step)

    def _tell_memory(self) -> None:
        first, handover = self.scene.step == 1, self.decoder.handover
        # Without attention this state is all that is known of the source.
        if self.scene.words.source and (first or self.decoder.attention is None):
            summary = self.scene.memory.summary
            labels = _layers(summary.shape[1])
            told = summary[0] if labels else summary[0, 0]
            self.story.tell("handed over", "c = the encoder's last state", told, labels)
        labels = _layers(len(self.decoder.layers))
        told = self.states[0] if labels else self.states[0, 0]
        formula = _start(handover) if first else ", as the last step left it"
        note = "s, then its cell m" if self.decoder.layers[0].cell == "lstm" else ""
        self.story.tell("state", f"{self.scene.before('s')}{formula}", told, labels, note)
        if not first and "input" in self.decoder.uses and not self.decoder.asks_with_previous:
            read = f"{self.scene.before('a')}, as the last step read it"
            self.story.tell("context before", read, self.context[0])

    def _look(self, state: Tensor, letter: str) -> Tensor:
        """The state (1, C) asks, and is what stands in its place then."""
        attention = self.decoder.attention
        assert attention is not None
        self.story.begin("where it looks")
        source, query = self.scene.memory.states, state[:, None, : self.decoder.width]
        look = attention.lay_open(query, source, self.scene.visible)
        asking = Asking(letter, "h", self.scene.words.source)
        tell_look(attention, look, asking, self.scene, self._uses())
        self.context = look.context[:, 0]
        after = self.decoder.after_asking(state, self.context)
        if "state" in self.decoder.uses:
            plain = isinstance(self.decoder.to_state, nn.Identity)
            read = self.scene.now("a")
            formula = read if plain else f"W {read} + b"
            self.story.tell("state in its place", f"{letter} = {formula}", after[0])
        return after

    def _go_on(self, inputs: Tensor, before: list[Tensor]) -> Tensor:
        """Layer by layer to the new top h: (1, W)"""
        decoder, scene = self.decoder, self.scene
        hidden, letters = inputs, [scene.now("x")]
        if "input" in decoder.uses:
            hidden = torch.cat((hidden, self.context), -1)
            letters.append((scene.now if decoder.asks_with_previous else scene.before)("a"))
        if "input" in decoder.summary_uses:
            hidden = torch.cat((hidden, self.summary), -1)
            letters.append("c")
        for level, layer in enumerate(decoder.layers):
            if "layer" in decoder.uses and level == decoder.asking_layer + 1:
                hidden = torch.cat((hidden, self.context), -1)
                letters.append(scene.now("a"))
            self.story.begin("how it goes on")
            state = layer.step(hidden, before[level])
            came = formulas.cell(layer, formulas.joined(letters), self._state(level, earlier=True))
            name = "new state" if len(decoder.layers) == 1 else f"new state of layer {level + 1}"
            told = f"{self._state(level)} = {came}"
            self.story.tell(name, told, state[0], note=formulas.cell_note(layer.cell))
            asks = decoder.attention is not None and level == decoder.asking_layer
            if asks and not decoder.asks_with_previous:
                state = self._look(state, self._state(level))
            hidden, letters = state[:, : decoder.width], [self._state(level)]
        return hidden

    def _seen_by_readout(self) -> str:
        decoder = self.decoder
        parts = [self._state(len(decoder.layers) - 1)]
        parts += [self.scene.now("a")] if "readout" in decoder.uses else []
        parts += ["c"] if "readout" in decoder.summary_uses else []
        parts += [self.scene.now("x")] if decoder.readout_sees_input else []
        return formulas.joined(parts)

    def _uses(self) -> str:
        """Where the context goes."""
        when = "" if self.decoder.asks_with_previous else " of the next step"
        places = {
            "input": f"the input{when}",
            "layer": f"the input of layer {self.decoder.asking_layer + 2}",
            "state": "the place of the state that asked",
            "readout": "the readout",
        }
        used = [words for use, words in places.items() if use in self.decoder.uses]
        return f"goes into {' and '.join(used)}"


def _layers(count: int) -> tuple[str, ...]:
    """A label for each, where there are several."""
    return tuple(f"layer {number + 1}" for number in range(count)) if count > 1 else ()


def _start(handover: Handover) -> str:
    match handover:
        case WholeHandover():
            return " = c"
        case LayerHandover():
            return " = tanh(W c + b)"
        case _:
            return " = 0: nothing is handed over"

"""What a recurrent encoder hands over, and what a decoder does with what it reads."""

from typing import Any

import pytest
import torch
from torch import Tensor

from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Padded
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model
from seqloom.models.interface import Memory, Step
from seqloom.models.recurrent import RecurrentDecoder, RecurrentEncoder
from seqloom.models.seq2seq import Model

CELLS = ["rnn", "gru", "lstm"]
WIDTH = 4
SOURCE = Padded(torch.tensor([[4, 5, 6, 7], [7, 4, 0, 0]]), torch.tensor([4, 2]))


def build(encoder: dict[str, Any], decoder: dict[str, Any]) -> Model:
    torch.manual_seed(0)
    config = ModelConfig.model_validate(
        {
            "encoder": {"kind": "recurrent", "width": WIDTH, **encoder},
            "decoder": {"kind": "recurrent", "width": WIDTH, **decoder},
        }
    )
    model = build_model(config, Signature(Tokens(8), Tokens(8), shared=False))
    return model.double().eval().requires_grad_(False)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("layers", [1, 2])
def test_an_annotation_is_the_forward_and_the_backward_state_side_by_side(
    cell: str, layers: int
) -> None:
    model = build({"cell": cell, "layers": layers}, {})
    assert isinstance(model.encoder, RecurrentEncoder)
    memory = model.encode(SOURCE, 2)
    assert memory.states.shape == (2, 4, 2 * WIDTH)
    top = memory.summary[:, -1]
    assert memory.summary.shape == (2, layers, 2 * WIDTH * (2 if cell == "lstm" else 1))
    for row, length in enumerate([4, 2]):
        # The forward reader ends at the last word, the backward one at the first.
        torch.testing.assert_close(top[row, :WIDTH], memory.states[row, length - 1, :WIDTH])
        torch.testing.assert_close(top[row, WIDTH : 2 * WIDTH], memory.states[row, 0, WIDTH:])


@pytest.mark.parametrize("cell", CELLS)
def test_a_source_read_in_reverse_is_the_reversed_source_read_forwards(cell: str) -> None:
    backward = build({"cell": cell, "direction": "backward"}, {})
    forward = build({"cell": cell, "direction": "forward"}, {})
    weights = {
        name.replace("backward_layers", "forward_layers"): tensor
        for name, tensor in backward.state_dict().items()
    }
    forward.load_state_dict(weights)
    mirrored = Padded(torch.tensor([[7, 6, 5, 4], [4, 7, 0, 0]]), SOURCE.lengths)
    there, back = forward.encode(mirrored, 2), backward.encode(SOURCE, 2)
    torch.testing.assert_close(there.summary, back.summary)
    # Position s of the memory is word s, whichever way it was read.
    torch.testing.assert_close(back.states[0], there.states[0].flip(0))
    torch.testing.assert_close(back.states[1, :2], there.states[1, :2].flip(0))


def first_step(model: Model) -> tuple[Memory, Tensor, Step]:
    """The memory, the states before the first token (B, L, C), and the answer to it."""
    memory = model.encode(SOURCE, 2)
    state = model.decoder.start(memory, 1)
    before = state.moving.states
    return memory, before, model.decoder.step(torch.tensor([1, 1]), state)


@pytest.mark.parametrize("cell", CELLS)
def test_handed_over_whole_the_decoder_starts_where_the_encoder_ended(cell: str) -> None:
    switches = {"cell": cell, "layers": 2}
    model = build({**switches, "direction": "forward"}, {**switches, "handover": "whole"})
    memory, before, _ = first_step(model)
    assert torch.equal(before, memory.summary)


def test_handed_nothing_the_decoder_starts_from_zeros() -> None:
    _, before, _ = first_step(build({}, {"layers": 2, "handover": "none"}))
    assert torch.equal(before, torch.zeros(2, 2, WIDTH).double())


def test_through_a_layer_any_encoder_can_hand_over_to_any_decoder() -> None:
    model = build({"cell": "lstm", "layers": 2}, {"cell": "gru", "layers": 3, "handover": "mlp"})
    _, before, _ = first_step(model)
    assert before.shape == (2, 3, WIDTH)
    assert float(before.abs().max()) < 1  # a tanh


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("query", ["current", "previous"])
@pytest.mark.parametrize(("layers", "also"), [(1, []), (2, []), (2, ["layer"])])
def test_a_context_used_as_the_state_takes_the_place_of_the_state_that_asked(
    cell: str, query: str, layers: int, also: list[str]
) -> None:
    model = build(
        {"direction": "forward"},
        {"cell": cell, "layers": layers, "query": query, "context": ["state", *also]},
    )
    decoder = model.decoder
    assert isinstance(decoder, RecurrentDecoder)
    asking = 0 if also else layers - 1
    memory, before, step = first_step(model)
    after, context = step.state.moving.states, step.state.moving.context
    assert step.attention is not None
    torch.testing.assert_close(step.attention[:, 0, 0, None] @ memory.states, context[:, None])
    if query == "current":  # the new h asked, and a is now in its place
        torch.testing.assert_close(after[:, asking, :WIDTH], context)
    else:  # the old h asked; the cell went on from a
        changed = before[:, asking].clone()
        changed[:, :WIDTH] = context
        inputs = decoder.embedder(torch.tensor([[1], [1]]))[:, 0]
        for level in range(asking):
            inputs = after[:, level, :WIDTH]
        expected = decoder.layers[asking].step(inputs, changed)
        torch.testing.assert_close(after[:, asking], expected)


def test_a_summary_is_the_top_layers_last_state() -> None:
    plain, told = (
        build({"layers": 2}, {"handover": "none", "summary": uses, "attention": {"kind": "none"}})
        for uses in (["input"], ["input", "readout"])
    )
    for model in (plain, told):
        memory = model.encode(SOURCE, 2)
        inputs = torch.tensor([[1, 4], [1, 4]])
        own = model.decoder(inputs, memory).features
        below = memory.summary.clone()
        below[:, 0] = 9  # nobody looks at the lower layer
        other = Memory(memory.states, memory.mask, below)
        torch.testing.assert_close(model.decoder(inputs, other).features, own)
        below[:, 1] = 9
        assert not torch.allclose(model.decoder(inputs, other).features, own)
    assert told.decoder(inputs, memory).features.shape[-1] == WIDTH + 2 * WIDTH


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("feeds_back", [False, True])
def test_the_readout_sees_state_context_summary_and_input_side_by_side(
    cell: str, feeds_back: bool
) -> None:
    """y_t = g(y_{t-1}, s_t, c), whether positions are taught at once or one after the other."""
    model = build(
        {"direction": "forward"},
        {
            "cell": cell,
            "context": ["readout", "input"] if feeds_back else ["readout"],
            "summary": ["readout"],
            "readout_input": True,
        },
    )
    decoder, inputs = model.decoder, torch.tensor([[1, 4, 5], [1, 7, 6]])
    assert isinstance(decoder, RecurrentDecoder)
    memory = model.encode(SOURCE, 2)
    features, embedded = decoder(inputs, memory).features, decoder.embedder(inputs)
    state = decoder.start(memory, 3)
    for place, tokens in enumerate(inputs.unbind(1)):
        state = decoder.step(tokens, state).state
        states, context = state.moving.states, state.moving.context
        seen = (states[:, 0, :WIDTH], context, memory.summary[:, 0], embedded[:, place])
        torch.testing.assert_close(features[:, place], torch.cat(seen, -1))

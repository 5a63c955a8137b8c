"""Recurrent encoders, initial states, and the uses of context and summary in recurrent decoders."""

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
def test_an_annotation_concatenates_the_forward_and_the_backward_state(
    cell: str, layers: int
) -> None:
    model = build({"cell": cell, "layers": layers}, {})
    assert isinstance(model.encoder, RecurrentEncoder)
    memory = model.encode(SOURCE, 2)
    assert memory.states.shape == (2, 4, 2 * WIDTH)
    top = memory.summary[:, -1]
    assert memory.summary.shape == (2, layers, 2 * WIDTH * (2 if cell == "lstm" else 1))
    for row, length in enumerate([4, 2]):
        # The forward layers end at the last token, the backward layers at the first.
        torch.testing.assert_close(top[row, :WIDTH], memory.states[row, length - 1, :WIDTH])
        torch.testing.assert_close(top[row, WIDTH : 2 * WIDTH], memory.states[row, 0, WIDTH:])


@pytest.mark.parametrize("cell", CELLS)
def test_encoding_backwards_equals_encoding_the_reversed_source_forwards(cell: str) -> None:
    backward = build({"cell": cell, "direction": "backward"}, {})
    forward = build({"cell": cell, "direction": "forward"}, {})
    weights = {
        name.replace("backward_layers", "forward_layers"): tensor
        for name, tensor in backward.state_dict().items()
    }
    forward.load_state_dict(weights)
    mirrored = Padded(torch.tensor([[7, 6, 5, 4], [4, 7, 0, 0]]), SOURCE.lengths)
    expected, memory = forward.encode(mirrored, 2), backward.encode(SOURCE, 2)
    torch.testing.assert_close(expected.summary, memory.summary)
    # Position s of the memory is token s of the source in both directions.
    torch.testing.assert_close(memory.states[0], expected.states[0].flip(0))
    torch.testing.assert_close(memory.states[1, :2], expected.states[1, :2].flip(0))


def first_step(model: Model) -> tuple[Memory, Tensor, Step]:
    """The memory, the states before the first token (B, L, C), and the first step."""
    memory = model.encode(SOURCE, 2)
    state = model.decoder.start(memory, 1)
    before = state.moving.states
    return memory, before, model.decoder.step(torch.tensor([1, 1]), state)


@pytest.mark.parametrize("cell", CELLS)
def test_a_copied_initial_state_is_the_final_state_of_the_encoder(cell: str) -> None:
    settings = {"cell": cell, "layers": 2}
    model = build({**settings, "direction": "forward"}, {**settings, "initial_state": "copy"})
    memory, before, _ = first_step(model)
    assert torch.equal(before, memory.summary)


def test_without_an_initial_state_the_decoder_starts_from_zeros() -> None:
    _, before, _ = first_step(build({}, {"layers": 2, "initial_state": "zeros"}))
    assert torch.equal(before, torch.zeros(2, 2, WIDTH).double())


def test_a_projected_initial_state_connects_different_cells_and_depths() -> None:
    model = build(
        {"cell": "lstm", "layers": 2}, {"cell": "gru", "layers": 3, "initial_state": "mlp"}
    )
    _, before, _ = first_step(model)
    assert before.shape == (2, 3, WIDTH)
    assert float(before.abs().max()) < 1  # a tanh


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("query", ["current", "previous"])
@pytest.mark.parametrize(("layers", "also"), [(1, []), (2, []), (2, ["layer"])])
def test_a_context_used_as_the_state_replaces_the_state_that_was_the_query(
    cell: str, query: str, layers: int, also: list[str]
) -> None:
    model = build(
        {"direction": "forward"},
        {"cell": cell, "layers": layers, "query": query, "context": ["state", *also]},
    )
    decoder = model.decoder
    assert isinstance(decoder, RecurrentDecoder)
    query_layer = 0 if also else layers - 1
    memory, before, step = first_step(model)
    after, context = step.state.moving.states, step.state.moving.context
    assert step.attention is not None
    torch.testing.assert_close(step.attention[:, 0, 0, None] @ memory.states, context[:, None])
    if query == "current":  # the new h was the query and is replaced
        torch.testing.assert_close(after[:, query_layer, :WIDTH], context)
    else:  # the old h was the query, and the cell uses a instead
        changed = before[:, query_layer].clone()
        changed[:, :WIDTH] = context
        inputs = decoder.embedder(torch.tensor([[1], [1]]))[:, 0]
        for level in range(query_layer):
            inputs = after[:, level, :WIDTH]
        expected = decoder.layers[query_layer].step(inputs, changed)
        torch.testing.assert_close(after[:, query_layer], expected)


def test_the_summary_is_the_final_state_of_the_top_layer() -> None:
    input_only, input_and_readout = (
        build(
            {"layers": 2},
            {"initial_state": "zeros", "summary": uses, "attention": {"kind": "none"}},
        )
        for uses in (["input"], ["input", "readout"])
    )
    for model in (input_only, input_and_readout):
        memory = model.encode(SOURCE, 2)
        inputs = torch.tensor([[1, 4], [1, 4]])
        expected = model.decoder(inputs, memory).features
        summary = memory.summary.clone()
        changed = Memory(memory.states, memory.mask, summary)
        summary[:, 0] = 9  # the lower layer is not used
        torch.testing.assert_close(model.decoder(inputs, changed).features, expected)
        summary[:, 1] = 9
        assert not torch.allclose(model.decoder(inputs, changed).features, expected)
    assert input_and_readout.decoder(inputs, memory).features.shape[-1] == WIDTH + 2 * WIDTH


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("feeds_back", [False, True])
def test_the_readout_gets_state_context_summary_and_input(cell: str, feeds_back: bool) -> None:
    """y_t = g(y_{t-1}, s_t, c), whether positions are computed in parallel or step by step."""
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
    for t, tokens in enumerate(inputs.unbind(1)):
        state = decoder.step(tokens, state).state
        states, context = state.moving.states, state.moving.context
        parts = (states[:, 0, :WIDTH], context, memory.summary[:, 0], embedded[:, t])
        torch.testing.assert_close(features[:, t], torch.cat(parts, -1))

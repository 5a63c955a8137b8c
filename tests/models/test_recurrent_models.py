"""Recurrent encoders, initial states, and the uses of context and summary in recurrent decoders."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Images, Padded
from seqloom.core.errors import ConfigError
from seqloom.core.signature import Pixels, Signature, Tokens, Vectors
from seqloom.decoding.beam import Beam
from seqloom.decoding.fast.captured import CapturedSearch
from seqloom.decoding.search import SearchRequest
from seqloom.models.build import build_model
from seqloom.models.ensemble import build_ensemble
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


def embedded_counts(model: Model) -> list[int]:
    """Encode SOURCE in training mode. Return how many vectors each call of the embedder computes."""
    assert isinstance(model.encoder, RecurrentEncoder)
    counts = []

    def count(module: object, arguments: object, vectors: Tensor) -> None:
        counts.append(vectors[..., 0].numel())

    with model.encoder.embedder.register_forward_hook(count):
        model.train().requires_grad_().encode(SOURCE, 2)
    return counts


@pytest.mark.parametrize("layers", [1, 2])
def test_training_embeds_each_token_of_a_batch_once_with_the_same_result(layers: int) -> None:
    model = build({"cell": "gru", "layers": layers, "dropout": 0.0}, {})
    assert embedded_counts(model) == [5]  # the different tokens of SOURCE: 0, 4, 5, 6 and 7
    memories = [model.train(mode).encode(SOURCE, 2) for mode in (True, False)]
    torch.testing.assert_close(memories[0].states, memories[1].states)
    torch.testing.assert_close(memories[0].summary, memories[1].summary)
    weights = list(model.encoder.parameters()) if model.encoder is not None else []
    shared, separate = (
        torch.autograd.grad(memory.states.sin().sum() + memory.summary.cos().sum(), weights)
        for memory in memories
    )
    torch.testing.assert_close(shared, separate)


@pytest.mark.parametrize(
    "encoder",
    [
        {"cell": "lstm", "dropout": 0.0},
        {"dropout": 0.1},
        {"dropout": 0.0, "embedding": {"kind": "learned", "noise": 0.1}},
        {"dropout": 0.0, "positions": {"kind": "sinusoidal"}},
    ],
    ids=["LSTM", "dropout", "noise", "positions"],
)
def test_other_encoders_embed_each_position_in_training(
    encoder: dict[str, Any],
) -> None:
    assert embedded_counts(build({"cell": "gru", **encoder}, {})) == [8]


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


# Self-attention over the states of the encoder


def test_self_attention_without_parameters_is_softmax_of_products_of_states() -> None:
    """h'_t = Σ_s α_ts h_s, α_t = softmax(h_t · h_s), over the real positions of each row."""
    plain = build({}, {})
    attention = {"kind": "attention", "score": {"kind": "dot", "scale": "one"}}
    attentive = build({"self_attention": attention}, {})
    assert attentive.state_dict().keys() == plain.state_dict().keys()
    states, memory = plain.encode(SOURCE, 2).states, attentive.encode(SOURCE, 2)
    for row, length in enumerate([4, 2]):
        h = states[row, :length]
        torch.testing.assert_close(memory.states[row, :length], (h @ h.T).softmax(-1) @ h)
    assert torch.equal(memory.summary, plain.encode(SOURCE, 2).summary)


def test_a_residual_adds_the_states_to_the_result_of_self_attention() -> None:
    attention = {"kind": "attention", "heads": 2, "projection": "tanh", "values": "learned"}
    plain = build({"self_attention": attention}, {})
    residual = build({"self_attention": attention, "self_attention_residual": True}, {})
    without = build({}, {}).encode(SOURCE, 2).states
    difference = residual.encode(SOURCE, 2).states - plain.encode(SOURCE, 2).states
    torch.testing.assert_close(difference, without)


def test_self_attention_with_exact_match_returns_the_states_themselves() -> None:
    """Every state equals its own key, so the hash table returns its own value."""
    attention = {"kind": "attention", "score": {"kind": "dot"}, "selection": "exact"}
    memory = build({"self_attention": attention}, {}).encode(SOURCE, 2)
    expected = build({}, {}).encode(SOURCE, 2).states
    assert torch.equal(memory.states[0], expected[0])
    assert torch.equal(memory.states[1, :2], expected[1, :2])


# Initial states and inputs of the decoder


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_network_of_the_initial_state_has_as_many_tanh_layers_as_configured(
    layers: int,
) -> None:
    model = build({"layers": 2}, {"layers": 2, "initial_state_layers": layers})
    assert isinstance(model.decoder, RecurrentDecoder)
    network = model.decoder.initial_state
    linears = [part for part in network.modules() if isinstance(part, torch.nn.Linear)]
    assert len(linears) == layers
    memory, before, _ = first_step(model)
    hidden = memory.summary.flatten(1)
    for linear in linears:
        hidden = torch.tanh(linear(hidden))
    torch.testing.assert_close(before.flatten(1), hidden)


@pytest.mark.parametrize("context", ["readout", "input"])
def test_a_decoder_that_is_not_fed_its_output_does_not_depend_on_any_token(context: str) -> None:
    """So teacher forcing, stepping with other tokens and free running give the same logits."""
    model = build({}, {"feed_output": False, "context": [context]})
    memory = model.encode(SOURCE, 2)
    expected = model.decoder(torch.tensor([[1, 4, 5], [1, 7, 6]]), memory).logits()
    state = model.decoder.start(memory, 3)
    tokens = torch.tensor([1, 1])
    for t in range(3):
        step = model.decoder.step(tokens, state)
        state, tokens = step.state, step.logits.argmax(-1)
        torch.testing.assert_close(step.logits, expected[:, t])
    assert not torch.allclose(expected[:, 1], expected[:, 2])  # the state still changes
    assert not any("embedder.lookup.table" in name for name in model.decoder.state_dict())


def test_a_forecast_without_fed_output_still_reads_the_context_values() -> None:
    torch.manual_seed(0)
    config = ModelConfig.model_validate(
        {
            "encoder": {"kind": "recurrent", "width": WIDTH},
            "decoder": {"kind": "recurrent", "width": WIDTH, "feed_output": False},
        }
    )
    model = build_model(config, Signature(Vectors(5), Vectors(2), shared=False, context=3))
    memory = model.encode(Padded(torch.randn(2, 4, 5), torch.tensor([4, 4])), 2)
    inputs = torch.randn(2, 6, 5)
    expected = model.decoder(inputs, memory).logits()
    other_output, other_context = inputs.clone(), inputs.clone()
    other_output[..., :2] = 9
    other_context[..., 2:] = 9
    torch.testing.assert_close(model.decoder(other_output, memory).logits(), expected)
    assert not torch.allclose(model.decoder(other_context, memory).logits(), expected)


# Attention weights that depend only on positions


@pytest.mark.parametrize("context", ["readout", "input"])
def test_fixed_weights_give_the_same_context_at_every_step_and_position_weights_do_not(
    context: str,
) -> None:
    """Attempts 1 and 2 of the lecture: c = Σ a_s h_s, and c_t = Σ a_ts h_s."""
    scores = {
        "fixed": {"kind": "fixed", "max_length": 9},
        "position": {"kind": "position", "max_source_length": 9, "max_target_length": 7},
    }
    for kind, score in scores.items():
        model = build(
            {}, {"attention": {"kind": "attention", "score": score}, "context": [context]}
        )
        assert isinstance(model.decoder, RecurrentDecoder)
        assert model.decoder.attention is not None
        table = model.decoder.attention.score.get_parameter("table")
        torch.nn.init.normal_(table)
        memory = model.encode(SOURCE, 2)
        state, contexts = model.decoder.start(memory, 5), []
        for t in range(5):
            step = model.decoder.step(torch.tensor([4 + t % 3, 5]), state)
            state = step.state
            contexts.append(state.moving.context)
            assert step.attention is not None
            row = table[0, 0 if kind == "fixed" else t]
            for source, length in enumerate([4, 2]):
                weights = row[:length].softmax(-1)
                torch.testing.assert_close(step.attention[source, 0, 0, :length], weights)
        same = torch.stack([torch.isclose(one, contexts[0]).all() for one in contexts])
        assert same.all() if kind == "fixed" else not same[1:].any()


def test_tables_of_positions_limit_the_lengths_of_source_and_target() -> None:
    score = {"kind": "position", "max_source_length": 9, "max_target_length": 7}
    positions = {"kind": "learned", "max_length": 8}
    model = build(
        {
            "positions": positions,
            "self_attention": {"kind": "attention", "score": {"kind": "fixed"}},
        },
        {"positions": positions, "attention": {"kind": "attention", "score": score}},
    )
    assert model.source_limits == {
        "model.decoder.attention.score.max_source_length": 9,
        "model.encoder.positions.max_length": 8,
        "model.encoder.self_attention.score.max_length": 256,
    }
    assert model.target_limits == {
        "model.decoder.positions.max_length": 8,
        "model.decoder.attention.score.max_target_length": 7,
    }
    assert (model.max_source_length, model.max_target_length) == (8, 7)
    other = build(
        {}, {"attention": {"kind": "attention", "score": {**score, "max_target_length": 5}}}
    )
    ensemble = build_ensemble([model, other])
    assert (ensemble.max_source_length, ensemble.max_target_length) == (8, 5)


# Image features as the initial state

IMAGE_ENCODERS: dict[str, dict[str, Any]] = {
    "convolution": {"kind": "convolution", "width": 6, "channels": [8, 8], "blocks": 1},
    "patches": {
        "kind": "patches",
        "width": 6,
        "layers": 1,
        "feedforward": 8,
        "attention": {"heads": 1},
        "patch_size": 5,
    },
}


def build_captioner(encoder: str, **decoder: Any) -> Model:
    torch.manual_seed(0)
    config = ModelConfig.model_validate(
        {
            "encoder": IMAGE_ENCODERS[encoder],
            "decoder": {"kind": "recurrent", "width": WIDTH, **decoder},
        }
    )
    model = build_model(config, Signature(Pixels(3, 10, 10), Tokens(8), shared=False))
    return model.eval().requires_grad_(False)


@pytest.mark.parametrize(("encoder", "cells"), [("convolution", 9), ("patches", 4)])
@pytest.mark.parametrize("hidden_layers", [0, 1])
def test_a_flattened_initial_state_reads_all_cells_of_the_image(
    encoder: str, cells: int, hidden_layers: int
) -> None:
    model = build_captioner(
        encoder,
        initial_state="flattened",
        initial_state_layers=hidden_layers + 1,
        attention={"kind": "none"},
    )
    assert isinstance(model.decoder, RecurrentDecoder)
    memory = model.encode(Images(torch.randint(0, 255, (2, 3, 10, 10), dtype=torch.uint8)), 2)
    assert memory.states.shape == (2, cells, 6)
    network = model.decoder.initial_state
    hidden = memory.states.flatten(1)
    for linear in (part for part in network.modules() if isinstance(part, torch.nn.Linear)):
        hidden = torch.tanh(linear(hidden))
    torch.testing.assert_close(model.decoder.start(memory, 1).moving.states.flatten(1), hidden)
    # The mean of the cells does not show their order; the flattened cells do.
    swapped = replace(memory, states=memory.states.flip(1))
    assert not torch.allclose(network(swapped), network(memory))
    mean = build_captioner(encoder, attention={"kind": "none"}).decoder
    torch.testing.assert_close(
        mean.start(swapped, 1).moving.states, mean.start(memory, 1).moving.states
    )
    request = SearchRequest([5, 6], n_best=2)
    expected = Beam(3)(model.decoder, memory, request)
    captured = CapturedSearch(Beam(3))(model.decoder, memory, request)
    for found, plain in zip(captured, expected, strict=True):
        assert [one.tokens for one in found] == [one.tokens for one in plain]


@pytest.mark.parametrize(
    ("score", "setting"),
    [
        ({"kind": "fixed", "max_length": 8}, "max_length"),
        ({"kind": "position", "max_source_length": 8}, "max_source_length"),
    ],
)
def test_a_table_smaller_than_the_grid_of_an_image_is_rejected(
    score: dict[str, Any], setting: str
) -> None:
    with pytest.raises(
        ConfigError, match=rf"score.{setting}: an image has 9 cells, .* set it to 9"
    ):
        build_captioner("convolution", attention={"kind": "attention", "score": score})
    build_captioner("convolution", attention={"kind": "attention", "score": {**score, setting: 9}})

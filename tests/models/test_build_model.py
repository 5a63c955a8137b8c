"""Building models from configs: rejected configs, shared weights, numbers of parameters."""

from typing import Any

import pytest
import torch
from torch import nn

from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import ConfigError
from seqloom.core.signature import NoSource, Signature, Tokens
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.nn.embedding import Embedder, LearnedLookup, Readout
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.transformer import Norm

SMALL_ATTENTION = {
    "kind": "attention",
    "score": {"kind": "dot"},
    "projection": "linear",
    "values": "learned",
    "heads": 2,
    "output_projection": True,
}
SMALL_TRANSFORMER = {
    "kind": "transformer",
    "width": 8,
    "layers": 1,
    "feedforward": 12,
    "attention": SMALL_ATTENTION,
}


def build(
    encoder: dict[str, Any], decoder: dict[str, Any], tie: str = "none", vocabulary: int = 20
) -> Model:
    config = ModelConfig.model_validate({"encoder": encoder, "decoder": decoder, "tie": tie})
    source = NoSource() if encoder["kind"] == "none" else Tokens(vocabulary)
    return build_model(config, Signature(source, Tokens(vocabulary), shared=tie == "all"))


def test_one_hot_positions_larger_than_the_vocabulary_are_rejected_on_both_sides() -> None:
    side = {
        "width": 8,
        "embedding": {"kind": "one-hot"},
        "positions": {"kind": "one-hot", "join": "add", "max_length": 50},
    }
    with pytest.raises(ConfigError) as caught:
        build({"kind": "recurrent", **side}, {"kind": "recurrent", **side})
    assert str(caught.value).splitlines() == [
        f"model.{name}.positions: one-hot positions up to 50 cannot be added to one-hot tokens of "
        "a vocabulary of 20; use join = 'append', or max_length = 20 or less"
        for name in ("encoder", "decoder")
    ]
    build({"kind": "recurrent", **side}, {"kind": "recurrent", **side}, vocabulary=50)


def test_maximum_lengths_are_those_of_the_position_tables() -> None:
    learned = {"kind": "learned", "max_length": 30}
    one_hot = {"kind": "one-hot", "max_length": 40}
    model = build({"kind": "recurrent", "positions": learned}, {"kind": "recurrent"})
    assert (model.max_source_length, model.max_target_length) == (30, None)
    model = build(SMALL_TRANSFORMER, {**SMALL_TRANSFORMER, "positions": one_hot})
    assert (model.max_source_length, model.max_target_length) == (None, 40)
    model = build({"kind": "none"}, {**SMALL_TRANSFORMER, "positions": learned})
    assert (model.max_source_length, model.max_target_length) == (None, 30)


def test_without_an_encoder_the_memory_has_empty_rows() -> None:
    model = build({"kind": "none"}, SMALL_TRANSFORMER).double()
    assert model.encoder is None
    memory = model.encode(None, 3)
    assert memory.states.shape == memory.summary.shape == (3, 0, 0)
    assert memory.mask.shape == (3, 0)
    assert memory.states.dtype == torch.float64
    inputs = Padded(torch.ones(3, 4, dtype=torch.long), torch.tensor([4, 2, 3]))
    assert model(Batch(None, inputs, inputs)).features.shape == (3, 4, 8)
    with pytest.raises(AssertionError, match="without encoder cannot encode"):
        model.encode(inputs, 3)


@pytest.mark.parametrize("decoder", ["recurrent", "transformer"])
def test_a_model_has_logits_for_every_target_position(decoder: str) -> None:
    side = SMALL_TRANSFORMER if decoder == "transformer" else {"kind": "recurrent", "width": 8}
    model = build({"kind": "recurrent", "width": 4}, side)
    source = Padded(torch.ones(2, 5, dtype=torch.long), torch.tensor([5, 3]))
    inputs = Padded(torch.ones(2, 7, dtype=torch.long), torch.tensor([7, 6]))
    assert model(Batch(source, inputs, inputs)).logits().shape == (2, 7, 20)


# Shared weights


def embedding_weight(part: nn.Module | None) -> nn.Parameter:
    assert part is not None
    embedder = part.get_submodule("embedder")
    assert isinstance(embedder, Embedder)
    assert isinstance(embedder.lookup, LearnedLookup)
    return embedder.lookup.weight


def output_weight(model: Model) -> nn.Parameter:
    assert isinstance(model.decoder.readout, Readout)
    weight = model.decoder.readout.output.weight
    assert isinstance(weight, nn.Parameter)
    return weight


RECURRENT_TIED = {"kind": "recurrent", "width": 8, "readout": "tanh"}


@pytest.mark.parametrize("decoder", [RECURRENT_TIED, SMALL_TRANSFORMER], ids=lambda d: d["kind"])
@pytest.mark.parametrize("tie", ["none", "output", "all"])
def test_tied_matrices_are_one_parameter(decoder: dict[str, Any], tie: str) -> None:
    model = build(SMALL_TRANSFORMER, decoder, tie)
    source, target, output = (
        embedding_weight(model.encoder),
        embedding_weight(model.decoder),
        output_weight(model),
    )
    assert (output is target) == (tie != "none")
    assert (source is target) == (tie == "all")
    matrices = {"none": 3, "output": 2, "all": 1}[tie]
    vocabulary_matrices = [one for one in model.parameters() if one.shape == (20, 8)]
    assert len(vocabulary_matrices) == matrices


@pytest.mark.parametrize("tie", ["none", "output", "all"])
def test_only_tied_matrices_share_memory_and_stay_tied_after_loading(tie: str) -> None:
    model, other = (build(SMALL_TRANSFORMER, SMALL_TRANSFORMER, tie) for _ in range(2))
    saved = model.state_dict()
    addresses: dict[int, list[str]] = {}
    for name, tensor in saved.items():
        addresses.setdefault(tensor.data_ptr(), []).append(name)
    shared = [sorted(names) for names in addresses.values() if len(names) > 1]
    target = ["decoder.embedder.lookup.table.weight", "decoder.readout.output.weight"]
    everything = [*target, "encoder.embedder.lookup.table.weight"]
    assert shared == {"none": [], "output": [target], "all": [everything]}[tie]
    other.load_state_dict({name: tensor.clone() for name, tensor in saved.items()})
    assert (output_weight(other) is embedding_weight(other.decoder)) == (tie != "none")
    for name, tensor in other.state_dict().items():
        assert torch.equal(tensor, saved[name]), name


# Numbers of parameters


def attention_count(width: int) -> int:
    """W and b of queries, keys, values and the output projection."""
    return 4 * (width * width + width)


def feedforward_count(width: int, inner: int) -> int:
    return width * inner + inner + inner * width + width


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_transformer_of_the_paper_has_the_computed_number_of_parameters(
    norm: Norm,
) -> None:
    """Six layers, width 512, eight heads of 64, feed-forward 2048, one matrix for all tokens."""
    width, inner, layers, vocabulary = 512, 2048, 6, 37_000
    side = {
        "kind": "transformer",
        "width": width,
        "layers": layers,
        "feedforward": inner,
        "norm": norm,
    }
    with torch.device("meta"):  # shapes without values
        model = build(side, side, tie="all", vocabulary=vocabulary)
    layer_norm = 2 * width
    feedforward = feedforward_count(width, inner)
    encoder_layer = attention_count(width) + feedforward + 2 * layer_norm
    decoder_layer = 2 * attention_count(width) + feedforward + 3 * layer_norm
    last_norms = 2 * layer_norm if norm == "pre" else 0
    tokens = vocabulary * width + vocabulary  # the shared matrix and the output's bias
    expected = layers * (encoder_layer + decoder_layer) + last_norms + tokens
    assert sum(parameter.numel() for parameter in model.parameters()) == expected
    attentions = [one for one in model.modules() if isinstance(one, MultiHeadAttention)]
    assert len(attentions) == 3 * layers
    assert {one.key_head_width for one in attentions} == {64}


def test_a_gru_translator_has_the_computed_number_of_parameters() -> None:
    """A GRU has 3 (w·w + w·w + 2 w): two in the encoder, one in the decoder. Then the initial state
    tanh(W c + b), the bilinear score, and the readout of [h; a]."""
    width, vocabulary = 16, 30
    model = build(
        {"kind": "recurrent", "width": width},
        {"kind": "recurrent", "width": width},
        vocabulary=vocabulary,
    )
    gru = 3 * (width * width + width * width + 2 * width)
    initial_state = 2 * width * width + width
    bilinear = width * 2 * width
    readout = (width + 2 * width) * vocabulary + vocabulary
    expected = 2 * vocabulary * width + 3 * gru + initial_state + bilinear + readout
    assert sum(parameter.numel() for parameter in model.parameters()) == expected

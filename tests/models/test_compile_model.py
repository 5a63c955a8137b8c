"""Which parts of a model `compile_model` compiles."""

from typing import Any

import pytest
import torch

from seqloom.config.schema.model import ModelConfig
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model
from seqloom.models.compile import compile_model
from seqloom.models.seq2seq import Model

TRANSFORMER = {"kind": "transformer", "width": 8, "layers": 2, "feedforward": 8}
RECURRENT = {"kind": "recurrent", "width": 8}


def build(encoder: dict[str, Any], decoder: dict[str, Any]) -> Model:
    config = ModelConfig.model_validate({"encoder": encoder, "decoder": decoder})
    return build_model(config, Signature(Tokens(9), Tokens(9), shared=True))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the methods that were compiled; nothing is compiled for real."""
    names: list[str] = []

    def record(method: Any, dynamic: bool) -> Any:
        names.append(method.__qualname__)
        return method

    monkeypatch.setattr(torch, "compile", record)
    return names


def test_transformer_layers_and_the_loss_are_compiled(compiled: list[str]) -> None:
    model = build(TRANSFORMER, {**TRANSFORMER, "copying": True})
    compile_model(model)
    expected = ["Module._call_impl"] * 4 + ["Readout.loss", "Copying.loss"]
    assert compiled == expected


def test_the_step_of_a_recurrent_decoder_and_the_loss_are_compiled(compiled: list[str]) -> None:
    model = build(RECURRENT, RECURRENT)
    compile_model(model)
    assert compiled == ["RecurrentDecoder.advance", "Readout.loss"]
    assert "loss" in vars(model.decoder.readout)

"""Compiles parts of a model with torch.compile: layers, decoder steps and losses."""

import torch
from torch import nn

from seqloom.models.seq2seq import Model


def compile_model(model: Model) -> None:
    """Compile Transformer layers, the step of a recurrent decoder, and the losses, in place.

    torch compiles them again for each new batch shape.
    """
    for part in model.parts:
        for layer in part.layer_stack:
            layer.compile(dynamic=False)
        for name in part.compiled_methods:
            _compile_method(part, name)
    _compile_method(model.decoder.readout, "loss")
    if model.decoder.copying is not None:
        _compile_method(model.decoder.copying, "loss")


def _compile_method(module: nn.Module, name: str) -> None:
    setattr(module, name, torch.compile(getattr(module, name), dynamic=False))

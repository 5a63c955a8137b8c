"""Compiles parts of a model with torch.compile: layers, decoder steps and losses."""

import torch
from torch import nn

from seqloom.models.images import PatchEncoder
from seqloom.models.recurrent import RecurrentDecoder
from seqloom.models.seq2seq import Model
from seqloom.models.transformer import TransformerDecoder, TransformerEncoder


def compile_model(model: Model) -> None:
    """Compile Transformer layers, the step of a recurrent decoder, and the losses, in place.

    torch compiles them again for each new batch shape.
    """
    for part in (model.encoder, model.decoder):
        match part:
            case TransformerEncoder() | TransformerDecoder() | PatchEncoder():
                for layer in part.layers:
                    layer.compile(dynamic=False)
            case RecurrentDecoder():
                _compile_method(part, "advance")
            case _:
                pass
    _compile_method(model.decoder.readout, "loss")
    if model.decoder.copying is not None:
        _compile_method(model.decoder.copying, "loss")


def _compile_method(module: nn.Module, name: str) -> None:
    setattr(module, name, torch.compile(getattr(module, name), dynamic=False))

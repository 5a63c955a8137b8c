"""Small Transformers with random weights, and their results with torch and with CTranslate2."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from seqloom.config.schema.decoding import SearchConfig
from seqloom.core.signature import Signature, Tokens
from seqloom.data.modalities.text import TextInput
from seqloom.decoding.build import build_search
from seqloom.decoding.forced import force
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import SearchRequest
from seqloom.inference.engine.convert import Precision, convert
from seqloom.inference.engine.translator import CTranslate2Engine
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.tasks.task import ModelInput, collate_sources
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN
from support.tiny_runs import tiny_config

VOCABULARY = 14
SMALL = {
    "kind": "'transformer'",
    "width": "8",
    "layers": "2",
    "feedforward": "16",
    "attention": "{heads=2}",
}


def side(**settings: str) -> str:
    """The config of a small encoder or decoder, as an inline TOML table."""
    return f"{{{', '.join(f'{key}={value}' for key, value in (SMALL | settings).items())}}}"


def random_model(encoder: str, decoder: str, tie: str = "none", end_bias: float = 2.0) -> Model:
    """A Transformer with random weights. `end_bias` makes END probable, so that outputs end."""
    shared = ("text.shared=true",) if tie == "all" else ()
    settings = (f"model.encoder={encoder}", f"model.decoder={decoder}", f"model.tie={tie}")
    signature = Signature(Tokens(VOCABULARY), Tokens(VOCABULARY), shared=tie == "all")
    torch.manual_seed(7)
    model = build_model(tiny_config(*settings, *shared).model, signature).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # Biases and norms start at 0 or 1, where errors would go unnoticed.
            parameter.add_(0.3 * torch.randn_like(parameter))
        bias = output_bias(model)
        bias[END] += end_bias
        bias[[PAD, START, UNKNOWN]] -= 9.0  # improbable, as in a trained model
    return model


def output_bias(model: Model) -> Tensor:
    return model.decoder.readout.get_submodule("output").get_parameter("bias").data


def convert_and_load(
    model: Model, folder: Path, precision: Precision = "float32"
) -> CTranslate2Engine:
    convert(model, folder, precision)
    return CTranslate2Engine.load(folder, model, precision)


def random_sources(count: int = 20, max_length: int = 9) -> list[ModelInput]:
    random = np.random.default_rng(1)
    lengths = random.integers(1, max_length + 1, count)
    return [
        ModelInput(TextInput(tuple(random.integers(3, VOCABULARY, length).tolist())), ())
        for length in lengths
    ]


@torch.inference_mode()
def search_with_torch(
    model: Model, batch: Sequence[ModelInput], request: SearchRequest, decoding: SearchConfig
) -> list[list[Hypothesis]]:
    memory = model.encode(collate_sources(batch), len(batch))
    return build_search(decoding)(model.decoder, memory, request)


@torch.inference_mode()
def score_with_torch(
    model: Model, batch: Sequence[ModelInput], targets: Sequence[Sequence[int]]
) -> list[tuple[float, ...]]:
    memory = model.encode(collate_sources(batch), len(batch))
    return [forced.log_probabilities for forced in force(model.decoder, memory, targets)]

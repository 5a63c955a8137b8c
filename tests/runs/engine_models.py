"""Small Transformers with random weights, and what both engines make of them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from seqloom.config.schema.decoding import SearchConfig
from seqloom.core.signature import Signature, Tokens
from seqloom.data.batching.collate import pad_ids
from seqloom.decoding.build import build_search
from seqloom.decoding.forced import force
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import SearchRequest
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.runs.engine.convert import Precision, convert
from seqloom.runs.engine.translator import CTranslate2Engine
from seqloom.tasks.task import ModelInput
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN
from tiny_runs import recipe

VOCABULARY = 14
SMALL = {
    "kind": "'transformer'",
    "width": "8",
    "layers": "2",
    "feedforward": "16",
    "attention": "{heads=2}",
}


def side(**changes: str) -> str:
    """One side of a model: small, with these changes."""
    return f"{{{', '.join(f'{key}={value}' for key, value in (SMALL | changes).items())}}}"


def random_model(encoder: str, decoder: str, tie: str = "none", ending: float = 2.0) -> Model:
    """A Transformer that has learned nothing but to come to an end now and then."""
    shared = ("text.shared=true",) if tie == "all" else ()
    changes = (f"model.encoder={encoder}", f"model.decoder={decoder}", f"model.tie={tie}")
    signature = Signature(Tokens(VOCABULARY), Tokens(VOCABULARY), shared=tie == "all")
    torch.manual_seed(7)
    model = build_model(recipe(*changes, *shared).model, signature).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # Nothing stays at 0 or 1, as biases and norms are at first.
            parameter.add_(0.3 * torch.randn_like(parameter))
        bias = output_bias(model)
        bias[END] += ending
        bias[[PAD, START, UNKNOWN]] -= 9.0  # never in a target, and so improbable once trained
    return model


def output_bias(model: Model) -> Tensor:
    return model.decoder.readout.get_submodule("output").get_parameter("bias").data


def engine_of(model: Model, folder: Path, precision: Precision = "float32") -> CTranslate2Engine:
    convert(model, folder, precision)
    return CTranslate2Engine.load(folder, model, precision)


def some_sources(count: int = 20, longest: int = 9) -> list[ModelInput]:
    random = np.random.default_rng(1)
    lengths = random.integers(1, longest + 1, count)
    return [ModelInput(tuple(random.integers(3, VOCABULARY, n).tolist()), ()) for n in lengths]


@torch.inference_mode()
def by_torch(
    model: Model, batch: Sequence[ModelInput], request: SearchRequest, decoding: SearchConfig
) -> list[list[Hypothesis]]:
    rows = [np.array(one.source, np.int32) for one in batch]
    memory = model.encode(pad_ids(rows, last=END), len(rows))
    return build_search(decoding)(model.decoder, memory, request)


@torch.inference_mode()
def torch_scores(
    model: Model, batch: Sequence[ModelInput], targets: Sequence[Sequence[int]]
) -> list[tuple[float, ...]]:
    rows = [np.array(one.source, np.int32) for one in batch]
    memory = model.encode(pad_ids(rows, last=END), len(rows))
    return [one.log_probabilities for one in force(model.decoder, memory, targets)]

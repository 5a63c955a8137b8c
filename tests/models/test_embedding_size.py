"""The initial scale of the embeddings of a Transformer."""

import math

import pytest
import torch

from seqloom.config.schema.model import ModelConfig
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model
from seqloom.nn.embedding import Embedder, LearnedLookup

VOCABULARY, WIDTH = 200, 64


@pytest.mark.parametrize("tie", ["none", "output", "all"])
@pytest.mark.parametrize("part", ["encoder", "decoder"])
def test_transformer_embeddings_start_small_and_are_scaled_by_the_root_of_their_width(
    tie: str, part: str
) -> None:
    side = {"kind": "transformer", "width": WIDTH, "layers": 1, "feedforward": 16}
    config = ModelConfig.model_validate({"encoder": side, "decoder": side, "tie": tie})
    torch.manual_seed(0)
    signature = Signature(Tokens(VOCABULARY), Tokens(VOCABULARY), shared=tie == "all")
    embedder = build_model(config, signature).eval().get_submodule(f"{part}.embedder")
    assert isinstance(embedder, Embedder)
    lookup = embedder.lookup
    assert isinstance(lookup, LearnedLookup)
    with torch.no_grad():
        vectors = lookup(torch.arange(VOCABULARY).unsqueeze(0))
    # 12,800 draws determine the standard deviation to less than one percent.
    assert float(lookup.weight.std().detach()) == pytest.approx(1 / math.sqrt(WIDTH), rel=0.05)
    assert float(vectors.std()) == pytest.approx(1.0, rel=0.05)

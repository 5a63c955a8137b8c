"""How large the vectors are that a Transformer begins with."""

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
def test_a_transformer_keeps_small_vectors_and_reads_them_times_the_root_of_their_width(
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
    # 12,800 draws: their deviation is known to less than one in a hundred.
    assert float(lookup.weight.std().detach()) == pytest.approx(1 / math.sqrt(WIDTH), rel=0.05)
    assert float(vectors.std()) == pytest.approx(1.0, rel=0.05)

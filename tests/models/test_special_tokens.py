"""What a Transformer decoder reads first, and the probability of PAD and START."""

from typing import Any

import pytest
import torch

from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Padded
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.nn.embedding import Embedder, LearnedLookup, Readout
from seqloom.text.vocabulary import END, PAD, START

VOCABULARY, WIDTH = 20, 8
SIDE = {"kind": "transformer", "width": WIDTH, "layers": 1, "feedforward": 12}
HEADS = {"heads": 2, "score": {"kind": "dot"}, "projection": "linear", "values": "learned"}


def build(tie: str = "all", **decoder: Any) -> Model:
    torch.manual_seed(0)
    attention = {"kind": "attention", "output_projection": True, **HEADS}
    side = {**SIDE, "attention": attention}
    config = {"encoder": side, "decoder": {**side, **decoder}, "tie": tie}
    signature = Signature(Tokens(VOCABULARY), Tokens(VOCABULARY), shared=True)
    return build_model(ModelConfig.model_validate(config), signature).eval()


def logits(model: Model, tokens: list[int]) -> torch.Tensor:
    source = Padded(torch.tensor([[5, 6, END]]), torch.tensor([3]))
    memory = model.encode(source, 1)
    return model.decoder(torch.tensor([tokens]), memory).logits()


@pytest.mark.parametrize(("start", "token"), [("end", END), ("padding", PAD)])
def test_a_replaced_start_token_has_the_embedding_of_the_other_token(
    start: str, token: int
) -> None:
    model = build(start=start)
    torch.testing.assert_close(logits(model, [START, 7, 8]), logits(model, [token, 7, 8]))


def test_a_zero_start_is_the_position_encoding_alone() -> None:
    model = build(start="zero")
    embedder = model.decoder.get_submodule("embedder")
    assert isinstance(embedder, Embedder)
    positions = embedder.positions(torch.zeros(1, 1, WIDTH), 0)
    torch.testing.assert_close(embedder(torch.tensor([[START]])), positions)


@pytest.mark.parametrize("start", ["learned", "zero", "end", "padding"])
def test_only_a_learned_start_depends_on_the_embedding_of_the_start_token(start: str) -> None:
    model = build(tie="none", start=start)
    before = logits(model, [START, 7])
    lookup = model.decoder.get_submodule("embedder.lookup")
    assert isinstance(lookup, LearnedLookup)
    with torch.no_grad():
        lookup.weight[START] += 1
    assert torch.equal(logits(model, [START, 7]), before) == (start != "learned")


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_excluded_tokens_have_probability_zero_and_no_share_of_the_smoothing(
    training: bool, smoothing: float
) -> None:
    torch.manual_seed(1)
    readout = Readout(WIDTH, VOCABULARY, None, None, excluded=2)
    features = torch.randn(3, 4, WIDTH, requires_grad=training)
    targets = torch.randint(2, VOCABULARY, (3, 4))
    targets[0, 2:] = PAD
    all_logits = readout(features)
    assert torch.isinf(all_logits[..., :2]).all()
    assert all_logits[..., 2:].isfinite().all()
    possible = all_logits[..., 2:].flatten(0, 1)
    expected = torch.nn.functional.cross_entropy(
        possible, targets.flatten() - 2, label_smoothing=smoothing, reduction="sum", ignore_index=-2
    )
    torch.testing.assert_close(readout.loss(features, targets, smoothing, PAD), expected)
    with torch.autocast("cpu", torch.bfloat16):
        under_autocast = readout.loss(features, targets, smoothing, PAD)
    torch.testing.assert_close(under_autocast, expected, rtol=2e-2, atol=2e-2)


def test_excluded_tokens_get_no_gradient() -> None:
    readout = Readout(WIDTH, VOCABULARY, None, None, excluded=2)
    targets = torch.randint(2, VOCABULARY, (3, 4))
    readout.loss(torch.randn(3, 4, WIDTH), targets, 0.1, PAD).backward()
    assert readout.output.weight.grad is not None
    assert not readout.output.weight.grad[:2].any()
    assert readout.output.weight.grad[2:].any()

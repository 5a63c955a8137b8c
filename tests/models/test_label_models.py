"""Label decoders: one label per source position or per source, each from its own vector."""

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqloom.config.schema.decoding import BeamConfig, GreedyConfig, SampleConfig, SearchConfig
from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Batch, Padded
from seqloom.core.signature import Signature, Tokens
from seqloom.decoding.build import build_search
from seqloom.decoding.search import SearchRequest
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.tasks.losses import r_drop_loss
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN
from support.token_loss import token_loss

LABELS = (4, 5, 6)
VOCABULARY = 7
ENCODERS: dict[str, dict[str, Any]] = {
    "recurrent": {"kind": "recurrent", "width": 6},
    "transformer": {"kind": "transformer", "width": 8, "layers": 1, "feedforward": 8},
}
POOLINGS = ("none", "last", "mean")


def build(pooling: str, encoder: str = "recurrent", **decoder: Any) -> Model:
    torch.manual_seed(0)
    tables = {
        "encoder": ENCODERS[encoder],
        "decoder": {"kind": "labels", "pooling": pooling, **decoder},
    }
    signature = Signature(Tokens(12), Tokens(VOCABULARY), shared=False)
    model = build_model(ModelConfig.model_validate(tables), signature).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model


def random_source(*lengths: int) -> Padded:
    """Tokens and END: a source of length n has n - 1 labels."""
    rows = torch.randint(
        4, 12, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(1)
    )
    return Padded(rows, torch.tensor(lengths))


def build_batch(source: Padded, labels: list[list[int]]) -> Batch:
    lengths = torch.tensor([len(row) + 1 for row in labels])
    size = int(lengths.max())
    inputs = [[START, *row, *[PAD] * (size - len(row) - 1)] for row in labels]
    targets = [[*row, END, *[PAD] * (size - len(row) - 1)] for row in labels]
    return Batch(
        source, Padded(torch.tensor(inputs), lengths), Padded(torch.tensor(targets), lengths)
    )


def logits(model: Model, inputs: Tensor, source: Padded) -> Tensor:
    """(B, T, V)"""
    memory = model.encode(source, len(source.lengths))
    return model.decoder(inputs, memory).logits()


def probabilities(model: Model, inputs: Tensor, source: Padded) -> Tensor:
    """(B, T, V)"""
    return logits(model, inputs, source).softmax(-1)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    search=st.sampled_from([GreedyConfig(), BeamConfig(width=3), SampleConfig(samples=3)]),
    encoder=st.sampled_from(sorted(ENCODERS)),
    previous=st.booleans(),
)
def test_every_search_returns_one_label_per_position(
    lengths: list[int], search: SearchConfig, encoder: str, previous: bool
) -> None:
    model = build("none", encoder, previous=previous)
    memory = model.encode(random_source(*lengths), len(lengths))
    request = SearchRequest([20] * len(lengths), n_best=3)
    with torch.no_grad():
        results = build_search(search)(model.decoder, memory, request)
    for hypotheses, length in zip(results, lengths, strict=True):
        assert hypotheses
        for hypothesis in hypotheses:
            assert hypothesis.finished
            assert len(hypothesis.tokens) == length - 1
            assert set(hypothesis.tokens) <= set(LABELS)


@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_a_source_has_one_label_and_the_probabilities_sum_to_one(pooling: str) -> None:
    model = build(pooling)
    source = random_source(5, 1, 3)
    with torch.no_grad():
        memory = model.encode(source, 3)
        request = SearchRequest([9] * 3, n_best=4)
        results = build_search(BeamConfig(width=4))(model.decoder, memory, request)
        expected = probabilities(model, torch.full((3, 2), START), source)
    for row, hypotheses in enumerate(results):
        assert {hypothesis.tokens for hypothesis in hypotheses} == {(label,) for label in LABELS}
        log_probabilities = [sum(hypothesis.log_probabilities) for hypothesis in hypotheses]
        total = torch.tensor(log_probabilities).exp().sum() + expected[row, 0, UNKNOWN]
        assert total == pytest.approx(1)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_end_has_probability_one_after_the_last_label_and_zero_before(pooling: str) -> None:
    of_tokens = probabilities(build(pooling), torch.full((2, 6), START), random_source(5, 3))
    for row, labels in enumerate((4, 2) if pooling == "none" else (1, 1)):
        assert of_tokens[row, :labels, END].tolist() == [0] * labels
        assert of_tokens[row, labels:, END].tolist() == [1] * (6 - labels)


def test_a_label_depends_only_on_the_encoder_state_at_its_position() -> None:
    model = build("none")
    memory = model.encode(random_source(6), 1)
    inputs = torch.full((1, 6), START)
    before = model.decoder(inputs, memory).logits()
    memory.states[0, 2] += 1
    after = model.decoder(inputs, memory).logits()
    changed = (before != after).any(-1)[0]
    assert changed.tolist() == [False, False, True, False, False, False]


@pytest.mark.parametrize("previous", [False, True])
def test_a_label_depends_on_the_previous_label_only_if_configured(previous: bool) -> None:
    model, source = build("none", previous=previous), random_source(6)
    before = probabilities(model, torch.tensor([[START, 4, 4, 4, 4, 4]]), source)
    after = probabilities(model, torch.tensor([[START, 4, 5, 4, 4, 4]]), source)
    changed = (before - after).abs().amax(-1)[0] > 1e-9
    assert changed.tolist() == [False, False, previous, False, False, False]


def test_the_labelled_vector_is_the_final_state_or_the_mean_of_real_positions() -> None:
    source = random_source(5, 2)
    last, mean = build("last"), build("mean")
    memory = last.encode(source, 2)
    torch.testing.assert_close(
        last.decoder.start(memory, 1).fixed.vectors.squeeze(1), memory.summary[:, -1]
    )
    memory = mean.encode(source, 2)
    expected = torch.stack([memory.states[0].mean(0), memory.states[1, :2].mean(0)])
    torch.testing.assert_close(mean.decoder.start(memory, 1).fixed.vectors.squeeze(1), expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_only_labels_contribute_to_the_loss(smoothing: float) -> None:
    """END has probability one, and smoothing is spread over the possible tokens: labels and UNKNOWN."""
    model, source = build("none"), random_source(4, 2)
    labels = [[4, 6, 5], [5]]
    batch = build_batch(source, labels)
    logs = logits(model, batch.inputs.values, source).detach().log_softmax(-1)
    expected = 0.0
    for row, t in itertools.chain(((0, t) for t in range(3)), [(1, 0)]):
        at_step = logs[row, t]
        of_target, mean = -at_step[labels[row][t]], -at_step[[UNKNOWN, *LABELS]].mean()
        expected += float((1 - smoothing) * of_target + smoothing * mean)
    assert token_loss(model, batch, smoothing).item() == pytest.approx(expected)


def test_the_consistency_loss_is_zero_without_dropout_and_gradients_are_finite() -> None:
    model, source = build("none"), random_source(4, 2)
    batch = build_batch(source, [[4, 6, 5], [5]])
    loss = r_drop_loss(model, batch, 0.0, 5.0)
    assert loss.item() == pytest.approx(token_loss(model, batch, 0.0).item())
    loss.backward()
    assert all(one.grad is None or one.grad.isfinite().all() for one in model.parameters())


def test_label_decoders_reject_encoders_and_ties_that_do_not_fit() -> None:
    labels = {"kind": "labels", "pooling": "last"}
    with pytest.raises(ValueError, match="no encoder whose states could be labelled"):
        ModelConfig.model_validate({"encoder": {"kind": "none"}, "decoder": labels})
    with pytest.raises(ValueError, match="a Transformer has no last state; use 'mean'"):
        ModelConfig.model_validate({"encoder": ENCODERS["transformer"], "decoder": labels})
    with pytest.raises(ValueError, match="labels have no embedding to share"):
        ModelConfig.model_validate(
            {"encoder": ENCODERS["recurrent"], "decoder": labels, "tie": "output"}
        )

"""Labels: as many as the source says, each from what was read there."""

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
from seqloom.tasks.r_drop import r_drop_loss
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN
from token_loss import token_loss

LABELS = (4, 5, 6)
VOCABULARY = 7
ENCODERS: dict[str, dict[str, Any]] = {
    "recurrent": {"kind": "recurrent", "width": 6},
    "transformer": {"kind": "transformer", "width": 8, "layers": 1, "feedforward": 8},
}
READS = ("positions", "last", "mean")


def model_of(reads: str, encoder: str = "recurrent", **decoder: Any) -> Model:
    torch.manual_seed(0)
    tables = {
        "encoder": ENCODERS[encoder],
        "decoder": {"kind": "labels", "reads": reads, **decoder},
    }
    signature = Signature(Tokens(12), Tokens(VOCABULARY), shared=False)
    model = build_model(ModelConfig.model_validate(tables), signature).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model


def source_of(*lengths: int) -> Padded:
    """Tokens and END: a length of n has n - 1 tokens to label."""
    rows = torch.randint(
        4, 12, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(1)
    )
    return Padded(rows, torch.tensor(lengths))


def batch_of(source: Padded, labels: list[list[int]]) -> Batch:
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
def test_there_are_never_more_or_fewer_labels_than_positions(
    lengths: list[int], search: SearchConfig, encoder: str, previous: bool
) -> None:
    model = model_of("positions", encoder, previous=previous)
    memory = model.encode(source_of(*lengths), len(lengths))
    request = SearchRequest([20] * len(lengths), n_best=3)
    with torch.no_grad():
        found = build_search(search)(model.decoder, memory, request)
    for hypotheses, length in zip(found, lengths, strict=True):
        assert hypotheses
        for one in hypotheses:
            assert one.finished
            assert len(one.tokens) == length - 1
            assert set(one.tokens) <= set(LABELS)


@pytest.mark.parametrize("reads", ["last", "mean"])
def test_a_sequence_has_one_label_and_the_probabilities_of_all_are_one(reads: str) -> None:
    model = model_of(reads)
    source = source_of(5, 1, 3)
    with torch.no_grad():
        memory = model.encode(source, 3)
        found = build_search(BeamConfig(width=4))(
            model.decoder, memory, SearchRequest([9] * 3, n_best=4)
        )
        own = probabilities(model, torch.full((3, 2), START), source)
    for row, hypotheses in enumerate(found):
        assert {one.tokens for one in hypotheses} == {(label,) for label in LABELS}
        shares = [sum(one.log_probabilities) for one in hypotheses]
        total = torch.tensor(shares).exp().sum() + own[row, 0, UNKNOWN]
        assert total == pytest.approx(1)


@pytest.mark.parametrize("reads", READS)
def test_the_end_is_certain_where_the_source_ends_and_impossible_before(reads: str) -> None:
    own = probabilities(model_of(reads), torch.full((2, 6), START), source_of(5, 3))
    for row, labels in enumerate((4, 2) if reads == "positions" else (1, 1)):
        assert own[row, :labels, END].tolist() == [0] * labels
        assert own[row, labels:, END].tolist() == [1] * (6 - labels)


def test_a_label_is_about_its_own_position() -> None:
    """A Transformer without attention to its neighbours would be told apart by this alone."""
    model = model_of("positions")
    memory = model.encode(source_of(6), 1)
    inputs = torch.full((1, 6), START)
    before = model.decoder(inputs, memory).logits()
    memory.states[0, 2] += 1
    after = model.decoder(inputs, memory).logits()
    changed = (before != after).any(-1)[0]
    assert changed.tolist() == [False, False, True, False, False, False]


@pytest.mark.parametrize("previous", [False, True])
def test_what_was_put_out_before_matters_only_if_it_is_looked_at(previous: bool) -> None:
    model, source = model_of("positions", previous=previous), source_of(6)
    one = probabilities(model, torch.tensor([[START, 4, 4, 4, 4, 4]]), source)
    other = probabilities(model, torch.tensor([[START, 4, 5, 4, 4, 4]]), source)
    changed = (one - other).abs().amax(-1)[0] > 1e-9
    assert changed.tolist() == [False, False, previous, False, False, False]


def test_what_is_read_last_is_the_last_state_and_the_mean_is_of_real_positions() -> None:
    source = source_of(5, 2)
    last, mean = model_of("last"), model_of("mean")
    memory = last.encode(source, 2)
    torch.testing.assert_close(
        last.decoder.start(memory, 1).fixed.vectors.squeeze(1), memory.summary[:, -1]
    )
    memory = mean.encode(source, 2)
    expected = torch.stack([memory.states[0].mean(0), memory.states[1, :2].mean(0)])
    torch.testing.assert_close(mean.decoder.start(memory, 1).fixed.vectors.squeeze(1), expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_loss_is_that_of_the_labels_alone(smoothing: float) -> None:
    """END is certain, and smoothing is spread over what is possible: labels and UNKNOWN."""
    model, source = model_of("positions"), source_of(4, 2)
    labels = [[4, 6, 5], [5]]
    batch = batch_of(source, labels)
    logs = logits(model, batch.inputs.values, source).detach().log_softmax(-1)
    expected = 0.0
    for row, place in itertools.chain(((0, place) for place in range(3)), [(1, 0)]):
        here = logs[row, place]
        own, spread = -here[labels[row][place]], -here[[UNKNOWN, *LABELS]].mean()
        expected += float((1 - smoothing) * own + smoothing * spread)
    assert token_loss(model, batch, smoothing).item() == pytest.approx(expected)


def test_two_passes_without_dropout_agree_and_nothing_is_infinite() -> None:
    model, source = model_of("positions"), source_of(4, 2)
    batch = batch_of(source, [[4, 6, 5], [5]])
    loss = r_drop_loss(model, batch, 0.0, 5.0)
    assert loss.item() == pytest.approx(token_loss(model, batch, 0.0).item())
    loss.backward()
    assert all(one.grad is None or one.grad.isfinite().all() for one in model.parameters())


def test_labels_need_an_encoder_and_an_end_that_it_has() -> None:
    labels = {"kind": "labels", "reads": "last"}
    with pytest.raises(ValueError, match="no encoder whose states could be labelled"):
        ModelConfig.model_validate({"encoder": {"kind": "none"}, "decoder": labels})
    with pytest.raises(ValueError, match="a Transformer has no last state; use 'mean'"):
        ModelConfig.model_validate({"encoder": ENCODERS["transformer"], "decoder": labels})
    with pytest.raises(ValueError, match="labels have no embedding to share"):
        ModelConfig.model_validate(
            {"encoder": ENCODERS["recurrent"], "decoder": labels, "tie": "output"}
        )

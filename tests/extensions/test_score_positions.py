"""A score of an extension gets the same positions in training, decoding and analysis."""

import pytest
import torch

from seqloom.analysis.explanation import explain_step
from seqloom.analysis.forward_trace import prediction_losses, record_forward
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.batch import Batch, Padded
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.models.step_description import PositionLabels
from seqloom.text.vocabulary import START
from support.tiny_runs import NO_DROPOUT, TRANSFORMER, tiny_config

SIGNATURE = Signature(Tokens(12), Tokens(12), shared=False)
RECURRENT = (
    *NO_DROPOUT,
    "model.decoder.width=16",
    "model.decoder.attention.score={kind='custom_parts:Distance'}",
)
CONFIGS = {
    "transformer": tiny_config(
        *TRANSFORMER, "model.decoder.attention.score={kind='custom_parts:Distance'}"
    ),
    "recurrent, in parallel": tiny_config(*RECURRENT),
    "recurrent, step by step": tiny_config(*RECURRENT, "model.decoder.context=['input']"),
}
every_model = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def build(config: RunConfig) -> Model:
    torch.manual_seed(0)
    return build_model(config.model, SIGNATURE).eval()


def random_batch() -> Batch:
    source = Padded(torch.randint(4, 12, (2, 7)), torch.tensor([7, 5]))
    tokens, lengths = torch.randint(4, 12, (2, 7)), torch.tensor([6, 4])
    return Batch(source, Padded(tokens[:, :-1], lengths), Padded(tokens[:, 1:], lengths))


@every_model
@pytest.mark.parametrize("need_attention", [False, True])
@pytest.mark.parametrize("hypotheses", [1, 2])
@torch.no_grad()
def test_stepping_equals_teacher_forcing(
    config: RunConfig, need_attention: bool, hypotheses: int
) -> None:
    model, batch = build(config), random_batch()
    rows = torch.arange(batch.size).repeat_interleave(hypotheses)
    tokens = batch.inputs.values[rows]
    memory = model.encode(batch.source, batch.size)
    start = model.decoder.start(memory, tokens.shape[1], need_attention=need_attention)
    state = start.select(rows)
    for logits, column in zip(model(batch).logits().unbind(1), tokens.unbind(1), strict=True):
        step = model.decoder.step(column, state)
        state = step.state
        torch.testing.assert_close(step.logits, logits[rows])


@every_model
def test_the_recorded_pass_equals_the_forward_pass(config: RunConfig) -> None:
    model, batch = build(config), random_batch()
    expected = prediction_losses(model(batch).logits(), batch.targets)
    torch.testing.assert_close(record_forward(model, batch).losses, expected)


@every_model
@torch.no_grad()
def test_explained_attention_weights_equal_those_of_the_decoder(config: RunConfig) -> None:
    model, inputs = build(config), (START, 4, 6, 5)
    memory = model.encode(Padded(torch.randint(4, 12, (1, 7)), torch.tensor([7])), 1)
    state = model.decoder.start(memory, len(inputs))
    for token in inputs:
        step = model.decoder.step(torch.tensor([token]), state)
        state = step.state
    assert step.attention is not None
    labels = PositionLabels(tuple("abcdefg"), tuple("wxyz"))
    explained = explain_step(model.decoder, memory, inputs, labels)
    weights = [part.values for part in explained.parts if part.name == "weights"]
    torch.testing.assert_close(weights[-1], step.attention[0, 0, 0])

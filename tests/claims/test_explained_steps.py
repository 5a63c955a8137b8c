"""The values of an explained decoder step are those that the decoder computes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import pytest
import torch
from torch import Tensor
from zoo import EVERY_DECODER, Specimen, every_value, run_on, shared_model

from seqloom.analysis.attention_example import (
    STATES,
    TO_KEY,
    TO_QUERY,
    TO_VALUE,
    LectureScore,
    explain_lecture,
)
from seqloom.analysis.explanation import Explanation, HeadSelection, explain_step
from seqloom.models.interface import DecoderModule, Memory, Step
from seqloom.models.recurrent import RecurrentDecoder
from seqloom.models.seq2seq import Model
from seqloom.models.step_description import PositionLabels, StepObserver, TracedValue
from seqloom.models.transformer import TransformerDecoder
from seqloom.nn.attention import AdditiveScore, BilinearScore, PositionalScore
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.observer import observing
from seqloom.text.vocabulary import START

INPUTS = (START, 4, 6, 5)
SOURCE_LENGTH = 5


def last_step(decoder: DecoderModule, memory: Memory) -> Step:
    """The decoder's own step after the inputs."""
    state = decoder.start(memory, len(INPUTS))
    for token in INPUTS:
        step = decoder.step(torch.tensor([token]), state)
        state = step.state
    return step


def explain_last_step(
    model: Model, memory: Memory, focus: HeadSelection | None = None
) -> tuple[Explanation, Tensor]:
    """The explanation of the step after the inputs, and the probabilities of the next token."""
    size = memory.mask.shape[1]
    labels = PositionLabels(tuple("abcde"[:size]), tuple("wxyz"))
    step = explain_step(model.decoder, memory, INPUTS, labels, focus)
    explanation = Explanation(
        source=(),
        output=(),
        step=len(INPUTS),
        previous=None,
        answer=None,
        best=(),
        layer=step.layer,
        head=step.head,
        parts=step.parts,
    )
    return explanation, step.probabilities


@every_value
def test_explained_probabilities_equal_those_of_the_decoder(specimen: Specimen) -> None:
    model = shared_model(specimen)
    memory = specimen.memory(model, (SOURCE_LENGTH,))
    explanation, probabilities = explain_last_step(model, memory)
    expected = last_step(model.decoder, memory).logits[0].softmax(-1)
    torch.testing.assert_close(probabilities, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(explanation.find("probabilities").values, expected)
    vocabulary = explanation.find("logits").values.softmax(-1)
    if not specimen.copies:
        torch.testing.assert_close(vocabulary, expected)
    elif memory.tokens is not None:
        gate, pointer = explanation.find("gate").values, explanation.find("pointer").values
        copied = torch.zeros_like(vocabulary).index_add(0, memory.tokens[0], pointer)
        torch.testing.assert_close(gate * vocabulary + (1 - gate) * copied, expected)
    check_all_values_are_described(explanation)


@every_value
@torch.no_grad()
def test_observing_changes_no_output(specimen: Specimen) -> None:
    """The logits of `step` and `forward` are equal to the bit."""
    model = shared_model(specimen)
    memory, tokens = specimen.memory(model, (SOURCE_LENGTH,)), torch.tensor([INPUTS])
    expected = last_step(model.decoder, memory).logits, model.decoder(tokens, memory).logits()
    observer = StepObserver()
    with observing(observer):
        observed = last_step(model.decoder, memory).logits, model.decoder(tokens, memory).logits()
    assert observer.values
    assert torch.equal(observed[0], expected[0])
    assert torch.equal(observed[1], expected[1])


def check_all_values_are_described(explanation: Explanation) -> None:
    """Section, name, formula, and a label per row; names other than "stream" are unique."""
    for value in explanation.parts:
        assert all((value.section, value.name, value.formula))
        assert value.values.dim() <= (2 if value.labels else 1)
        assert not value.labels or len(value.labels) == value.shape[0]
    names = [(value.section, value.name) for value in explanation.parts if value.name != "stream"]
    assert len(names) == len(set(names))


@dataclass(frozen=True)
class AttentionOfStep:
    """An attention module, its section of the explanation, and its layer, counted from 1."""

    section: str
    layer: int
    attention: MultiHeadAttention


def source_attentions(decoder: DecoderModule) -> list[AttentionOfStep]:
    match decoder:
        case RecurrentDecoder(attention=attention) if attention is not None:
            return [AttentionOfStep("attention", 1, attention)]
        case TransformerDecoder():
            return [
                AttentionOfStep(f"layer {number}: cross-attention", number, layer.cross_attention)
                for number, layer in enumerate(decoder.layers, start=1)
                if layer.cross_attention is not None
            ]
        case _:
            return []


def self_attentions(decoder: DecoderModule) -> list[AttentionOfStep]:
    if not isinstance(decoder, TransformerDecoder):
        return []
    return [
        AttentionOfStep(f"layer {number}: self-attention", number, layer.attention)
        for number, layer in enumerate(decoder.layers, start=1)
    ]


def score_by_formula(scores: TracedValue, attention: MultiHeadAttention, head: int) -> Any:
    """The score function that the printed formula describes."""
    formula = scores.formula.removeprefix("e = ")
    score = attention.score

    def product(q: Tensor, k: Tensor) -> Tensor:
        divisor = formula.partition(" / ")[2] or "1"
        root = divisor.startswith("√")
        number = float(divisor.removeprefix("√"))
        return q @ k / (math.sqrt(number) if root else number)

    def distance(q: Tensor, k: Tensor) -> Tensor:
        gamma = formula.removeprefix("-").partition("‖")[0].strip() or "1"
        return -float(gamma) * (q - k).square().sum()

    def bilinear(q: Tensor, k: Tensor) -> Tensor:
        assert isinstance(score, BilinearScore)
        return q @ score.weight[head] @ k

    def additive(q: Tensor, k: Tensor) -> Tensor:
        assert isinstance(score, AdditiveScore)
        hidden = q @ score.project_query[head] + k @ score.project_key[head] + score.bias[head, 0]
        return torch.tanh(hidden) @ score.to_score[head, :, 0]

    def exact(q: Tensor, k: Tensor) -> Tensor:
        tolerance = float(formula.removeprefix("1 if max |q - k| ≤ ").removesuffix(", else 0"))
        return torch.tensor(float((q - k).abs().max() <= tolerance), dtype=q.dtype)

    by_formula: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "q · k": product,
        "‖q - k‖²": distance,
        "qᵀ W k": bilinear,
        "max |q - k|": exact,
        "v · tanh(Wq q + Wk k + b)": additive,
    }
    [function] = [compute for pattern, compute in by_formula.items() if pattern in formula]
    return function


def weights_by_formula(formula: str, scores: Tensor) -> Tensor:
    if formula == "α = softmax(e)":
        return scores.exp() / scores.exp().sum()
    if formula == "α = 1 for the first key with e = 1, else 0":
        first = (scores.cumsum(0) == 1) & (scores == 1)
        return first.to(scores.dtype)
    assert formula.startswith("α = 1 for the")
    return torch.nn.functional.one_hot(scores.argmax(), len(scores)).to(scores.dtype)


@every_value
def test_attention_values_follow_from_the_printed_numbers_and_formulas(
    specimen: Specimen,
) -> None:
    """Scores from queries and keys, weights from scores, head outputs from weights and values."""
    model = shared_model(specimen)
    memory = specimen.memory(model, (SOURCE_LENGTH,))
    attended = last_step(model.decoder, memory).attention  # (1, L, H, S)
    over_source = source_attentions(model.decoder)
    for each in over_source + self_attentions(model.decoder):
        attention = each.attention
        head = attention.heads - 1
        explanation, _ = explain_last_step(model, memory, HeadSelection(each.layer, head + 1))

        def find(
            name: str, explanation: Explanation = explanation, section: str = each.section
        ) -> TracedValue:
            return explanation.find(name, section)

        if isinstance(attention.score, PositionalScore):
            table = attention.score.table[head]  # (T or 1, S)
            row = {"e = w[s]": 0, "e = w[t, s]": len(INPUTS) - 1}[find("scores").formula]
            torch.testing.assert_close(find("scores").values, table[row, :SOURCE_LENGTH])
        else:
            score = score_by_formula(find("scores"), attention, head)
            query, keys = find("query").values, find("keys").values
            scores = torch.stack([score(query, key) for key in keys])
            torch.testing.assert_close(find("scores").values, scores)
        weights = weights_by_formula(find("weights").formula, find("scores").values)
        torch.testing.assert_close(find("weights").values, weights)
        output = weights @ find("values").values
        single = attention.heads == 1 and isinstance(attention.output_projection, torch.nn.Identity)
        torch.testing.assert_close(find("context" if single else "head output").values, output)
        if each in over_source:
            assert attended is not None
            torch.testing.assert_close(weights, attended[0, each.layer - 1, head])


TRANSFORMERS = [one for one in EVERY_DECODER if one.config.decoder.kind == "transformer"]


@run_on(TRANSFORMERS)
def test_residual_streams_add_the_explained_contexts(specimen: Specimen) -> None:
    """x + a, or norm(x + a): the layer continues with the contexts of the explanation."""
    model = shared_model(specimen)
    assert isinstance(model.decoder, TransformerDecoder)
    explanation, _ = explain_last_step(model, specimen.memory(model, (SOURCE_LENGTH,)))
    layer = model.decoder.layers[-1]
    streams = [value.values for value in explanation.parts if value.name == "stream"]
    contexts = [value.values for value in explanation.parts if value.name == "context"]
    residuals = [
        each
        for each in (layer.attention_residual, layer.cross_attention_residual)
        if each is not None
    ]
    for residual, before, context, after in zip(
        residuals, streams, contexts, streams[1:], strict=False
    ):
        total = before + context
        torch.testing.assert_close(after, total if residual.pre_norm else residual.norm(total))


BOTTLENECKS = [
    specimen
    for specimen in EVERY_DECODER
    if specimen.config.decoder.kind == "recurrent"
    and specimen.attention is None
    and specimen.config.encoder.kind != "none"
]


@pytest.mark.parametrize("specimen", BOTTLENECKS, ids=lambda specimen: specimen.name)
def test_without_attention_every_step_shows_the_encoder_summary(specimen: Specimen) -> None:
    model = shared_model(specimen)
    memory = specimen.memory(model, (SOURCE_LENGTH,))
    explanation, _ = explain_last_step(model, memory)
    summary = explanation.find("encoder summary").values
    torch.testing.assert_close(summary.flatten(), memory.summary.flatten())


def test_the_lecture_example_has_the_numbers_of_the_lecture() -> None:
    explanation = explain_lecture()
    section = "attention of h₂"
    numbers = {
        "query": [4, 35],
        "keys": [[1, 30], [3, 24], [6, -12]],
        "scores": [1054, 852, -396],
        "weights": [1, 0, 0],
        "values": [[23, 46], [39 - 14, 39], [10, -12]],
        "context": [23, 46],
    }
    for name, expected in numbers.items():
        assert explanation.find(name, section).values.tolist() == expected, name
    assert explanation.find("query", section).formula == "q = Wq h₂"
    softmax = [
        value for value in explanation.parts if value.section == "softmax of the same scores"
    ]
    scores = [value for value in softmax if value.name == "scores"]
    assert [value.formula for value in scores] == ["e = q · k", "e = q · k / √2", "e = q · k / 2"]
    for value, divisor in zip(scores, (1, math.sqrt(2), 2), strict=True):
        expected = torch.tensor([1054.0, 852.0, -396.0], dtype=torch.float64) / divisor
        torch.testing.assert_close(value.values, expected)
    # The second key gets more weight with a larger divisor, but always next to none.
    second = [float(value.values[1]) for value in softmax if value.name == "weights"]
    assert 0 < second[0] < second[1] < second[2] < 1e-40
    assert second[2] == pytest.approx(math.exp(-101))


def test_the_lecture_example_with_other_scores_equals_a_calculation_by_hand() -> None:
    """Computed from h, Wq, Wk and Wv alone, without modules of seqloom."""
    h = torch.tensor(STATES, dtype=torch.float64)
    to_query, to_key, to_value = (
        torch.tensor(rows, dtype=torch.float64) for rows in (TO_QUERY, TO_KEY, TO_VALUE)
    )
    q, k, v = to_query @ h[1], h @ to_key.T, h @ to_value.T
    by_hand: dict[LectureScore, torch.Tensor] = {
        "dot": k @ q,
        "identity": h @ h[1],
        "sqrt": k @ q / math.sqrt(2),
        "width": k @ q / 2,
        "bilinear": h @ (to_query.T @ to_key).T @ h[1],
        "nonlinear": k.sigmoid() @ q.sigmoid(),
        "additive": torch.tanh(q + k).sum(-1),
        "rbf": -((q - k) ** 2).sum(-1),
    }
    assert set(by_hand) == set(get_args(LectureScore))
    for score, expected in by_hand.items():
        explanation = explain_lecture(score, "softmax")
        section = "attention of h₂"
        torch.testing.assert_close(explanation.find("scores", section).values, expected)
        context = expected.softmax(-1) @ v
        torch.testing.assert_close(explanation.find("context", section).values, context)
        best = explain_lecture(score, "argmax").find("context", section).values
        assert best.tolist() == v[expected.argmax()].tolist(), score

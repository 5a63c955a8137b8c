"""The numbers of a step that is laid open are the model's own."""

import functools
import math
from collections.abc import Callable
from typing import Any, get_args

import pytest
import torch
from torch import Tensor
from zoo import EVERY_DECODER, Specimen

from seqloom.inside.explain import explain_step
from seqloom.inside.explanation import Explanation, Focus, Part, Words
from seqloom.inside.lecture import (
    STATES,
    TO_KEY,
    TO_QUERY,
    TO_VALUE,
    LectureScore,
    explain_lecture,
)
from seqloom.models.interface import DecoderModule, Memory, Step
from seqloom.models.recurrent import RecurrentDecoder
from seqloom.models.seq2seq import Model
from seqloom.models.transformer import TransformerDecoder
from seqloom.nn.attention import AdditiveScore, BilinearScore
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.text.vocabulary import START

every_decoder = pytest.mark.parametrize("specimen", EVERY_DECODER, ids=lambda one: one.name)
INPUTS = (START, 4, 6, 5)
SOURCE = 5


def last_step(decoder: DecoderModule, memory: Memory) -> Step:
    """What the decoder itself does after the inputs."""
    state = decoder.start(memory, len(INPUTS))
    for token in INPUTS:
        step = decoder.step(torch.tensor([token]), state)
        state = step.state
    return step


@functools.cache
def built(name: str) -> Model:
    """Nobody changes a model here: each is built once."""
    return next(one for one in EVERY_DECODER if one.name == name).build()


def told(model: Model, memory: Memory, focus: Focus | None = None) -> tuple[Explanation, Tensor]:
    size = memory.mask.shape[1]
    words = Words(tuple("abcde"[:size]), tuple("wxyz"))
    story, probabilities, place = explain_step(model.decoder, memory, INPUTS, words, focus)
    parts = tuple(story.parts)
    return Explanation((), (), len(INPUTS), None, None, (), *place, parts), probabilities


@every_decoder
def test_the_explained_answer_is_the_decoders_own(specimen: Specimen) -> None:
    model = built(specimen.name)
    memory = specimen.memory(model, (SOURCE,))
    explanation, probabilities = told(model, memory)
    expected = last_step(model.decoder, memory).logits[0].softmax(-1)
    torch.testing.assert_close(probabilities, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(explanation.part("probabilities").values, expected)
    spoken = explanation.part("logits").values.softmax(-1)
    if not specimen.copies:
        torch.testing.assert_close(spoken, expected)
    elif memory.tokens is not None:
        gate, pointer = explanation.part("gate").values, explanation.part("pointer").values
        copied = torch.zeros_like(spoken).index_add(0, memory.tokens[0], pointer)
        torch.testing.assert_close(gate * spoken + (1 - gate) * copied, expected)
    every_part_says_what_it_is(explanation)


def every_part_says_what_it_is(explanation: Explanation) -> None:
    """A name, a formula and a label for each row; nothing is told twice in a chapter but streams."""
    for part in explanation.parts:
        assert all((part.chapter, part.name, part.formula))
        assert part.values.dim() <= (2 if part.labels else 1)
        assert not part.labels or len(part.labels) == part.shape[0]
    names = [(part.chapter, part.name) for part in explanation.parts if part.name != "stream"]
    assert len(names) == len(set(names))


def looks(decoder: DecoderModule) -> list[tuple[str, int, MultiHeadAttention]]:
    """Every look at the source: its chapter, its layer and what looks."""
    match decoder:
        case RecurrentDecoder(attention=attention) if attention is not None:
            return [("where it looks", 1, attention)]
        case TransformerDecoder():
            return [
                (f"layer {layer}: where it looks in the source", layer, one.cross_attention)
                for layer, one in enumerate(decoder.layers, start=1)
                if one.cross_attention is not None
            ]
        case _:
            return []


def looks_back(decoder: DecoderModule) -> list[tuple[str, int, MultiHeadAttention]]:
    """Every look at what was put out."""
    if not isinstance(decoder, TransformerDecoder):
        return []
    return [
        (f"layer {layer}: where it looks back", layer, one.attention)
        for layer, one in enumerate(decoder.layers, start=1)
    ]


def score_by_formula(part: Part, attention: MultiHeadAttention, head: int) -> Any:
    """What the printed formula says, in its own words."""
    formula = part.formula.removeprefix("e = ")
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

    by_words: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "q · k": product,
        "‖q - k‖²": distance,
        "qᵀ W k": bilinear,
        "v · tanh(Wq q + Wk k + b)": additive,
    }
    [found] = [compute for words, compute in by_words.items() if words in formula]
    return found


def weigh_by_formula(formula: str, scores: Tensor) -> Tensor:
    if formula == "α = softmax(e)":
        return scores.exp() / scores.exp().sum()
    assert formula.startswith("α = 1 for the")
    return torch.nn.functional.one_hot(scores.argmax(), len(scores)).to(scores.dtype)


@every_decoder
def test_every_look_follows_from_its_printed_numbers_by_its_printed_formulas(
    specimen: Specimen,
) -> None:
    """Scores from queries and keys, weights from scores, what is read from weights and values."""
    model = built(specimen.name)
    memory = specimen.memory(model, (SOURCE,))
    attended = last_step(model.decoder, memory).attention  # (1, L, H, S)
    across = looks(model.decoder)
    for chapter, layer, attention in across + looks_back(model.decoder):
        head = attention.plan.heads - 1
        explanation, _ = told(model, memory, Focus(layer, head + 1))

        def part(name: str, told: Explanation = explanation, where: str = chapter) -> Part:
            return told.part(name, where)

        compare = score_by_formula(part("scores"), attention, head)
        query, keys = part("query").values, part("keys").values
        scores = torch.stack([compare(query, key) for key in keys])
        torch.testing.assert_close(part("scores").values, scores)
        weights = weigh_by_formula(part("weights").formula, part("scores").values)
        torch.testing.assert_close(part("weights").values, weights)
        read = weights @ part("values").values
        alone = attention.plan.heads == 1 and attention.plan.merged_width is None
        torch.testing.assert_close(part("context" if alone else "read by the head").values, read)
        if (chapter, layer, attention) in across:
            assert attended is not None
            torch.testing.assert_close(weights, attended[0, layer - 1, head])


TRANSFORMERS = [one for one in EVERY_DECODER if one.config.decoder.kind == "transformer"]


@pytest.mark.parametrize("specimen", TRANSFORMERS, ids=lambda one: one.name)
def test_a_layers_stream_is_the_one_before_and_what_was_read(specimen: Specimen) -> None:
    """x + a, or norm(x + a): the looks that are told are those that the layer went on with."""
    model = built(specimen.name)
    assert isinstance(model.decoder, TransformerDecoder)
    explanation, _ = told(model, specimen.memory(model, (SOURCE,)))
    layer = model.decoder.layers[-1]
    streams = [part.values for part in explanation.parts if part.name == "stream"]
    contexts = [part.values for part in explanation.parts if part.name == "context"]
    ways = [way for way in (layer.around_attention, layer.around_cross) if way is not None]
    for way, before, read, after in zip(ways, streams, contexts, streams[1:], strict=False):
        whole = before + read
        torch.testing.assert_close(after, whole if way.first else way.norm(whole))


def test_without_attention_the_state_that_was_handed_over_is_told_at_every_step() -> None:
    for specimen in EVERY_DECODER:
        alone = specimen.config.encoder.kind == "none"
        if specimen.config.decoder.kind != "recurrent" or specimen.attention is not None or alone:
            continue
        model = built(specimen.name)
        memory = specimen.memory(model, (SOURCE,))
        explanation, _ = told(model, memory)
        handed = explanation.part("handed over").values
        torch.testing.assert_close(handed.flatten(), memory.summary.flatten())


def test_the_lectures_example_comes_out_digit_for_digit() -> None:
    explanation = explain_lecture()
    where = "what h₂ reads"
    numbers = {
        "query": [4, 35],
        "keys": [[1, 30], [3, 24], [6, -12]],
        "scores": [1054, 852, -396],
        "weights": [1, 0, 0],
        "values": [[23, 46], [39 - 14, 39], [10, -12]],
        "context": [23, 46],
    }
    for name, expected in numbers.items():
        assert explanation.part(name, where).values.tolist() == expected, name
    assert explanation.part("query", where).formula == "q = Wq h₂"
    softly = [part for part in explanation.parts if part.chapter == "the same scores, softly"]
    scores = [part for part in softly if part.name == "scores"]
    assert [part.formula for part in scores] == ["e = q · k", "e = q · k / √2", "e = q · k / 2"]
    for part, divisor in zip(scores, (1, math.sqrt(2), 2), strict=True):
        expected = torch.tensor([1054.0, 852.0, -396.0], dtype=torch.float64) / divisor
        torch.testing.assert_close(part.values, expected)
    # The less is divided, the less is left for the second best; all of it is next to nothing.
    second = [float(part.values[1]) for part in softly if part.name == "weights"]
    assert 0 < second[0] < second[1] < second[2] < 1e-40
    assert second[2] == pytest.approx(math.exp(-101))


def test_the_lectures_example_with_other_scores_is_worked_out_by_hand() -> None:
    """From h, Wq, Wk and Wv as they stand on the paper, without any of our parts."""
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
        where = "what h₂ reads"
        torch.testing.assert_close(explanation.part("scores", where).values, expected)
        context = expected.softmax(-1) @ v
        torch.testing.assert_close(explanation.part("context", where).values, context)
        best = explain_lecture(score, "argmax").part("context", where).values
        assert best.tolist() == v[expected.argmax()].tolist(), score

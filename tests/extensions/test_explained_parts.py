"""Parts of extensions are explained, drawn and differentiated, with the formulas that they state."""

import pytest
import torch

from seqloom.analysis.explanation import (
    Explanation,
    HeadSelection,
    TokenProbability,
    explain_gradients,
    explain_step,
)
from seqloom.analysis.gradients import LossGradients, measure_gradients, measure_loss_gradients
from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import ConfigError
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.models.step_description import PositionLabels
from seqloom.nn.attention import AttentionScore, PositionalScore
from seqloom.nn.positions import PositionTable
from seqloom.text.vocabulary import PAD, START
from seqloom.viz.diagrams.soft_lookup import draw_soft_lookup
from seqloom.viz.explanation_terminal import draw_explanation
from support.tiny_runs import NO_DROPOUT, TRANSFORMER, tiny_config

SIGNATURE = Signature(Tokens(12), Tokens(12), shared=False)
INPUTS = (START, 4, 6)
LABELS = PositionLabels(tuple("abcde"), tuple("wxy"))
FAMILIES = {"transformer": TRANSFORMER, "recurrent": (*NO_DROPOUT, "model.decoder.width=16")}
every_family = pytest.mark.parametrize("family", FAMILIES)


def build(*settings: str) -> Model:
    torch.manual_seed(0)
    return build_model(tiny_config(*settings).model, SIGNATURE).double().eval()


def with_score(family: str, score: str, options: str = "") -> Model:
    kind = f"model.decoder.attention.score={{kind='custom_parts:{score}'{options}}}"
    return build(*FAMILIES[family], kind)


def explain(model: Model) -> Explanation:
    """The explanation of the step after `INPUTS`, with five source tokens."""
    with torch.inference_mode():
        memory = model.encode(Padded(torch.tensor([[4, 5, 6, 7, 8]]), torch.tensor([5])), 1)
        step = explain_step(model.decoder, memory, INPUTS, LABELS)
    previous, answer = TokenProbability("y", INPUTS[-1]), TokenProbability("z", 7, 0.5)
    words = LABELS.target
    source = LABELS.source
    return Explanation(source, words, 3, previous, answer, (), step.layer, step.head, step.parts)


def batch() -> Batch:
    source = Padded(torch.tensor([[4, 5, 6, 7, 8]]), torch.tensor([5]))
    inputs, targets = torch.tensor([[START, 4, 6]]), torch.tensor([[4, 6, 7]])
    lengths = torch.tensor([3])
    return Batch(source, Padded(inputs, lengths), Padded(targets, lengths))


def differentiate(model: Model) -> LossGradients:
    return measure_loss_gradients(model, batch(), 2)


@every_family
def test_a_score_that_states_its_formulas_is_explained_with_them(family: str) -> None:
    model = with_score(family, "DescribedCosine", ", temperature=0.5")
    explanation = explain(model)
    for scores in (part for part in explanation.parts if part.name == "scores"):
        assert scores.formula == "e = cos(q, k)"
        assert scores.note == "from custom_parts, outside seqloom; temperature = 0.5"
    focus = HeadSelection(explanation.layer, explanation.head)
    backward = {
        part.name: part
        for part in explain_gradients(differentiate(model), LABELS.source, 2, focus)
        if part.section.startswith("backward")
    }
    assert backward["query"].formula == "∂L/∂q = Σ ∂L/∂e · ∂cos(q, k)/∂q"
    assert backward["query"].note == "cos(q, k) = q · k / (‖q‖ ‖k‖)"
    assert backward["keys"].formula == "∂L/∂k = ∂L/∂e · ∂cos(q, k)/∂k"


@every_family
def test_a_score_without_a_formula_is_explained_with_its_name_and_settings(family: str) -> None:
    model = with_score(family, "Cosine", ", temperature=0.5")
    [*_, scores] = [part for part in explain(model).parts if part.name == "scores"]
    assert scores.formula == "e = Cosine(q, k)"
    assert scores.note == "from custom_parts, outside seqloom; temperature = 0.5"


def test_a_score_that_changes_a_built_in_score_does_not_have_its_formula() -> None:
    [*_, scores] = [
        part
        for part in explain(with_score("recurrent", "NegatedDot")).parts
        if part.name == "scores"
    ]
    assert scores.formula == "e = NegatedDot(q, k)"


@every_family
def test_a_score_of_an_extension_is_drawn(family: str) -> None:
    explanation = explain(with_score(family, "DescribedCosine"))
    terminal = draw_explanation(explanation, width=200, ascii_only=False).plain
    assert "e = cos(q, k)" in terminal
    assert "cos(q, k)" in draw_soft_lookup(explanation)


@every_family
def test_gradients_at_a_score_of_an_extension_follow_the_chain_rule(family: str) -> None:
    [attention] = differentiate(with_score(family, "Cosine")).attention[-1:]
    forward = attention.forward
    queries, keys = (x.detach().requires_grad_() for x in (forward.queries, forward.keys))
    scores = attention.attention.score(queries, keys)
    expected = torch.autograd.grad(scores, (queries, keys), attention.scores)
    assert attention.queries.any()
    torch.testing.assert_close(attention.queries, expected[0])
    torch.testing.assert_close(attention.keys.sum(2), expected[1])


def test_a_decoder_of_an_extension_is_explained_with_the_values_that_its_layers_report() -> None:
    decoder = "model.decoder={kind='custom_parts:AttentiveDecoder'}"
    explanation = explain(build(*NO_DROPOUT, decoder))
    attention = [part for part in explanation.parts if part.section == "attention"]
    names = [part.name for part in attention]
    assert names[:2] == ["query", "keys"]
    assert next(part for part in attention if part.name == "weights").labels == LABELS.source
    features = explanation.find("features", "readout")
    assert features.formula == "features of Readout"
    logits = explanation.find("logits")
    assert logits.note == "from custom_parts, outside seqloom"
    torch.testing.assert_close(explanation.find("probabilities").values, logits.values.softmax(-1))


def test_the_loss_is_differentiated_at_the_inputs_of_an_encoder_with_an_embedder() -> None:
    encoder = "model.encoder={kind='custom_parts:EmbeddedBag'}"
    model = build(*FAMILIES["recurrent"], encoder)
    flow = measure_gradients(model, batch())
    embedding = model.get_parameter("encoder.embedder.lookup.table.weight")
    loss = model(batch()).loss(batch().targets.values, 0.0, PAD)
    [expected] = torch.autograd.grad(loss, embedding)
    assert flow.source.any()
    torch.testing.assert_close(flow.source[0], expected[4:9])


def test_gradients_at_the_inputs_need_an_embedder() -> None:
    encoder = "model.encoder={kind='custom_parts:BagOfWords'}"
    model = build(*FAMILIES["recurrent"], encoder)
    with pytest.raises(ConfigError, match=r"BagOfWords is defined outside seqloom.*Use an `Embed"):
        measure_gradients(model, batch())


def subclasses(score: type[AttentionScore]) -> list[type[AttentionScore]]:
    return [each for child in score.__subclasses__() for each in (child, *subclasses(child))]


SCORES = [
    score
    for score in subclasses(AttentionScore)
    if score.__module__.startswith("seqloom.") and score is not PositionalScore
]


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.__name__)
def test_every_score_states_its_formulas(score: type[AttentionScore]) -> None:
    for name in ("formula", "query_gradient", "key_gradient", "note"):
        assert getattr(score, name) is not getattr(AttentionScore, name), name


@pytest.mark.parametrize(
    "positions", PositionTable.__subclasses__(), ids=lambda part: part.__name__
)
def test_every_position_encoding_states_its_formula(positions: type[PositionTable]) -> None:
    assert positions.formula is not PositionTable.formula

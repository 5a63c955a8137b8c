"""Gradients of the training loss at hidden states, inside attention and at the weights."""

import functools
from collections.abc import Callable

import pytest
import torch
from test_gradient_flow import batch_of
from torch import Tensor, nn
from zoo import EVERY_DECODER, Specimen, every_value, run_on

from seqloom.analysis.explanation import HeadSelection, explain_gradients
from seqloom.analysis.forward_trace import prediction_losses
from seqloom.analysis.gradients import LossGradients, measure_loss_gradients
from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import ConfigError
from seqloom.models.ensemble import build_ensemble
from seqloom.models.recurrent import RecurrentDecoder, RecurrentEncoder
from seqloom.models.seq2seq import Model
from seqloom.models.transformer import TransformerDecoder
from seqloom.nn.attention import (
    AdditiveScore,
    AttentionScore,
    BilinearScore,
    DotScore,
    FixedScore,
    PositionScore,
    RbfScore,
)
from seqloom.nn.recurrent import RecurrentLayer
from support.token_loss import token_loss


def parametrize(specimens: list[Specimen]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("specimen", specimens, ids=lambda specimen: specimen.name)


def is_recurrent(specimen: Specimen) -> bool:
    return specimen.config.decoder.kind == "recurrent"


WITH_ATTENTION = [
    specimen
    for specimen in EVERY_DECODER
    if specimen.attention is not None and specimen.config.encoder.kind != "none"
]
SOFT = [specimen for specimen in WITH_ATTENTION if not specimen.is_hard]
RECURRENT = [specimen for specimen in EVERY_DECODER if is_recurrent(specimen)]


@functools.cache
def measured(name: str) -> tuple[Model, Batch, LossGradients]:
    specimen = next(specimen for specimen in EVERY_DECODER if specimen.name == name)
    model, batch = specimen.build(), batch_of(specimen)
    return model, batch, measure_loss_gradients(model, batch)


@every_value
def test_parameter_gradients_equal_those_of_the_training_loss(specimen: Specimen) -> None:
    """The training loss runs the fast forward pass; its gradients come from `backward`."""
    model, batch, gradients = measured(specimen.name)
    assert_unchanged(model)
    model.requires_grad_(True)
    loss = token_loss(model, batch, 0.0)
    loss.backward()
    torch.testing.assert_close(gradients.losses.sum(), loss.detach())
    for name, parameter in model.named_parameters():
        expected = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(gradients.parameters[name], expected)
        parameter.grad = None
    model.requires_grad_(False)


def assert_unchanged(model: Model) -> None:
    """The measurement leaves neither gradients nor hooks nor replaced methods behind."""
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert all(parameter.grad is None for parameter in model.parameters())
    for module in model.modules():
        assert not module._forward_hooks
        assert not {"step", "encode", "attend", "step_cross"} & vars(module).keys()


@run_on(WITH_ATTENTION)
def test_gradients_inside_attention_follow_the_chain_rule(specimen: Specimen) -> None:
    """∂L/∂α = v · ∂L/∂a, ∂L/∂e = (diag(α) - α αᵀ) ∂L/∂α, and the derivatives of the score."""
    _, _, gradients = measured(specimen.name)
    assert gradients.attention
    for layer in gradients.attention:
        attention, forward = layer.attention, layer.forward
        alpha, values = forward.weights, forward.values  # (B, H, T, S), (B, H, S, Dv)
        projection = attention.output_projection
        joined = layer.context
        if isinstance(projection, nn.Linear):
            joined = joined @ projection.weight
        read = joined.unflatten(-1, (attention.heads, -1)).transpose(1, 2)
        torch.testing.assert_close(layer.read, read)
        torch.testing.assert_close(layer.weights, read @ values.mT)
        torch.testing.assert_close(layer.values, alpha.unsqueeze(-1) * read.unsqueeze(3))
        if specimen.is_hard:
            assert layer.is_hard
            assert layer.weights.any()
            assert not layer.scores.any()
            assert not layer.queries.any()
            assert not layer.keys.any()
            continue
        jacobian = torch.diag_embed(alpha) - alpha.unsqueeze(-1) * alpha.unsqueeze(-2)
        scores = (jacobian @ layer.weights.unsqueeze(-1)).squeeze(-1)
        torch.testing.assert_close(layer.scores, scores)
        assert not layer.is_hard
        to_query, to_key = score_derivatives(attention.score, forward.queries, forward.keys)
        slope = layer.scores.unsqueeze(-1)  # (B, H, T, S, 1)
        torch.testing.assert_close(layer.queries, (slope * to_query).sum(3))
        torch.testing.assert_close(layer.keys, slope * to_key)


def score_derivatives(score: AttentionScore, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """∂e_ts/∂q_t and ∂e_ts/∂k_s: (B, H, T, S, D), written out by hand for every score."""
    q, k = q.unsqueeze(3), k.unsqueeze(2)  # (B, H, T, 1, Dq), (B, H, 1, S, Dk)
    match score:
        case DotScore(divisor=divisor):
            return k / divisor, q / divisor
        case BilinearScore(weight=weight):
            return (
                torch.einsum("hqk,bhtsk->bhtsq", weight, k),
                torch.einsum("hqk,bhtsq->bhtsk", weight, q),
            )
        case AdditiveScore():
            to_query = torch.einsum("bhtsd,hde->bhtse", q, score.project_query)
            to_key = torch.einsum("bhtsd,hde->bhtse", k, score.project_key)
            bias = score.bias.unsqueeze(1)
            slope = 1 - torch.tanh(to_query + to_key + bias).square()
            slope = slope * score.to_score.squeeze(-1)[:, None, None]
            return (
                torch.einsum("hde,bhtse->bhtsd", score.project_query, slope),
                torch.einsum("hde,bhtse->bhtsd", score.project_key, slope),
            )
        case RbfScore(gamma=gamma):
            return 2 * gamma * (k - q), 2 * gamma * (q - k)
        case FixedScore() | PositionScore():
            return torch.zeros_like(q + 0 * k), torch.zeros_like(k + 0 * q)
        case _:
            raise AssertionError


def stepped_loss(model: Model, batch: Batch) -> float:
    """The loss, computed with the decoder's own steps."""
    memory = model.encode(batch.source, batch.size)
    tokens = batch.inputs.values
    state = model.decoder.start(memory, tokens.shape[1])
    logits = []
    for column in tokens.unbind(1):
        step = model.decoder.step(column, state)
        state = step.state
        logits.append(step.logits)
    return float(prediction_losses(torch.stack(logits, 1), batch.targets).sum())


def slope_of(loss: Callable[[float], float]) -> float:
    return (loss(1e-5) - loss(-1e-5)) / 2e-5


def random_like(gradient: Tensor) -> Tensor:
    return torch.randn(gradient.shape, generator=torch.Generator().manual_seed(4)).double()


@parametrize(SOFT[::10])
def test_score_gradients_equal_finite_differences(
    specimen: Specimen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shift the scores of all steps a little: the loss changes as the gradient predicts."""
    model, batch, gradients = measured(specimen.name)
    for layer in gradients.attention:
        direction = random_like(layer.scores)  # (B, H, T, S)
        score = layer.attention.score
        compare = score.compare

        def loss(
            by: float,
            score: AttentionScore = score,
            compare: Callable[..., Tensor] = compare,
            direction: Tensor = direction,
        ) -> float:
            steps = iter(direction.split(1, dim=2))
            shifted = lambda *arguments: compare(*arguments) + by * next(steps)  # noqa: E731
            with monkeypatch.context() as patch:
                patch.setattr(score, "compare", shifted)
                return stepped_loss(model, batch)

        expected = float((layer.scores * direction).sum())
        assert slope_of(loss) == pytest.approx(expected, rel=1e-5, abs=1e-7)


def shifted_steps(layer: RecurrentLayer, shifts: Tensor) -> Callable[..., Tensor]:
    """A step that adds the shift (N, B, C) of its position to the new state."""
    run_step, remaining = layer.step, iter(shifts)
    return lambda *arguments: run_step(*arguments) + next(remaining)


@parametrize(RECURRENT[::12])
def test_decoder_state_gradients_equal_finite_differences(
    specimen: Specimen, monkeypatch: pytest.MonkeyPatch
) -> None:
    if specimen.is_hard:
        pytest.skip("the loss of hard attention is not continuous")
    model, batch, gradients = measured(specimen.name)
    assert isinstance(model.decoder, RecurrentDecoder)
    for layer, measured_layer in zip(model.decoder.layers, gradients.decoder, strict=True):
        states = measured_layer.total[:, 1:]  # without the initial state
        direction = random_like(states)

        def loss(by: float, layer: RecurrentLayer = layer, direction: Tensor = direction) -> float:
            with monkeypatch.context() as patch:
                patch.setattr(layer, "step", shifted_steps(layer, by * direction.transpose(0, 1)))
                return stepped_loss(model, batch)

        expected = float((states * direction).sum())
        assert slope_of(loss) == pytest.approx(expected, rel=1e-5, abs=1e-7)


@parametrize([specimen for specimen in RECURRENT if "↔" in specimen.name][::12])
def test_encoder_state_gradients_equal_finite_differences(
    specimen: Specimen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In both directions, for rows of different lengths."""
    if specimen.is_hard:
        pytest.skip("the loss of hard attention is not continuous")
    model, batch, gradients = measured(specimen.name)
    encoder, source = model.encoder, batch.source
    assert isinstance(encoder, RecurrentEncoder)
    assert isinstance(source, Padded)
    pairs = zip(encoder.forward_layers, encoder.backward_layers, strict=True)
    layers = [layer for pair in pairs for layer in pair]
    for layer, measured_layer in zip(layers, gradients.encoder, strict=True):
        total = measured_layer.total
        assert not total[~source.mask].any(), "padding receives no gradient"
        direction = random_like(total)
        order = torch.arange(total.shape[1]).expand(len(total), -1)
        if measured_layer.name.endswith("←"):
            mirrored = source.lengths.unsqueeze(1) - 1 - order
            order = torch.where(source.mask, mirrored, order)
        shifts = direction.gather(1, order.unsqueeze(-1).expand_as(direction)).transpose(0, 1)

        def loss(by: float, layer: RecurrentLayer = layer, shifts: Tensor = shifts) -> float:
            with monkeypatch.context() as patch:
                patch.setattr(layer, "step", shifted_steps(layer, by * shifts))
                patch.setattr(layer, "encode", layer.encode_stepwise)
                return stepped_loss(model, batch)

        expected = float((total * direction).sum())
        assert slope_of(loss) == pytest.approx(expected, rel=1e-5, abs=1e-7)


@parametrize([specimen for specimen in SOFT if specimen.config.decoder.kind == "transformer"][::6])
def test_transformer_state_gradients_equal_finite_differences(specimen: Specimen) -> None:
    model, batch, gradients = measured(specimen.name)
    assert isinstance(model.decoder, TransformerDecoder)
    for layer, measured_layer in zip(model.decoder.layers, gradients.decoder, strict=True):
        direction = random_like(measured_layer.total)

        def loss(by: float, layer: nn.Module = layer, direction: Tensor = direction) -> float:
            hook = layer.register_forward_hook(lambda module, inputs, out: out + by * direction)
            result = float(token_loss(model, batch, 0.0))
            hook.remove()
            return result

        expected = float((measured_layer.total * direction).sum())
        assert slope_of(loss) == pytest.approx(expected, rel=1e-5, abs=1e-7)


@parametrize(
    [specimen for specimen in RECURRENT if getattr(specimen.config.decoder, "cell", "") == "rnn"]
)
def test_the_recurrent_summand_is_the_gradient_of_the_next_state_through_its_cell(
    specimen: Specimen,
) -> None:
    """s' = tanh(W x + U s): the gradient at s through the cell is Uᵀ ((1 - s'²) ∘ ∂L/∂s')."""
    model, batch, gradients = measured(specimen.name)
    decoder = model.decoder
    assert isinstance(decoder, RecurrentDecoder)
    if "state" in decoder.context_uses:
        pytest.skip("the cell reads the context instead of the state")
    memory = model.encode(batch.source, batch.size)
    state = decoder.start(memory, batch.inputs.values.shape[1])
    states = []
    for column in batch.inputs.values.unbind(1):
        state = decoder.step(column, state).state
        states.append(state.moving.states)
    after = torch.stack(states, dim=2)  # (B, L, T, C)
    for level, (layer, measured_layer) in enumerate(
        zip(decoder.layers, gradients.decoder, strict=True)
    ):
        next_gradient = measured_layer.total[:, 1:]
        expected = ((1 - after[:, level].square()) * next_gradient) @ layer.weights()[1]
        torch.testing.assert_close(measured_layer.parts["recurrence"][:, :-1], expected)
        assert not measured_layer.parts["recurrence"][:, -1].any()


RNN_ENCODERS = [specimen for specimen in EVERY_DECODER if specimen.name.startswith("rnn→")]


@parametrize(RNN_ENCODERS[::2])
def test_the_recurrent_summand_of_an_encoder_state_comes_through_the_next_cell(
    specimen: Specimen,
) -> None:
    """h' = tanh(W x + U h): the gradient at h through the cell is Uᵀ ((1 - h'²) ∘ ∂L/∂h')."""
    model, batch, gradients = measured(specimen.name)
    assert isinstance(model.encoder, RecurrentEncoder)
    [layer], [states] = model.encoder.forward_layers, gradients.encoder
    hidden = model.encode(batch.source, batch.size).states
    expected = ((1 - hidden.square()) * states.total)[:, 1:] @ layer.weights()[1]
    torch.testing.assert_close(states.parts["recurrence"][:, :-1], expected)
    torch.testing.assert_close(states.total, sum(states.parts.values()))


@run_on([specimen for specimen in WITH_ATTENTION if is_recurrent(specimen)])
def test_the_query_summand_is_the_gradient_of_the_query_through_its_projection(
    specimen: Specimen,
) -> None:
    """q = f(Wq s + bq): the gradient at s through the query is Wqᵀ (f' ∘ ∂L/∂q)."""
    model, _, gradients = measured(specimen.name)
    decoder = model.decoder
    assert isinstance(decoder, RecurrentDecoder)
    [attended] = gradients.attention
    attention = attended.attention
    if attention.query_layers:
        pytest.skip("the formula is that of a single layer")
    queries, gradient = (
        tensor.transpose(1, 2).flatten(2) for tensor in (attended.forward.queries, attended.queries)
    )
    match attention.projection:
        case "sigmoid":
            gradient = gradient * queries * (1 - queries)
        case "tanh":
            gradient = gradient * (1 - queries.square())
    if isinstance(attention.to_query, nn.Linear):
        gradient = gradient @ attention.to_query.weight  # (B, T, Dq)
    layer = gradients.decoder[decoder.query_layer]
    shift = 0 if decoder.query_is_previous_state else 1
    steps = gradient.shape[1]
    query = layer.parts["query"]
    torch.testing.assert_close(query[:, shift : shift + steps, : layer.width], gradient)
    assert not query[:, 0 if shift else -1].any()
    assert not query[..., layer.width :].any()
    others = [each for each in gradients.decoder if each is not layer]
    assert all("query" not in each.parts for each in others)


@parametrize([specimen for specimen in RECURRENT if specimen.attention is None][::4])
def test_without_attention_the_output_summand_of_a_prediction_is_at_its_own_step(
    specimen: Specimen,
) -> None:
    model, batch, _ = measured(specimen.name)
    gradients = measure_loss_gradients(model, batch, step=2)
    for layer in gradients.decoder:
        assert not layer.total[:, 3:].any(), "later states do not affect this prediction"
        torch.testing.assert_close(layer.total, sum(layer.parts.values()))
    output = gradients.decoder[-1].parts["output"]  # only the top layer has no layer above it
    assert output[:, 2].any()
    elsewhere = torch.cat((output[:, :2], output[:, 3:]), dim=1)
    torch.testing.assert_close(elsewhere, torch.zeros_like(elsewhere))


@parametrize(WITH_ATTENTION[::14])
def test_gradients_of_single_predictions_add_up(specimen: Specimen) -> None:
    model, batch, combined = measured(specimen.name)
    steps = range(1, batch.targets.values.shape[1] + 1)
    single = [measure_loss_gradients(model, batch, step) for step in steps]
    for index, layer in enumerate(combined.attention):
        for name in ("context", "weights", "scores", "queries", "keys", "values"):
            total = sum(getattr(each.attention[index], name) for each in single)
            torch.testing.assert_close(total, getattr(layer, name))
    for index, states in enumerate(combined.decoder):
        total = sum(each.decoder[index].total for each in single)
        torch.testing.assert_close(total, states.total)


def test_an_ensemble_has_no_loss_gradient() -> None:
    specimen = EVERY_DECODER[0]
    with pytest.raises(ConfigError, match="measure each member by itself"):
        measure_loss_gradients(
            build_ensemble([specimen.build(), specimen.build()]), batch_of(specimen)
        )


@parametrize(WITH_ATTENTION[::3])
def test_the_explained_backward_pass_lists_the_measured_gradients(specimen: Specimen) -> None:
    _, _, gradients = measured(specimen.name)
    heads = gradients.attention[-1].attention.heads
    focus = HeadSelection(len(gradients.attention), heads)
    labels = tuple("abcde")
    parts = explain_gradients(gradients, labels, 2, focus)
    by_name = {part.name: part for part in parts if part.section.startswith("backward")}
    layer, head = gradients.attention[-1], heads - 1
    for name, tensor in (
        ("weights", layer.weights),
        ("scores", layer.scores),
        ("query", layer.queries),
        ("keys", layer.keys),
        ("values", layer.values),
    ):
        torch.testing.assert_close(by_name[name].values, tensor[0, head, 1])
        assert "∂L/∂" in by_name[name].formula
    torch.testing.assert_close(by_name["context"].values, layer.context[0, 1])
    if specimen.is_hard:
        assert "no gradient" in by_name["scores"].note
        assert by_name["query"].formula == "∂L/∂q = 0, because ∂L/∂e = 0"
    assert any(part.section == "state s₂" for part in parts) == (
        is_recurrent(specimen) and len(gradients.decoder) == 1
    )
    for part in parts:
        assert not part.labels or len(part.labels) == part.shape[0]

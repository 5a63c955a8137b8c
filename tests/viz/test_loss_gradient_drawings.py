"""Loss gradients at states, inside attention and at the weights, drawn in terminal and figure."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from seqloom.analysis.gradients import (
    AttentionNorms,
    LossGradientTrace,
    ParameterNorm,
    Place,
    StateNorms,
    parameter_group,
)
from seqloom.core.errors import ConfigError
from seqloom.viz.gradients import draw_loss_gradients, draw_loss_gradients_figure

HEAD = AttentionNorms(
    layer=1,
    head=1,
    is_hard=False,
    context=(0.5, 0.05),
    weights=((0.2, -1.0), (0.0, 0.01)),
    scores=((0.1, -0.1), (0.0, 0.0)),
    queries=(0.3, 0.0),
    keys=((0.1, 0.1), (0.0, 0.0)),
    all_keys=(0.1, 0.1),
)


def example_trace() -> LossGradientTrace:
    parts = {"output": (0.0, 0.0, 0.001), "recurrence": (1.0, 0.1, 0.0), "query": (0.0, 0.01, 0.0)}
    decoder = StateNorms("layer 1", ("initial", "x", "</s>"), (1.0, 0.1, 0.001), parts)
    return LossGradientTrace(
        source=("ä", "</s>"),
        output=("x", "</s>"),
        step=None,
        loss=0.7,
        encoder=(StateNorms("layer 1 ←", ("ä", "</s>"), (1.0, 0.5), {}),),
        decoder=(decoder,),
        attention=(HEAD,),
        weights=(
            ParameterNorm("decoder.attention.to_query.weight", "attention", (2, 3), 3.0),
            ParameterNorm("decoder.attention.to_key.bias", "attention", (2,), 4.0),
            ParameterNorm("decoder.readout.output.bias", "readout", (2,), 0.0),
        ),
    )


def test_bars_of_states_are_logarithmic() -> None:
    """Norms of 1, 0.1 and 0.001 are 0, 1 and 3 powers of ten below the largest one."""
    drawing = draw_loss_gradients(example_trace(), "states", ascii_only=True).plain
    decoder = drawing.partition("decoder layer 1")[2].splitlines()
    bars = {line.split()[0]: line.count("#") for line in decoder if "#" in line}
    assert bars["initial"] - bars["x"] == pytest.approx((bars["x"] - bars["</s>"]) / 2, abs=1)
    assert bars["initial"] > bars["x"] > bars["</s>"] > 0
    assert decoder[1].split() == ["output", "recurrence", "query", "total"]


def test_signs_show_direction_and_size_of_the_gradient() -> None:
    drawing = draw_loss_gradients(example_trace(), "attention", head=HEAD, ascii_only=True).plain
    weights = drawing.partition("dL/dw")[2].partition("dL/de")[0].splitlines()
    assert weights[2].split() == ["x", "+", "---"]
    assert weights[3].split() == ["</s>"]


def test_hard_attention_says_that_scores_get_no_gradient() -> None:
    soft = draw_loss_gradients(example_trace(), "attention", head=HEAD).plain
    hard = draw_loss_gradients(example_trace(), "attention", head=replace(HEAD, is_hard=True)).plain
    assert "scores, queries and keys are zero" not in soft
    assert "scores, queries and keys are zero" in hard


def test_the_norm_of_a_group_covers_all_its_parameters() -> None:
    assert example_trace().group_norms() == {"attention": 5.0, "readout": 0.0}
    lines = draw_loss_gradients(example_trace(), "weights").plain.splitlines()
    assert lines[2].split()[:2] == ["attention", "5"]


@pytest.mark.parametrize("place", get_args(Place))
def test_ascii_only_output_is_ascii(place: Place) -> None:
    assert draw_loss_gradients(example_trace(), place, head=HEAD, ascii_only=True).plain.isascii()


@pytest.mark.parametrize("place", get_args(Place))
def test_suffix_selects_the_image_format(place: Place, tmp_path: Path) -> None:
    draw_loss_gradients_figure(example_trace(), place, HEAD).save(tmp_path / "g.png")
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match=r"Name the file g\.png"):
        draw_loss_gradients_figure(example_trace(), place, HEAD).save(tmp_path / "g.bmp")


@pytest.mark.parametrize("place", get_args(Place))
def test_gradients_of_zero_are_drawn(place: Place, tmp_path: Path) -> None:
    """On a logarithmic axis, zero has no position."""
    trace = example_trace()
    nothing = StateNorms("layer 1", ("a", "b"), (0.0, 0.0), {})
    zero = replace(
        HEAD,
        context=(0.0, 0.0),
        weights=((0.0, 0.0),) * 2,
        scores=((0.0, 0.0),) * 2,
        queries=(0.0, 0.0),
        keys=((0.0, 0.0),) * 2,
    )
    trace = replace(
        trace,
        encoder=(nothing,),
        decoder=(nothing,),
        weights=tuple(replace(each, norm=0.0) for each in trace.weights),
    )
    assert "0" in draw_loss_gradients(trace, place, head=zero).plain
    draw_loss_gradients_figure(trace, place, zero).save(tmp_path / "g.svg")


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("encoder.embedder.lookup.table.weight", "encoder embedding"),
        ("encoder.backward_layers.1.network.bias_hh_l0", "encoder layer 2 ←"),
        ("encoder.layers.0.attention_residual.norm.weight", "encoder layer 1: self-attention"),
        ("decoder.layers.11.cross_attention.to_key.bias", "decoder layer 12: cross-attention"),
        ("decoder.layers.0.network.weight_ih_l0", "decoder layer 1"),
        ("decoder.readout.output.bias", "readout"),
    ],
)
def test_parameters_are_grouped_by_the_part_of_the_model(name: str, group: str) -> None:
    assert parameter_group(name) == group

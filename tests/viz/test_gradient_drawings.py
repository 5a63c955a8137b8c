"""Gradients through time, in a terminal and in an image file."""

from pathlib import Path

import pytest

from seqloom.analysis.gradients import GradientTrace, StepGradients
from seqloom.core.errors import ConfigError
from seqloom.viz.gradients import draw_gradients, draw_gradients_figure


def example_trace() -> GradientTrace:
    source = StepGradients(
        ("a", "</s>"), (1.0, 0.5), {"chain": (0.1, 0.4), "attention": (0.95, 0.2)}
    )
    target = StepGradients(("<s>",), (2.0,), {"own": (2.0,), "later": (0.0,)})
    return GradientTrace(("x",), 1, 0.7, source, target)


def test_each_step_has_one_bar_of_two_components() -> None:
    lines = draw_gradients(example_trace(), ascii_only=True).plain.splitlines()
    bars = {line.split()[0]: line.split()[-1] for line in lines if "#" in line or "::" in line}
    assert bars["a"].count("#") < bars["</s>"].count("#")
    assert bars["a"].count(":") > bars["</s>"].count(":")
    assert lines[0] == "gradients of the loss at step 1 (x), loss 0.700"


def test_ascii_only_output_is_ascii() -> None:
    assert draw_gradients(example_trace(), ascii_only=True).plain.isascii()


def test_suffix_selects_the_image_format(tmp_path: Path) -> None:
    draw_gradients_figure(example_trace()).save(tmp_path / "g.png")
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match=r"Name the file g\.png"):
        draw_gradients_figure(example_trace()).save(tmp_path / "g.bmp")

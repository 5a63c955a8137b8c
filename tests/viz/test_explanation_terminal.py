"""One decoder step, printed in a terminal."""

from dataclasses import replace

import pytest
import torch
from rich.cells import cell_len

from seqloom.analysis.attention_example import explain_lecture
from seqloom.analysis.explanation import Explanation, TokenProbability
from seqloom.models.step_description import TracedValue
from seqloom.viz.explanation_terminal import draw_explanation

UNUSUAL_TOKENS = (
    "שלום", "猫", "👩‍🚀", "e\N{COMBINING ACUTE ACCENT}", "a\tb", "x" * 60, "▁dog", "\x1b[31m",
)  # fmt: skip


def attention_step(tokens: tuple[str, ...]) -> Explanation:
    """An explanation with one attention over these tokens."""
    weights = torch.linspace(1, 2, len(tokens))
    weights = weights / weights.sum()
    parts = (
        TracedValue("attention", "query", "q = s₂", torch.randn(32)),
        TracedValue("attention", "keys", "k = h", torch.randn(len(tokens), 32), tokens),
        TracedValue("attention", "scores", "e = q · k / √32", torch.randn(len(tokens)), tokens),
        TracedValue("attention", "weights", "α = softmax(e)", weights, tokens),
    )
    token = TokenProbability(tokens[0], 4, 0.5)
    return Explanation(
        tokens, tokens, 1, token, token, (token, TokenProbability("b", 5, 0.25)), 1, 1, parts
    )


def test_columns_are_aligned_for_any_token() -> None:
    drawing = draw_explanation(attention_step(UNUSUAL_TOKENS), width=80).plain
    lines = drawing.splitlines()
    header = next(index for index, line in enumerate(lines) if "scores   weights" in line)
    table = lines[header + 1 : header + 1 + len(UNUSUAL_TOKENS)]
    assert len({end_of_numbers(line) for line in table}) == 1
    assert "\x1b" not in drawing
    assert "\t" not in drawing


def end_of_numbers(line: str) -> int:
    """The cell in which the last number of a line ends, before its bar."""
    without_bar = line.rstrip("█▏▎▍▌▋▊▉ ")
    return cell_len(without_bar.replace("\u2068", "").replace("\u2069", ""))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_token_lists_are_complete_and_wrap_at_the_width(width: int) -> None:
    tokens = tuple(f"word{number}" for number in range(40))
    drawing = draw_explanation(attention_step(tokens), width=width).plain
    header = drawing.partition("\nattention\n")[0]
    assert all(cell_len(line) <= width for line in header.splitlines())
    assert [word for word in header.split() if word.startswith("word")][:40] == [*tokens]
    assert "[word0]" in header


def test_ascii_only_output_is_ascii() -> None:
    unusual_source = replace(attention_step(("a", "b")), source=UNUSUAL_TOKENS)
    for explanation in (explain_lecture(), unusual_source):
        assert draw_explanation(explanation, ascii_only=True).plain.isascii()


def test_largest_weight_has_the_longest_bar() -> None:
    lines = draw_explanation(attention_step(("a", "b", "c")), ascii_only=True).plain.splitlines()
    rows = [line for line in lines if line.startswith("    ") and "#" in line]
    lengths = [row.count("#") for row in rows[:3]]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[2]


def test_styles_cover_only_their_own_text() -> None:
    """A style of the whole Text would also colour everything appended to it later."""
    drawing = draw_explanation(attention_step(("a", "b")))
    assert drawing.style == ""
    unstyled = drawing.plain.rindex("    b ") + len("    ")
    spans = [span for span in drawing.spans if span.start <= unstyled < span.end and span.style]
    assert not spans

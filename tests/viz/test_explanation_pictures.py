"""A step laid open and gradients through time, as they are drawn in a terminal."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from seqloom.core.errors import ConfigError
from seqloom.inside.explanation import Explanation, Part, Token
from seqloom.inside.gradients import Steps, Trace
from seqloom.inside.lecture import explain_lecture
from seqloom.viz.explanation import draw_explanation
from seqloom.viz.gradients import draw_gradients, save_gradients
from seqloom.viz.words import bar, number

ODD = ("שלום", "猫", "👩‍🚀", "e\N{COMBINING ACUTE ACCENT}", "a\tb", "x" * 60, "▁dog", "\x1b[31m")


def step_of(words: tuple[str, ...]) -> Explanation:
    """A look at these words."""
    weights = torch.linspace(1, 2, len(words))
    weights = weights / weights.sum()
    parts = (
        Part("where it looks", "query", "q = s₂", torch.randn(32)),
        Part("where it looks", "keys", "k = h", torch.randn(len(words), 32), words),
        Part("where it looks", "scores", "e = q · k / √32", torch.randn(len(words)), words),
        Part("where it looks", "weights", "α = softmax(e)", weights, words),
    )
    token = Token(words[0], 4, 0.5)
    return Explanation(words, words, 1, token, token, (token, Token("b", 5, 0.25)), 1, 1, parts)


def test_columns_stand_under_each_other_whatever_the_words() -> None:
    picture = draw_explanation(step_of(ODD), width=80).plain
    lines = picture.splitlines()
    table = lines[lines.index(next(line for line in lines if "scores   weights" in line)) :]
    ends = {_end_of_numbers(line) for line in table[1 : len(ODD) + 1]}
    assert len(ends) == 1
    assert "\x1b" not in picture
    assert "\t" not in picture


def _end_of_numbers(line: str) -> int:
    """The cell in which the last number of a line ends, before its bar."""
    bare = line.rstrip("█▏▎▍▌▋▊▉ ")
    return cell_len(bare.replace("\u2068", "").replace("\u2069", ""))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_word_is_there_and_lines_fold_at_the_width(width: int) -> None:
    words = tuple(f"word{place}" for place in range(40))
    picture = draw_explanation(step_of(words), width=width).plain
    head = picture.partition("where it looks")[0]
    assert all(cell_len(line) <= width for line in head.splitlines())
    assert [word for word in head.split() if word.startswith("word")][:40] == [*words]
    assert "[word0]" in head


def test_a_terminal_without_other_letters_gets_ascii() -> None:
    plain = replace(step_of(("a", "b")), source=ODD)
    for explanation in (explain_lecture(), plain):
        assert draw_explanation(explanation, ascii_only=True).plain.isascii()
    assert draw_gradients(_trace(), ascii_only=True).plain.isascii()


def test_the_longest_bar_is_the_best_word() -> None:
    words = ("a", "b", "c")
    drawn = draw_explanation(step_of(words), ascii_only=True).plain.splitlines()
    rows = [line for line in drawn if line.startswith("    ") and "#" in line]
    lengths = [row.count("#") for row in rows[:3]]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[2]


def test_colour_stays_where_it_belongs() -> None:
    """A style for all of a text would colour everything that is appended to it later."""
    picture = draw_explanation(step_of(("a", "b")))
    assert picture.style == ""
    other = picture.plain.rindex("    b ") + len("    ")
    assert not [span for span in picture.spans if span.start <= other < span.end and span.style]


@given(st.floats(0, 1), st.integers(1, 40))
def test_a_bar_is_as_long_as_its_share(share: float, cells: int) -> None:
    assert len(bar(share, cells, ascii_only=True)) == round(share * cells)
    eighths = bar(share, cells)
    assert abs(sum("▏▎▍▌▋▊▉█".index(mark) + 1 for mark in eighths) - share * cells * 8) <= 1


@given(st.floats(-1e300, 1e300))
def test_a_number_is_written_to_three_places_or_by_its_power(value: float) -> None:
    assert float(number(value)) == pytest.approx(
        value, rel=0.06, abs=1e-3 if abs(value) >= 0.0005 else 0
    )


def _trace() -> Trace:
    source = Steps(("a", "</s>"), (1.0, 0.5), {"chain": (0.1, 0.4), "attention": (0.95, 0.2)})
    target = Steps(("<s>",), (2.0,), {"own": (2.0,), "later": (0.0,)})
    return Trace(("x",), 1, 0.7, source, target)


def test_gradients_are_drawn_as_two_parts_of_one_bar() -> None:
    lines = draw_gradients(_trace(), ascii_only=True).plain.splitlines()
    bars = {line.split()[0]: line.split()[-1] for line in lines if "#" in line or "::" in line}
    assert bars["a"].count("#") < bars["</s>"].count("#")
    assert bars["a"].count(":") > bars["</s>"].count(":")
    assert lines[0] == "gradients of answer 1 (x), loss 0.700"


def test_a_picture_is_what_its_name_says(tmp_path: Path) -> None:
    save_gradients(tmp_path / "g.png", _trace())
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match=r"name the file g\.png"):
        save_gradients(tmp_path / "g.bmp", _trace())

"""Attention matrices in a terminal."""

import unicodedata
from typing import cast, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from seqloom.viz.attention_terminal import BLOCKS, LETTERS, Marks, draw_attention

WEIGHTS = [[0.0, 0.1, 0.9], [0.3, 0.5, 0.2]]


def test_short_sentence_has_its_tokens_as_column_headers() -> None:
    picture = draw_attention(WEIGHTS, ["I", "like"], ["mir", "gefällt", "."], width=40).plain
    assert picture.split("\n") == [
        "      mir  gefällt  . ",
        "I          ░░░░░░░  ██",
        "like  ▒▒▒  ▓▓▓▓▓▓▓  ▒▒",
        "",
    ]


def test_letters_shade_in_ascii() -> None:
    words = ["▁mir", "gefällt", "."]
    picture = draw_attention(WEIGHTS, ["I", "like"], words, width=40, marks="letters").plain
    assert picture.isascii()
    assert picture.split("\n") == [
        "      _mir  gef?llt  . ",
        "I           .......  @@",
        "like  ----  +++++++  ::",
        "",
    ]


def test_wide_matrix_has_numbered_columns_and_a_legend() -> None:
    sources = [f"word-{number}" for number in range(1, 13)]
    picture = draw_attention([[1 / 12] * 12], ["out"], sources, width=30).plain
    assert "word-12" in picture.split("\n\n")[-1]
    assert picture.split("\n")[0].split() == [str(number) for number in range(1, 7)]
    assert all(cell_len(line) <= 30 for line in picture.split("\n"))
    assert all(f"{number} word-{number}" in picture for number in range(1, 13))


@given(
    outputs=st.lists(st.text(), max_size=5),
    sources=st.lists(st.text(), min_size=1, max_size=40),
    width=st.integers(30, 120),
    marks=st.sampled_from(get_args(Marks)),
)
@settings(deadline=None)
def test_any_token_fits_into_its_line(
    outputs: list[str], sources: list[str], width: int, marks: Marks
) -> None:
    weights = [[1 / len(sources)] * len(sources) for _ in outputs]
    picture = draw_attention(weights, outputs, sources, width=width, marks=marks).plain
    assert all(cell_len(line) <= width for line in picture.split("\n"))
    control_characters = [
        c for c in picture if c != "\n" and unicodedata.category(c) in ("Cc", "Zl", "Zp")
    ]
    assert not control_characters
    if marks == "letters":
        assert picture.isascii()


def test_right_to_left_tokens_are_isolated() -> None:
    picture = draw_attention([[1.0]], ["שלום"], ["hello"], width=40).plain
    assert "\N{FIRST STRONG ISOLATE}שלום\N{POP DIRECTIONAL ISOLATE}" in picture


def test_escape_sequences_in_tokens_are_removed() -> None:
    picture = draw_attention([[1.0]], ["\x1b[31mred"], ["a\nb"], width=40).plain
    assert "\x1b" not in picture
    assert picture.count("\n") == 2


@pytest.mark.parametrize(("marks", "ramp"), [("letters", LETTERS), ("blocks", BLOCKS)])
def test_larger_weights_are_never_drawn_lighter(marks: Marks, ramp: str) -> None:
    weights = [step / 100 for step in range(101)]
    row = draw_attention([weights], [""], ["x"] * 101, width=1000, marks=marks)
    drawn = row.plain.split("\n")[1]
    levels = [ramp.index(drawn[2 + 4 * step]) for step in range(101)]
    assert levels == sorted(levels)
    assert (levels[0], levels[-1]) == (0, len(ramp) - 1)


def test_nan_is_drawn_as_zero() -> None:
    for marks, expected in (("letters", "a    "), ("blocks", "a    "), ("numbers", "a    .")):
        picture = draw_attention([[float("nan")]], ["a"], ["b"], marks=cast(Marks, marks)).plain
        assert picture.split("\n")[1] == expected


def test_numbers_are_percentages_and_labels_keep_their_script() -> None:
    words = ["mir", "gefällt", "."]
    picture = draw_attention(WEIGHTS, ["I", "like"], words, width=40, marks="numbers").plain
    assert picture.split("\n") == [
        "      mir  gefällt  .  ",
        "I       .       10   90",
        "like   30       50   20",
        "",
    ]


@pytest.mark.parametrize(
    ("word", "cells"),
    [("日本", 4), ("e\u0301te\u0301", 3), ("👍🏽", 2), ("👩\u200d🚀", 2), ("שלום", 4)],
)
def test_label_width_is_counted_in_terminal_cells(word: str, cells: int) -> None:
    """A label of N cells is followed by the same columns as a label of N ASCII letters."""
    drawn = draw_attention([[1.0, 0.0]], [word], ["x", "yz"], width=60).plain.split("\n")
    plain = draw_attention([[1.0, 0.0]], ["a" * cells], ["x", "yz"], width=60).plain.split("\n")
    assert [cell_len(line) for line in drawn] == [cell_len(line) for line in plain]
    assert drawn[0] == plain[0]

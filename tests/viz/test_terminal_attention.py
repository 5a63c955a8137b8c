"""An attention matrix in a terminal stays inside its lines, whatever the tokens are."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from seqloom.viz.terminal import BLOCKS, LETTERS, draw_attention

WEIGHTS = [[0.0, 0.1, 0.9], [0.3, 0.5, 0.2]]


def test_a_short_sentence_has_its_words_above_its_columns() -> None:
    picture = draw_attention(WEIGHTS, ["I", "like"], ["mir", "gefällt", "."], width=40).plain
    assert picture.split("\n") == [
        "      mir  gefällt  . ",
        "I          ░░░░░░░  ██",
        "like  ▒▒▒  ▓▓▓▓▓▓▓  ▒▒",
        "",
    ]


def test_without_unicode_letters_do_the_shading() -> None:
    words = ["▁mir", "gefällt", "."]
    picture = draw_attention(WEIGHTS, ["I", "like"], words, width=40, ascii_only=True).plain
    assert picture.isascii()
    assert picture.split("\n") == [
        "      _mir  gef?llt  . ",
        "I           .......  @@",
        "like  ----  +++++++  ::",
        "",
    ]


def test_what_is_too_wide_is_numbered_and_explained() -> None:
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
    ascii_only=st.booleans(),
)
@settings(deadline=None)
def test_no_token_breaks_the_picture(
    outputs: list[str], sources: list[str], width: int, ascii_only: bool
) -> None:
    weights = [[1 / len(sources)] * len(sources) for _ in outputs]
    picture = draw_attention(weights, outputs, sources, width=width, ascii_only=ascii_only).plain
    assert all(cell_len(line) <= width for line in picture.split("\n"))
    dangerous = [c for c in picture if c != "\n" and unicodedata.category(c) in ("Cc", "Zl", "Zp")]
    assert not dangerous
    if ascii_only:
        assert picture.isascii()


def test_right_to_left_words_are_isolated_from_the_line() -> None:
    picture = draw_attention([[1.0]], ["שלום"], ["hello"], width=40).plain
    assert "\N{FIRST STRONG ISOLATE}שלום\N{POP DIRECTIONAL ISOLATE}" in picture


def test_an_escape_sequence_in_a_token_reaches_no_terminal() -> None:
    picture = draw_attention([[1.0]], ["\x1b[31mred"], ["a\nb"], width=40).plain
    assert "\x1b" not in picture
    assert picture.count("\n") == 2


@pytest.mark.parametrize("ascii_only", [True, False])
def test_more_attention_is_never_drawn_lighter(ascii_only: bool) -> None:
    ramp = LETTERS if ascii_only else BLOCKS
    weights = [step / 100 for step in range(101)]
    row = draw_attention([weights], [""], ["x"] * 101, width=1000, ascii_only=ascii_only)
    marks = row.plain.split("\n")[1]
    levels = [ramp.index(marks[2 + 4 * step]) for step in range(101)]
    assert levels == sorted(levels)
    assert (levels[0], levels[-1]) == (0, len(ramp) - 1)


def test_a_weight_that_is_no_number_is_drawn_as_nothing() -> None:
    for ascii_only in (True, False):
        picture = draw_attention([[float("nan")]], ["a"], ["b"], ascii_only=ascii_only).plain
        assert picture.split("\n")[1] == "a    "

"""Texts are cut where sentences end, and nothing of them is lost."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.serving.sentences import cut, whole


def always(text: str) -> bool:
    return True


def sentences(text: str) -> list[str]:
    return [part.text for part in cut(text, always).parts]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        ("He said: \"Go.\" She went.", ['He said: "Go."', "She went."]),
        ("«Viens !» Il part.", ["«Viens !»", "Il part."]),
        ("Dr. Müller kommt am 3. Mai, z. B. mit J. Bach.",) * 1
        + (["Dr. Müller kommt am 3. Mai, z. B. mit J. Bach."],),
        ("What? no way.", ["What? no way."]),
        ("3.5 km. Then 4.", ["3.5 km.", "Then 4."]),
        ("你好。再见！", ["你好。", "再见！"]),
        ("a line\nand another\r\n\r\nand more", ["a line", "and another", "and more"]),
        ("\n \n", []),
    ],
)  # fmt: skip
def test_sentences_are_found(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


@given(st.text(alphabet=" \n\r\t.!?…。a,B;3\"'\u2028\x85ä字", max_size=80), st.integers(1, 12))
def test_what_is_cut_can_be_put_together_again(text: str, most: int) -> None:
    parts = cut(text, lambda part: len(part) <= most)
    assert parts.join([part.text for part in parts.parts]) == text
    for part in parts.parts:
        assert part.text == part.text.strip()
        assert 1 <= len(part.text) <= max(most, 1)
    assert whole(text).join([part.text for part in whole(text).parts]) == text


def test_long_sentences_are_cut_behind_commas_first() -> None:
    text = "one two three, four five six, seven eight nine"
    parts = [part.text for part in cut(text, lambda part: len(part) < 33).parts]
    assert parts == ["one two three, four five six,", "seven eight nine"] or parts == [
        "one two three,",
        "four five six, seven eight nine",
    ]


def test_scripts_without_spaces_get_one_where_the_output_needs_it() -> None:
    parts = cut("你好。再见！", always)
    assert parts.join(["Hello.", "Bye!"]) == "Hello. Bye!"
    assert parts.join(["你好。", "再见！"]) == "你好。再见！"


@pytest.mark.parametrize("text", [".", "a. ", "。", '"', ". ", ",  ", "A. B"])
def test_no_text_takes_longer_than_its_length(text: str) -> None:
    begun = time.perf_counter()
    cut(text * 20_000, always)
    assert time.perf_counter() - begun < 2

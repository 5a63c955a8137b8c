"""Sentence splitting finds sentence ends and preserves the text."""

import time
from typing import Literal
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.text.protected_spans import find_spans
from seqloom.text.sentences import (
    ends_like_a_sentence,
    fits_always,
    single_segment,
    split_segments,
    split_text,
    split_until_fitting,
)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        ("He said: \"Go.\" She went.", ['He said: "Go."', "She went."]),
        ("«Viens !» Il part.", ["«Viens !»", "Il part."]),
        (
            "Dr. Müller kommt am 3. Mai, z. B. mit J. Bach.",
            ["Dr. Müller kommt am 3. Mai, z. B. mit J. Bach."],
        ),
        ("What? no way.", ["What? no way."]),
        ("3.5 km. Then 4.", ["3.5 km.", "Then 4."]),
        ("你好。再见！", ["你好。", "再见！"]),
        ("वह आया। हम गए।", ["वह आया।", "हम गए।"]),
        ("a line\nand another\r\n\r\nand more", ["a line", "and another", "and more"]),
        ("\n \n", []),
    ],
)  # fmt: skip
def test_sentences_are_split(text: str, sentences: list[str]) -> None:
    assert [segment.text for segment in split_text(text, fits_always).segments] == sentences


@given(st.text(alphabet=" \n\r\t.!?…。a,B;3\"'\u2028\x85ä字", max_size=80), st.integers(1, 12))
def test_joining_the_segments_restores_the_text(text: str, max_length: int) -> None:
    split = split_text(text, lambda part: len(part) <= max_length)
    assert split.join([segment.text for segment in split.segments]) == text
    for segment in split.segments:
        assert segment.text == segment.text.strip()
        assert 1 <= len(segment.text) <= max(max_length, 1)
    unsplit = single_segment(text)
    assert unsplit.join([segment.text for segment in unsplit.segments]) == text


def test_long_sentences_are_split_after_commas_first() -> None:
    text = "one two three, four five six, seven eight nine"
    parts = [segment.text for segment in split_text(text, lambda part: len(part) < 33).segments]
    assert parts in (
        ["one two three, four five six,", "seven eight nine"],
        ["one two three,", "four five six, seven eight nine"],
    )


def test_join_adds_a_space_where_only_the_output_script_needs_one() -> None:
    split = split_text("你好。再见！", fits_always)
    assert split.join(["Hello.", "Bye!"]) == "Hello. Bye!"
    assert split.join(["你好。", "再见！"]) == "你好。再见！"


@pytest.mark.parametrize("text", [".", "a. ", "。", '"', ". ", ",  ", "A. B", "<b>. "])
def test_splitting_takes_linear_time(text: str) -> None:
    start = time.perf_counter()
    split_text(text * 20_000, fits_always, find_spans)
    assert time.perf_counter() - start < 2


def test_a_line_without_stops_is_split_quickly() -> None:
    for text in ("word " * 5_200, "x" * 26_000, "a\u0301" * 13_000):
        start = time.perf_counter()
        split = split_text(text, lambda part: len(part) <= 200)
        assert time.perf_counter() - start < 2
        assert split.text == text
        assert max(len(segment.text) for segment in split.segments) <= 200


def test_spans_are_not_split() -> None:
    url = "https://example.org/" + "a" * 50
    text = f"xx{url} {url}"
    split = split_text(text, lambda part: len(part) <= 20, find_spans)
    assert split.text == text
    assert [segment.text for segment in split.segments] == ["xx", url, url]


@pytest.mark.parametrize("span", ['<a href="x" title="one, two three">', "{{ name }}", "😀 😀 😀"])
@pytest.mark.parametrize(
    "text", ["aa bb {} cc dd", "aa bb cc dd {}", "{} aa bb cc dd", "aa{}bb", "{}"]
)
def test_spans_with_white_space_are_not_split(span: str, text: str) -> None:
    text = text.format(span)
    split = split_text(text, lambda part: len(part) <= 4, find_spans)
    assert split.text == text
    assert span in [segment.text for segment in split.segments]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            'See <a title="Mr. X">him</a>. Then <b>go</b>. Now.',
            ['See <a title="Mr. X">him</a>.', "Then <b>go</b>.", "Now."],
        ),
        ('<img alt="你好。再见"/>你好。再见', ['<img alt="你好。再见"/>你好。', "再见"]),
        ("Wow! 😀 😀 Yes. No.", ["Wow!", "😀 😀 Yes.", "No."]),
        ("Is 1 < 2? Yes. 2 > 1", ["Is 1 < 2?", "Yes.", "2 > 1"]),
    ],
)
def test_a_stop_inside_a_span_ends_no_sentence(text: str, sentences: list[str]) -> None:
    split = split_text(text, fits_always, find_spans)
    assert [segment.text for segment in split.segments] == sentences


def test_segments_that_fit_are_kept() -> None:
    split = split_text("One. Two three four.")
    assert split_segments(split, fits_always) == split
    parts = split_segments(split, lambda part: len(part) < 10)
    assert parts.text == split.text
    assert [segment.text for segment in parts.segments] == ["One.", "Two three", "four."]


@pytest.mark.parametrize("text", ["Ja.", "Ja!«", "好。", "ja ?", "He said: “Go.”", "हाँ। "])
def test_a_text_with_a_stop_ends_like_a_sentence(text: str) -> None:
    assert ends_like_a_sentence(text)
    assert not ends_like_a_sentence(f"{text} x = 3")


@given(st.text("aäéñ각が ,;", min_size=1, max_size=80), st.integers(1, 12))
def test_composed_and_decomposed_texts_are_split_at_the_same_places(text: str, limit: int) -> None:
    def fits(part: str) -> bool:
        return len(normalize("NFC", part)) <= limit

    def split(form: Literal["NFC", "NFD"]) -> list[str]:
        parts = split_until_fitting(normalize(form, text), fits)
        return [normalize("NFC", part) for part in parts]

    assert split("NFC") == split("NFD")

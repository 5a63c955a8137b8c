"""The characters that the doctor warns about."""

from unicodedata import normalize

import pytest

from seqloom.data.checks.characters import (
    CharacterStatistics,
    invisible_characters,
    mixed_script_words,
)


@pytest.mark.parametrize(
    "character",
    [
        *("\u200b", "\u2060", "\xad", "\ufeff", "\u200e", "\u202e", "\u2066", "\x00", "\x9f"),
        *("\u2063", "\U000e0041", "\u200c", "\u200d"),
    ],
)
def test_invisible_characters_are_found(character: str) -> None:
    for text in (f"ab{character}cd", character, f"ab {character}", f"{character} ab"):
        assert list(invisible_characters(text)) == [character]


@pytest.mark.parametrize(
    "text",
    [
        "plain text\twith a tab",
        "می‌خواهم",  # Persian, with ZWNJ
        "ക്ഷണിക്കപ്പെട്ടവന്‍ ആണ്",  # Malayalam, with ZWJ at the end of a word
        "ශ්‍රී ලංකා",  # Sinhala, with ZWJ
        "👩‍👧 👩🏽‍🚀 ❤️‍🔥 🏴‍☠️ 🤷‍♀️",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "\u0601١٢٣ \u06dd",
        "漢字とかな Ελληνικά русский ไทย",
    ],
)
def test_characters_that_a_script_or_an_emoji_needs_are_not_reported(text: str) -> None:
    assert list(invisible_characters(text)) == []


@pytest.mark.parametrize("joiner", ["\u200c", "\u200d"])
@pytest.mark.parametrize("text", ["ab{}cd", "می {}می", "{}می", "👩{} a", "日{}本"])
def test_joiners_in_other_places_are_found(text: str, joiner: str) -> None:
    assert list(invisible_characters(text.format(joiner))) == [joiner]


@pytest.mark.parametrize(
    "word",
    [
        "\u0410pple",  # Cyrillic capital A
        "p\u0430ypal",  # Cyrillic a
        "\u039fnly",  # Greek capital omicron
        "M\u043e\u0441\u043a\u0432\u0430",  # Latin M in a Russian word
        "A\u03b8\u03ae\u03bd\u03b1",  # Latin A in a Greek word
        normalize("NFD", "\u0410pplé"),
        "\u0410\u0301pple",
    ],
)
def test_words_with_look_alike_letters_of_another_script_are_found(word: str) -> None:
    assert list(mixed_script_words(f"one {word}, two")) == [word]


@pytest.mark.parametrize(
    "text",
    [
        *("10 µm, 5 μm", "kΩ MΩ 3Ω", "ΔT ΔG ΔH TGFβ NFκB λx αB", "π2 x² σ1"),
        *("Tシャツ 漢字かな", "iPhone用 USB接続", "2-й этаж, IT-отдел, USB-кабель"),
        *("Слово word, слово Word", "ελληνικά greek", "naïve Ægir"),
    ],
)
def test_ordinary_mixtures_are_not_reported(text: str) -> None:
    assert list(mixed_script_words(text)) == []


def test_the_first_lines_are_listed_and_all_are_counted() -> None:
    statistics = CharacterStatistics()
    for number in range(1, 6):
        statistics.add("e\u0301", f"file:{number}")
        statistics.add("a\x00b", f"file:{number}")
    assert statistics.not_nfc.count == 5
    assert str(statistics.not_nfc) == "file:1; file:2; file:3; …"
    assert str(statistics.invisible).startswith("file:1: U+0000 CONTROL CHARACTER; file:2")
    assert not statistics.mixed_scripts

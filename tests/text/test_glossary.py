"""Glossaries: reading them, and finding their phrases in texts."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import DataError, NotFoundError
from seqloom.text.glossary import Glossary, count_phrases, read_glossary


def required(text: str, **pairs: str) -> list[str]:
    return targets(text, pairs)


def targets(text: str, pairs: dict[str, str]) -> list[str]:
    return [phrase.text for phrase in Glossary.of(pairs).required(text)]


def test_a_phrase_knows_its_source_words() -> None:
    [first, second] = Glossary.of({"b c": "x", "d": "y"}).required("a (b  c), d")
    assert (first.first_word, first.last_word) == (1, 2)
    assert (second.first_word, second.last_word) == (3, 3)


def test_phrases_are_found_as_whole_words() -> None:
    assert required("Das Haus.", Haus="building") == ["building"]
    assert required("(Haus)-Haus, das", Haus="building") == ["building"] * 2
    assert required("Das Haustier, ein Bauhaus, 3Haus", Haus="building") == []


def test_a_phrase_in_lower_case_is_found_in_any_case() -> None:
    assert required("HAUS Haus haus", haus="building") == ["building"] * 3


def test_a_phrase_with_a_capital_letter_is_found_only_as_written() -> None:
    assert required("WHO who Who", WHO="OMS") == ["OMS"]
    assert required("WHO who", WHO="OMS", who="wer") == ["OMS", "wer"]


def test_the_longest_of_overlapping_phrases_is_used() -> None:
    pairs = {"new york": "New York", "new york city": "Big Apple", "city": "Stadt"}
    assert targets("New  York\nCity and a city", pairs) == ["Big Apple", "Stadt"]


def test_scripts_without_spaces_have_no_word_boundaries() -> None:
    assert targets("東京都に", {"東京": "Tokyo"}) == ["Tokyo"]


def test_forms_of_unicode_are_equal() -> None:
    assert targets("le caf\u00e9", {"cafe\u0301": "coffee"}) == ["coffee"]
    assert targets("le cafe\u0301", {"caf\u00e9": "coffee"}) == ["coffee"]


@given(st.lists(st.sampled_from(["a", "b", "ab", "a b", "b a b", "."]), max_size=8))
def test_counts_are_those_of_the_leftmost_longest_occurrences(parts: list[str]) -> None:
    text = " ".join(parts)
    words = text.split()
    expected = {"a b": 0, "b": 0}
    index = 0
    while index < len(words):
        if words[index : index + 2] == ["a", "b"]:
            expected["a b"] += 1
            index += 2
        else:
            expected["b"] += words[index] == "b"
            index += 1
    counts = count_phrases(text, ["b", "a b"])
    assert {phrase: counts[phrase] for phrase in expected} == expected


def test_a_file_has_one_pair_per_line(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("\ufeffHaus\tbuilding\n\n weiße  Ware \t white goods\r\n", encoding="utf-8")
    pairs = (("Haus", "building"), ("weiße Ware", "white goods"))
    assert read_glossary(path).pairs == pairs


def test_all_invalid_lines_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("Haus\tbuilding\nAuto\n\tcar\na\tb\tc\nHaus\thouse\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_glossary(path)
    message = str(caught.value)
    assert all(f"line {number}:" in message for number in (2, 3, 4, 5))
    assert "'building'" in message


def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="cannot be read"):
        read_glossary(tmp_path / "missing.tsv")
    (tmp_path / "latin.tsv").write_bytes(b"stra\xdfe\tstreet\n")
    with pytest.raises(DataError, match="convert it to UTF-8"):
        read_glossary(tmp_path / "latin.tsv")
    (tmp_path / "empty.tsv").write_text("\n")
    with pytest.raises(DataError, match="empty"):
        read_glossary(tmp_path / "empty.tsv")

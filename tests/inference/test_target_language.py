"""Target languages of multilingual runs, chosen with `to` or with a tag in front of each text."""

import pytest

from seqloom.core.errors import ConfigError, DataError
from seqloom.inference.prediction import Prediction
from seqloom.inference.target_language import TargetLanguages

MULTILINGUAL = TargetLanguages("runs/many", ("<2de>", "<2fr>", "<U>"), tag_is_in_source=True)
BILINGUAL = TargetLanguages("runs/one", (), tag_is_in_source=True)


def test_tag_is_added_to_every_non_empty_text() -> None:
    assert MULTILINGUAL.path("fr") == MULTILINGUAL.path("<2fr>") == ["<2fr>"]
    assert MULTILINGUAL.add_tag(["A dog.", "", " \t"], "<2fr>") == ["<2fr> A dog.", "", " \t"]


def test_path_of_several_languages_has_one_tag_each() -> None:
    assert MULTILINGUAL.path(["de", "fr"]) == ["<2de>", "<2fr>"]


def test_path_accepts_every_tag_of_the_training_data() -> None:
    assert MULTILINGUAL.path("<U>") == ["<U>"]


def test_unknown_language_is_an_error_that_lists_the_available_ones() -> None:
    with pytest.raises(ConfigError, match=r"cannot translate to 'it'\. Available: de, fr, <U>"):
        MULTILINGUAL.path("it")
    with pytest.raises(ConfigError, match=r"Did you mean 'fr'\?"):
        MULTILINGUAL.path("fra")


def test_run_with_a_single_target_language_rejects_a_choice() -> None:
    assert BILINGUAL.path(None) == [None]
    assert BILINGUAL.add_tag(["A dog."], None) == ["A dog."]
    with pytest.raises(ConfigError, match=r"single target language\. Remove --to de"):
        BILINGUAL.path("de")


def test_texts_without_a_tag_are_an_error_that_lists_their_lines() -> None:
    assert MULTILINGUAL.add_tag(["<2de> A dog.", ""], None) == ["<2de> A dog.", ""]
    with pytest.raises(DataError) as caught:
        MULTILINGUAL.add_tag(["<2de> A dog.", "A cat.", "", "A man."], None, first=10)
    assert "none is given for lines 12, 14. Choose one with --to" in str(caught.value)
    assert "Available: de, fr, <U>" in str(caught.value)
    with pytest.raises(DataError, match=r"none is given for line 1\. Choose"):
        MULTILINGUAL.add_tag(["A cat."], None)


def test_tag_in_a_text_and_a_choice_are_an_error() -> None:
    with pytest.raises(DataError, match=r"--to fr is set, but there is already a tag in line 1"):
        MULTILINGUAL.add_tag(["<2de> A dog."], "<2fr>")


def test_alignment_counts_the_words_of_the_text_without_the_tag() -> None:
    output = Prediction("Un chien", 0.0).with_attention(alignment=((0, 0), (2, 1)))
    assert MULTILINGUAL.without_tag(output, "<2fr>").alignment == ((1, 1),)
    assert MULTILINGUAL.without_tag(output, None) == output
    target_tags = TargetLanguages("run", MULTILINGUAL.tags, tag_is_in_source=False)
    assert target_tags.without_tag(output, "<2fr>") == output

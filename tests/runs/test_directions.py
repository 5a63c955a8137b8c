"""Saying which language is wanted, and what is answered when nobody does."""

import pytest

from seqloom.core.errors import ConfigError, DataError
from seqloom.runs.prediction import Prediction
from seqloom.runs.target_language import TargetLanguages

MANY = TargetLanguages("runs/many", ("<2de>", "<2fr>", "<U>"), tag_is_in_source=True)
ONE = TargetLanguages("runs/one", (), tag_is_in_source=True)


def test_a_language_is_put_before_every_text_that_is_not_blank() -> None:
    assert MANY.path("fr") == MANY.path("<2fr>") == ["<2fr>"]
    assert MANY.add_tag(["A dog.", "", " \t"], "<2fr>") == ["<2fr> A dog.", "", " \t"]


def test_the_way_to_a_language_may_lead_through_another() -> None:
    assert MANY.path(["de", "fr"]) == ["<2de>", "<2fr>"]


def test_any_tag_that_training_shows_can_be_asked_for() -> None:
    assert MANY.path("<U>") == ["<U>"]


def test_a_language_that_was_not_learned_is_answered_with_those_that_were() -> None:
    with pytest.raises(ConfigError, match=r"cannot translate to 'it'; It has learned: de, fr, <U>"):
        MANY.path("it")
    with pytest.raises(ConfigError, match=r"did you mean 'fr'\?"):
        MANY.path("fra")


def test_a_run_of_one_language_has_nothing_to_choose() -> None:
    assert ONE.path(None) == [None]
    assert ONE.add_tag(["A dog."], None) == ["A dog."]
    with pytest.raises(ConfigError, match="one way only, so there is nothing to choose"):
        ONE.path("de")


def test_texts_that_do_not_say_what_is_wanted_are_named() -> None:
    assert MANY.add_tag(["<2de> A dog.", ""], None) == ["<2de> A dog.", ""]
    with pytest.raises(DataError) as info:
        MANY.add_tag(["<2de> A dog.", "A cat.", "", "A man."], None, first=10)
    assert "nothing says which is wanted in lines 12, 14; choose" in str(info.value)
    assert "There are: de, fr, <U>" in str(info.value)
    with pytest.raises(DataError, match="which is wanted in line 1;"):
        MANY.add_tag(["A cat."], None)


def test_a_tag_and_a_choice_cannot_both_be_given() -> None:
    with pytest.raises(
        DataError, match=r"--to fr was asked for, but there is a tag already in line 1"
    ):
        MANY.add_tag(["<2de> A dog."], "<2fr>")


def test_alignments_count_the_words_of_the_text_as_it_was_given() -> None:
    output = Prediction("Un chien", 0.0, alignment=((0, 0), (2, 1)))
    assert MANY.without_tag(output, "<2fr>").alignment == ((1, 1),)
    assert MANY.without_tag(output, None) == output
    assert (
        TargetLanguages("run", MANY.tags, tag_is_in_source=False).without_tag(output, "<2fr>")
        == output
    )

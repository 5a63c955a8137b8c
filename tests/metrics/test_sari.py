"""SARI: added, kept and deleted words of simplified sentences."""

import pytest

from seqloom.core.errors import DataError
from seqloom.metrics.sari import sari


def test_sari_is_the_mean_f1_of_added_kept_and_deleted_ngrams() -> None:
    # Words: c was added instead of d; a was kept and b deleted as in the reference. Pairs: "a c"
    # was added instead of "a d", none was kept, "a b" was deleted as in the reference. There are no
    # longer n-grams.
    score = sari(["a b"], ["a c"], [["a d"]])
    assert score.value == pytest.approx(100 * (0 + 1 + 1 + 0 + 0 + 1) / 12)
    assert score.signature == "corpus|del:f1|n:1-4|case:lc|tok:13a"


def test_unchanged_source_scores_low_and_the_reference_scores_100() -> None:
    source = "He subsequently went back to the old house on the hill."
    reference = "Later he went back to the old house on a hill."
    unchanged, correct = (
        sari([source], [output], [[reference]]).value for output in (source, reference)
    )
    assert unchanged < 40
    assert correct == pytest.approx(100)


def test_word_that_more_references_keep_counts_more() -> None:
    source, references = "a b", [["a", "a", "b"]]
    kept_by_two, kept_by_one = (sari([source], [output], references).value for output in ("a", "b"))
    assert kept_by_two > kept_by_one


def test_error_if_there_are_not_as_many_sources_as_hypotheses() -> None:
    with pytest.raises(DataError, match="there are 2 sources and 1 hypotheses; give one"):
        sari(["a", "b"], ["a"], [["a"]])

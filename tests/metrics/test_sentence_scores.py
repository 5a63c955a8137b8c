"""Scores of single sentences, and the words in which two sentences differ."""

from hypothesis import given
from hypothesis import strategies as st
from sacrebleu import sentence_bleu

from seqloom.metrics.bleu import chrf
from seqloom.metrics.sentence_scores import (
    diff_words,
    sentence_bleu_scores,
    sentence_chrf,
    sentence_chrf_scores,
)

texts = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8).map(" ".join)


@given(texts, texts)
def test_diff_contains_all_words_of_both_texts(ours: str, theirs: str) -> None:
    spans = diff_words(ours, theirs)
    assert [word for span in spans for word in span.ours] == ours.split()
    assert [word for span in spans for word in span.theirs] == theirs.split()


@given(texts)
def test_diff_of_equal_texts_has_only_equal_spans(text: str) -> None:
    assert all(span.same for span in diff_words(text, text))


def test_diff_finds_changed_and_removed_words() -> None:
    spans = diff_words("he saw a red car", "he sold a car")
    changes = [(span.ours, span.theirs) for span in spans if not span.same]
    assert changes == [(("saw",), ("sold",)), (("red",), ())]


def test_sentence_chrf_is_the_chrf_of_a_corpus_of_one_sentence() -> None:
    output, references = "a red car", ("the red car", "one red car")
    assert sentence_chrf(output, references) == chrf([output], [references]).value


@given(st.lists(texts, min_size=1, max_size=4), st.lists(texts, min_size=1, max_size=4))
def test_outputs_with_shared_references_are_scored_like_single_sentences(
    outputs: list[str], references: list[str]
) -> None:
    expected_bleu = [
        sentence_bleu(output, references, use_effective_order=True).score for output in outputs
    ]
    expected_chrf = [sentence_chrf(output, references) for output in outputs]
    assert sentence_bleu_scores(outputs, references) == expected_bleu
    assert sentence_chrf_scores(outputs, references) == expected_chrf

"""Single sentences: their scores, and the words in which they differ."""

from hypothesis import given
from hypothesis import strategies as st
from sacrebleu import sentence_bleu

from seqloom.metrics.bleu import chrf
from seqloom.metrics.sentences import each_bleu, each_chrf, sentence_chrf, word_difference

texts = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8).map(" ".join)


@given(texts, texts)
def test_a_difference_leaves_out_no_word_of_either_text(ours: str, theirs: str) -> None:
    parts = word_difference(ours, theirs)
    assert [word for part in parts for word in part.ours] == ours.split()
    assert [word for part in parts for word in part.theirs] == theirs.split()


@given(texts)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert all(part.same for part in word_difference(text, text))


def test_the_words_that_differ_are_found() -> None:
    parts = word_difference("he saw a red car", "he sold a car")
    changes = [(part.ours, part.theirs) for part in parts if not part.same]
    assert changes == [(("saw",), ("sold",)), (("red",), ())]


def test_the_chrf_of_one_sentence_is_that_of_a_corpus_of_one() -> None:
    output, references = "a red car", ("the red car", "one red car")
    assert sentence_chrf(output, references) == chrf([output], [references]).value


@given(st.lists(texts, min_size=1, max_size=4), st.lists(texts, min_size=1, max_size=4))
def test_several_outputs_of_one_source_score_as_each_of_them_alone(
    outputs: list[str], references: list[str]
) -> None:
    alone = [sentence_bleu(one, references, use_effective_order=True).score for one in outputs]
    assert each_bleu(outputs, references) == alone
    assert each_chrf(outputs, references) == [sentence_chrf(one, references) for one in outputs]

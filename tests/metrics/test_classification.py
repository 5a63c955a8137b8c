"""Accuracy and macro F1 of labels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.metrics.classification import accuracy, macro_f1

label_pairs = st.lists(st.tuples(*[st.sampled_from("abc")] * 2), min_size=1, max_size=6)


@given(st.lists(label_pairs, min_size=1, max_size=4))
def test_macro_f1_is_the_mean_f1_of_all_labels(sentences: list[list[tuple[str, str]]]) -> None:
    pairs = [pair for sentence in sentences for pair in sentence]
    f1_scores = []
    for label in {label for pair in pairs for label in pair}:
        correct = sum(pair == (label, label) for pair in pairs)
        predicted = sum(output == label for output, _ in pairs)
        expected = sum(reference == label for _, reference in pairs)
        precision = correct / predicted if predicted else 0
        recall = correct / expected if expected else 0
        total = precision + recall
        f1_scores.append(2 * precision * recall / total if total else 0)
    outputs = [" ".join(output for output, _ in sentence) for sentence in sentences]
    references = [[" ".join(reference for _, reference in sentence)] for sentence in sentences]
    mean = 100 * sum(f1_scores) / len(f1_scores)
    assert macro_f1(outputs, references).value == pytest.approx(mean)


def test_rare_label_counts_as_much_as_a_frequent_one_in_macro_f1() -> None:
    outputs, references = ["l l l l l l l l l l"], [["U l l l l l l l l l"]]
    assert accuracy(outputs, references).value == 90
    assert macro_f1(outputs, references).value == pytest.approx(100 * (0 + 18 / 19) / 2)


def test_additional_and_missing_labels_are_wrong() -> None:
    assert accuracy(["a b"], [["a"]]).value == 50
    assert macro_f1(["a b"], [["a"]]).value == 50
    assert macro_f1([""], [[""]]).value == 100

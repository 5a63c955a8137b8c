"""How labels are scored, and that every score a recipe can name can be computed."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.names import ScoreName
from seqloom.metrics.build import build_metric
from seqloom.metrics.labels import accuracy, macro_f1

rows = st.lists(st.tuples(*[st.sampled_from("abc")] * 2), min_size=1, max_size=6)


@pytest.mark.parametrize("name", get_args(ScoreName))
@pytest.mark.parametrize("lowercase", [False, True])
def test_a_score_is_called_in_journals_what_recipes_call_it(
    name: ScoreName, lowercase: bool
) -> None:
    score = build_metric(name, lowercase)(["a b c d e"], [["a b c d e"]])
    assert score.key == name
    assert score.value == pytest.approx(100 if score.higher_is_better else 0)


@pytest.mark.parametrize("name", get_args(ScoreName))
def test_where_text_is_folded_references_are(name: ScoreName) -> None:
    score = build_metric(name, lowercase=True)(["a b c d e"], [["A b C d E"]])
    assert score.value == pytest.approx(100 if score.higher_is_better else 0)


@given(st.lists(rows, min_size=1, max_size=4))
def test_macro_f1_is_the_mean_of_what_precision_and_recall_say_of_each_label(
    sentences: list[list[tuple[str, str]]],
) -> None:
    pairs = [pair for row in sentences for pair in row]
    each = []
    for label in {one for pair in pairs for one in pair}:
        right = sum(pair == (label, label) for pair in pairs)
        put_out = sum(found == label for found, _ in pairs)
        wanted = sum(one == label for _, one in pairs)
        precision, recall = right / put_out if put_out else 0, right / wanted if wanted else 0
        total = precision + recall
        each.append(2 * precision * recall / total if total else 0)
    outputs = [" ".join(found for found, _ in row) for row in sentences]
    references = [[" ".join(one for _, one in row)] for row in sentences]
    assert macro_f1(outputs, references).value == pytest.approx(100 * sum(each) / len(each))


def test_a_label_that_is_never_found_counts_however_rare_it_is() -> None:
    outputs, references = ["l l l l l l l l l l"], [["U l l l l l l l l l"]]
    assert accuracy(outputs, references).value == 90
    assert macro_f1(outputs, references).value == pytest.approx(100 * (0 + 18 / 19) / 2)


def test_labels_too_many_or_too_few_are_wrong() -> None:
    assert accuracy(["a b"], [["a"]]).value == 50
    assert macro_f1(["a b"], [["a"]]).value == 50
    assert macro_f1([""], [[""]]).value == 100

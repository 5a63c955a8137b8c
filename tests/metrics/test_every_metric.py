"""Claims that hold for every corpus metric."""

from collections.abc import Callable

import pytest
from metric_examples import OUTPUTS, REFERENCES, single_references

from seqloom.core.errors import DataError
from seqloom.metrics.bleu import bleu, chrf, mean_sentence_bleu, ter
from seqloom.metrics.error_rates import exact_match, token_accuracy
from seqloom.metrics.score import References, Score

CorpusMetric = Callable[[list[str], References], Score]
METRICS: list[CorpusMetric] = [bleu, chrf, ter, mean_sentence_bleu, exact_match, token_accuracy]
each_metric = pytest.mark.parametrize("metric", METRICS)


@each_metric
def test_references_have_the_best_score_and_other_outputs_a_worse_one(metric: CorpusMetric) -> None:
    best = metric(REFERENCES, single_references(REFERENCES))
    worse = metric(OUTPUTS, single_references(REFERENCES))
    if best.higher_is_better:
        assert best.value == pytest.approx(100)
        assert worse.value < best.value
    else:
        assert best.value == 0
        assert worse.value > best.value


@each_metric
def test_some_sentences_may_have_more_references_than_others(metric: CorpusMetric) -> None:
    ragged = [[REFERENCES[0]], [REFERENCES[1], OUTPUTS[1]], ["so", "what", REFERENCES[2]]]
    with_more = metric(OUTPUTS, ragged)
    with_one = metric(OUTPUTS, single_references(REFERENCES))
    assert (with_more.value > with_one.value) == with_more.higher_is_better
    all_match = [[REFERENCES[0], OUTPUTS[0]], *ragged[1:]]
    best = 100 if with_more.higher_is_better else 0
    assert metric(OUTPUTS, all_match).value == pytest.approx(best)


@each_metric
def test_score_does_not_depend_on_the_order_of_sentences(metric: CorpusMetric) -> None:
    references = [[REFERENCES[0]], [REFERENCES[1], "Tom plays"], [REFERENCES[2]]]
    reversed_score = metric(OUTPUTS[::-1], references[::-1])
    assert reversed_score.value == pytest.approx(metric(OUTPUTS, references).value)


@each_metric
def test_missing_hypotheses_and_references_are_all_reported(metric: CorpusMetric) -> None:
    with pytest.raises(DataError, match="there are no hypotheses"):
        metric([], [])
    with pytest.raises(DataError) as caught:
        metric(["a", "b"], [["a"], *[[]] * 7])
    assert "2 hypotheses and references for 8 sentences" in str(caught.value)
    assert "no reference for sentence 2, 3, 4, 5, 6 and 2 more" in str(caught.value)
    with pytest.raises(DataError, match=r"no reference for sentence 2$"):
        metric(["a", "b"], [["a"], []])

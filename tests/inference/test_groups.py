"""Scores of each group of a split, and their mean."""

from seqloom.inference.evaluation.groups import GroupScores, mean_scores
from seqloom.metrics.score import Score


def test_mean_weights_every_group_equally() -> None:
    def scores(bleu: float, chrf: float) -> tuple[Score, ...]:
        return (Score("BLEU", bleu, "signature", True), Score("chrF", chrf, None, True))

    groups = [GroupScores("en-de", 1, scores(10, 30)), GroupScores("en-fr", 99, scores(20, 50))]
    assert mean_scores(groups) == list(scores(15, 40))
    assert mean_scores([]) == []

"""Minimum-Bayes-risk decoding chooses the candidate that the others agree with."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from seqloom.config.schema.decoding import BeamConfig, MinimumBayesRiskConfig, SampleConfig
from seqloom.core.errors import ConfigError
from seqloom.runs.mbr import rank_by_expected_utility
from seqloom.runs.options import PredictionOptions
from seqloom.runs.prediction import Prediction
from seqloom.runs.run import Run, load
from seqloom.training.loop import train
from tiny_runs import recipe

TEXTS = ["abcd", "", "b", "  ", "dd", "abc", "bcda", "a"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder: Path = tmp_path_factory.mktemp("risk") / "run"
    train(recipe("training.steps=40", "training.evaluate_every=40"), folder)
    return load(folder)


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
@given(texts=st.lists(st.text("ab ", min_size=1, max_size=8), min_size=1, max_size=6))
@settings(max_examples=50, deadline=None)
def test_no_candidate_has_a_higher_mean_utility(texts: list[str], utility: str) -> None:
    config = MinimumBayesRiskConfig.model_validate({"utility": utility})
    metric = CHRF() if utility == "chrf" else BLEU(effective_order=True)

    def mean(place: int) -> float:
        others = [*texts[:place], *texts[place + 1 :]]
        scores = [metric.sentence_score(texts[place], [other]).score for other in others]
        return float(sum(scores) / len(scores)) if scores else 100.0

    found = rank_by_expected_utility([Prediction(text, 0.0) for text in texts], config)
    values = {texts[place]: mean(place) for place in range(len(texts))}
    assert found[0].score == pytest.approx(max(values.values()), abs=1e-6)
    assert [one.score for one in found] == pytest.approx([values[one.text] for one in found])
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert {one.text for one in found} == set(texts)
    assert len(found) == len(values)  # each text once


def test_one_candidate_is_the_choice(run: Run) -> None:
    alone = MinimumBayesRiskConfig(samples=0, beam=1)
    expected = [one.text for one in run.translate(TEXTS, decoding=BeamConfig(width=1))]
    assert [one.text for one in run.translate(TEXTS, decoding=alone)] == expected
    drawn = MinimumBayesRiskConfig(samples=1, seed=3, epsilon=0.0)
    expected = [one.text for one in run.translate(TEXTS, decoding=SampleConfig(seed=3))]
    assert [one.text for one in run.translate(TEXTS, decoding=drawn)] == expected


def test_the_candidates_are_those_of_the_searches_and_the_choice_is_made_among_them(
    run: Run,
) -> None:
    config = MinimumBayesRiskConfig(samples=6, beam=3, seed=5, temperature=1.5, epsilon=0.0)
    drawing = SampleConfig(samples=6, seed=5, temperature=1.5)
    drawn = run.predict(TEXTS, PredictionOptions(6), decoding=drawing)
    found = run.predict(TEXTS, PredictionOptions(3), decoding=BeamConfig(width=3))
    chosen = run.translate(TEXTS, decoding=config)
    varied = 0
    for text, output, some, others in zip(TEXTS, chosen, drawn, found, strict=True):
        if not text.strip():
            assert output.text == ""
            continue
        candidates = [*others, *some]
        best = rank_by_expected_utility(candidates, config)[0]
        assert output.text == best.text
        assert output.score == pytest.approx(best.score)
        assert output.log_probabilities  # all else is as the search found it
        varied += len({one.text for one in candidates}) > 1
    assert varied


def test_order_is_kept_and_portions_change_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = MinimumBayesRiskConfig(samples=4, beam=2)
    whole = [one.text for one in run.translate(TEXTS, decoding=config)]
    monkeypatch.setattr("seqloom.runs.batching.BATCH_TOKENS", 7)
    assert [one.text for one in run.translate(TEXTS, decoding=config)] == whole
    rest = run.predict(TEXTS[2:], PredictionOptions(first=2), decoding=config)
    assert [one[0].text for one in rest] == whole[2:]


def test_a_run_is_evaluated_and_lists_its_best_by_it(run: Run) -> None:
    config = MinimumBayesRiskConfig(samples=4, beam=4)
    report = run.evaluate("dev", decoding=config)
    assert len(report.outputs) == report.sentences
    (outputs,) = run.translate_n_best(["abcd"], 2, decoding=config)
    assert outputs[0].score >= outputs[1].score
    with pytest.raises(ConfigError, match="9 outputs a text need as many candidates, not 8"):
        run.translate_n_best(["a"], 9, decoding=config)
    assert run.translate(["abcd"], beam=2, decoding=config)[0].score < 0  # a beam's own score

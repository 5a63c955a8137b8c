"""Minimum Bayes risk decoding chooses the candidate that is most similar to all others."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from seqloom.config.schema.decoding import BeamConfig, MinimumBayesRiskConfig, SampleConfig
from seqloom.core.errors import ConfigError
from seqloom.inference.mbr import rank_by_expected_utility
from seqloom.inference.options import PredictionOptions
from seqloom.inference.run import Run, load
from seqloom.training.loop import train
from support.tiny_runs import tiny_config

TEXTS = ["abcd", "", "b", "  ", "dd", "abc", "bcda", "a"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder: Path = tmp_path_factory.mktemp("mbr") / "run"
    train(tiny_config("training.steps=40", "training.evaluate_every=40"), folder)
    return load(folder)


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
@given(texts=st.lists(st.text("ab ", min_size=1, max_size=8), min_size=1, max_size=6))
@settings(max_examples=50, deadline=None)
def test_candidates_are_ranked_by_mean_utility(texts: list[str], utility: str) -> None:
    config = MinimumBayesRiskConfig.model_validate({"utility": utility})
    metric = CHRF() if utility == "chrf" else BLEU(effective_order=True)

    def mean_utility(index: int) -> float:
        others = [*texts[:index], *texts[index + 1 :]]
        scores = [metric.sentence_score(texts[index], [other]).score for other in others]
        return float(sum(scores) / len(scores)) if scores else 100.0

    ranked = rank_by_expected_utility(texts, config)
    expected = {text: mean_utility(index) for index, text in enumerate(texts)}
    scores = [score for _, score in ranked]
    assert scores[0] == pytest.approx(max(expected.values()), abs=1e-6)
    assert scores == pytest.approx([expected[texts[index]] for index, _ in ranked])
    assert scores == sorted(scores, reverse=True)
    assert {texts[index] for index, _ in ranked} == set(texts)
    assert len(ranked) == len(expected)  # each distinct text once


@pytest.mark.slow
def test_single_candidate_is_the_output_of_its_search(run: Run) -> None:
    beam = MinimumBayesRiskConfig(samples=0, beam=1)
    expected = [output.text for output in run.translate(TEXTS, decoding=BeamConfig(width=1))]
    assert [output.text for output in run.translate(TEXTS, decoding=beam)] == expected
    sample = MinimumBayesRiskConfig(samples=1, seed=3, epsilon=0.0)
    expected = [output.text for output in run.translate(TEXTS, decoding=SampleConfig(seed=3))]
    assert [output.text for output in run.translate(TEXTS, decoding=sample)] == expected


@pytest.mark.slow
def test_candidates_are_the_outputs_of_beam_search_and_sampling(run: Run) -> None:
    config = MinimumBayesRiskConfig(samples=6, beam=3, seed=5, temperature=1.5, epsilon=0.0)
    sampling = SampleConfig(samples=6, seed=5, temperature=1.5)
    samples = run.predict(TEXTS, PredictionOptions(6), decoding=sampling)
    beams = run.predict(TEXTS, PredictionOptions(3), decoding=BeamConfig(width=3))
    chosen = run.translate(TEXTS, decoding=config)
    varied = 0
    for text, output, sampled, found in zip(TEXTS, chosen, samples, beams, strict=True):
        if not text.strip():
            assert output.text == ""
            continue
        candidates = [*found, *sampled]
        best, score = rank_by_expected_utility([each.text for each in candidates], config)[0]
        assert output.text == candidates[best].text
        assert output.score == pytest.approx(score)
        assert output.log_probabilities  # kept from the search
        varied += len({candidate.text for candidate in candidates}) > 1
    assert varied


@pytest.mark.slow
def test_batches_and_chunks_do_not_change_outputs(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = MinimumBayesRiskConfig(samples=4, beam=2)
    expected = [output.text for output in run.translate(TEXTS, decoding=config)]
    monkeypatch.setattr("seqloom.inference.batching.CPU_BATCH_TOKENS", 7)
    assert [output.text for output in run.translate(TEXTS, decoding=config)] == expected
    rest = run.predict(TEXTS[2:], PredictionOptions(first=2), decoding=config)
    assert [outputs[0].text for outputs in rest] == expected[2:]


@pytest.mark.slow
def test_evaluation_and_n_best_lists_work_with_mbr(run: Run) -> None:
    config = MinimumBayesRiskConfig(samples=4, beam=4)
    report = run.evaluate("dev", decoding=config)
    assert len(report.outputs) == report.sentences
    (outputs,) = run.translate_n_best(["abcd"], 2, decoding=config)
    assert outputs[0].score >= outputs[1].score
    with pytest.raises(
        ConfigError, match=r"9 outputs per text need 9 candidates or more, but .* is 8"
    ):
        run.translate_n_best(["a"], 9, decoding=config)
    # `beam` replaces MBR by beam search, whose score is a log-probability.
    assert run.translate(["abcd"], beam=2, decoding=config)[0].score < 0

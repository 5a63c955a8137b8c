"""Ensembles of run folders."""

import json
import math
from pathlib import Path

import pytest

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig, SampleConfig
from seqloom.core.errors import ConfigError, NotFoundError
from seqloom.inference.run import Run, load
from seqloom.training.loop import train
from support.tiny_runs import LANGUAGE_MODEL, TRANSFORMER, tiny_config

pytestmark = pytest.mark.slow

TEXTS = ["abcd", "", "b", "  ", "dd", "abc", "bcda", "a"]
SHORT = ("training.steps=6", "training.evaluate_every=6")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ensembles")
    train(tiny_config(*SHORT), folder / "recurrent")
    train(tiny_config(*SHORT, *TRANSFORMER, "training.seed=2"), folder / "transformer")
    train(tiny_config(*SHORT, *LANGUAGE_MODEL), folder / "language-model")
    data = "{kind='synthetic', task='reverse', max_length=4, symbols=5, examples=40}"
    train(tiny_config(*SHORT, f"data.train={data}"), folder / "other-vocabulary")
    return folder


@pytest.fixture(scope="module")
def ensemble(folder: Path) -> Run:
    return load([folder / "recurrent", str(folder / "transformer")])


def test_list_of_one_folder_is_a_single_run(folder: Path) -> None:
    single, listed = load(folder / "recurrent"), load([folder / "recurrent"])
    assert listed.name == single.name == str(folder / "recurrent")
    assert listed.partners == ()
    assert [output.score for output in listed.translate(TEXTS)] == [
        output.score for output in single.translate(TEXTS)
    ]


def test_probabilities_are_averaged_token_by_token(folder: Path, ensemble: Run) -> None:
    (scored,) = ensemble.score(["abc"], ["cba"])
    members = [
        load(folder / name).score(["abc"], ["cba"])[0] for name in ("recurrent", "transformer")
    ]
    tokens = zip(*(member.log_probabilities for member in members), strict=True)
    expected = [math.log(sum(math.exp(log_p) for log_p in pair) / 2) for pair in tokens]
    assert scored.log_probabilities == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "decoding",
    [GreedyConfig(), BeamConfig(width=3), SampleConfig(seed=4, samples=2)],
    ids=lambda decoding: decoding.kind,
)
def test_outputs_do_not_depend_on_the_batch(
    ensemble: Run, decoding: DecodingConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ensemble.translate(TEXTS, decoding=decoding)
    assert [not output.text for output in expected if not output.pieces] == [True, True]
    monkeypatch.setattr("seqloom.inference.batching.CPU_BATCH_TOKENS", 7)
    outputs = ensemble.translate(TEXTS, decoding=decoding)
    assert [output.text for output in expected] == [output.text for output in outputs]
    assert [output.score for output in expected] == pytest.approx(
        [output.score for output in outputs], abs=1e-5
    )


def test_attention_of_an_ensemble_sums_to_1(ensemble: Run) -> None:
    (output,) = ensemble.translate(["abcd"])
    assert output.attention is not None
    assert output.attention.shape == (len(output.pieces), 5)
    assert output.attention.sum(1).tolist() == pytest.approx([1.0] * len(output.pieces))


def test_report_of_an_ensemble_has_its_own_folder(folder: Path, ensemble: Run) -> None:
    single_report = load(folder / "recurrent").evaluate("dev")
    ensemble_report = ensemble.evaluate("dev")
    assert ensemble_report.run == f"{folder / 'recurrent'} + {folder / 'transformer'}"
    single, joint = (
        {score.key: score.value for score in report.scores}
        for report in (single_report, ensemble_report)
    )
    assert single["perplexity"] != joint["perplexity"]
    path = ensemble_report.save(folder / "recurrent")
    assert path.name == "dev-ensemble"
    assert single_report.save(folder / "recurrent") != path
    assert json.loads((path / "report.json").read_text(encoding="utf-8"))["members"] == 2
    assert load(folder / "recurrent").folder == folder / "recurrent"  # intact with both reports


def test_language_models_form_an_ensemble(folder: Path) -> None:
    model = folder / "language-model"
    sampling = SampleConfig(seed=1, samples=2)
    (outputs,) = load([model, model]).complete(["ab"], decoding=sampling, n_best=2)
    (expected,) = load(model).complete(["ab"], decoding=sampling, n_best=2)
    assert [output.text for output in outputs] == [output.text for output in expected]


def test_incompatible_runs_are_an_error_that_lists_every_problem(folder: Path) -> None:
    names = ("recurrent", "transformer", "other-vocabulary", "language-model")
    with pytest.raises(ConfigError) as caught:
        load([folder / name for name in names])
    lines = str(caught.value).splitlines()
    other = folder / "other-vocabulary"
    assert lines[0] == "these runs cannot form an ensemble:"
    assert lines[1].startswith(f"  {other}: its source tokenizer (9 tokens) differs from ")
    assert lines[2].startswith(f"  {other}: its target tokenizer (9 tokens) differs from ")
    assert lines[3].startswith(f"  {folder / 'language-model'}: task 'language-model', but ")
    assert "with the same [text] and training data" in lines[4]


def test_missing_folders_are_an_error(folder: Path) -> None:
    with pytest.raises(ConfigError, match="no run folder given"):
        load([])
    with pytest.raises(NotFoundError, match="nowhere: this run folder does not exist"):
        load([folder / "recurrent", folder / "nowhere"])

"""Several runs as one: what may vote together, and that all uses of a run know of it."""

import json
import math
from pathlib import Path

import pytest

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig, SampleConfig
from seqloom.core.errors import ConfigError, NotFoundError
from seqloom.runs.run import Run, load
from seqloom.training.loop import train
from tiny_runs import SPEAKER, TRANSFORMER, recipe

TEXTS = ["abcd", "", "b", "  ", "dd", "abc", "bcda", "a"]
SHORT = ("training.steps=6", "training.evaluate_every=6")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ensembles")
    train(recipe(*SHORT), place / "recurrent")
    train(recipe(*SHORT, *TRANSFORMER, "training.seed=2"), place / "transformer")
    train(recipe(*SHORT, *SPEAKER), place / "speaker")
    other = "{kind='synthetic', task='reverse', max_length=4, symbols=5, examples=40}"
    train(recipe(*SHORT, f"data.train={other}"), place / "foreign")
    return place


@pytest.fixture(scope="module")
def both(folder: Path) -> Run:
    return load([folder / "recurrent", str(folder / "transformer")])


def test_a_list_of_one_is_that_run(folder: Path) -> None:
    alone, listed = load(folder / "recurrent"), load([folder / "recurrent"])
    assert listed.name == alone.name == str(folder / "recurrent")
    assert listed.partners == ()
    assert [one.score for one in listed.translate(TEXTS)] == [
        one.score for one in alone.translate(TEXTS)
    ]


def test_scores_are_means_of_probabilities_token_by_token(folder: Path, both: Run) -> None:
    (together,) = both.score(["abc"], ["cba"])
    each = [load(folder / name).score(["abc"], ["cba"])[0] for name in ("recurrent", "transformer")]
    steps = zip(*(one.log_probabilities for one in each), strict=True)
    expected = [math.log(sum(math.exp(step) for step in pair) / 2) for pair in steps]
    assert together.log_probabilities == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "decoding",
    [GreedyConfig(), BeamConfig(width=3), SampleConfig(seed=4, samples=2)],
    ids=lambda decoding: decoding.kind,
)
def test_outputs_do_not_depend_on_what_else_is_in_a_batch(
    both: Run, decoding: DecodingConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = both.translate(TEXTS, decoding=decoding)
    assert [not one.text for one in whole if not one.pieces] == [True, True]
    monkeypatch.setattr("seqloom.runs.batching.BATCH_TOKENS", 7)
    cut = both.translate(TEXTS, decoding=decoding)
    assert [one.text for one in whole] == [one.text for one in cut]
    assert [one.score for one in whole] == pytest.approx([one.score for one in cut], abs=1e-5)


def test_attention_is_there_and_sums_to_one(both: Run) -> None:
    (output,) = both.translate(["abcd"])
    assert output.attention is not None
    assert output.attention.shape == (len(output.pieces), 5)
    assert output.attention.sum(1).tolist() == pytest.approx([1.0] * len(output.pieces))


def test_an_ensemble_is_evaluated_and_its_report_lies_apart(folder: Path, both: Run) -> None:
    alone = load(folder / "recurrent").evaluate("dev")
    together = both.evaluate("dev")
    assert together.run == f"{folder / 'recurrent'} + {folder / 'transformer'}"
    values = [{score.key: score.value for score in one.scores} for one in (alone, together)]
    assert values[0]["perplexity"] != values[1]["perplexity"]
    place = together.save(folder / "recurrent")
    assert place.name == "dev-ensemble"
    assert alone.save(folder / "recurrent") != place
    assert json.loads((place / "report.json").read_text(encoding="utf-8"))["members"] == 2
    load(folder / "recurrent")  # which is whole with both beside it


def test_language_models_complete_together(folder: Path) -> None:
    run = load([folder / "speaker", folder / "speaker"])
    (outputs,) = run.complete(["ab"], decoding=SampleConfig(seed=1, samples=2), n_best=2)
    alone = load(folder / "speaker").complete(
        ["ab"], decoding=SampleConfig(seed=1, samples=2), n_best=2
    )
    assert [one.text for one in outputs] == [one.text for one in alone[0]]


def test_runs_that_cannot_vote_together_are_named(folder: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load([folder / "recurrent", folder / "transformer", folder / "foreign", folder / "speaker"])
    lines = str(caught.value).splitlines()
    assert lines[0] == "these runs cannot be one ensemble:"
    assert lines[1].startswith(f"  {folder / 'foreign'}: its source tokenizer (9 tokens) is not ")
    assert lines[2].startswith(f"  {folder / 'foreign'}: its target tokenizer (9 tokens) is not ")
    assert lines[3].startswith(f"  {folder / 'speaker'}: is for language-model, but ")
    assert "with the same [text] and training data" in lines[4]
    with pytest.raises(ConfigError, match="no run folder was given"):
        load([])
    with pytest.raises(NotFoundError, match="nowhere: there is no such run folder"):
        load([folder / "recurrent", folder / "nowhere"])

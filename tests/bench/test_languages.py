"""What bench/languages would train can be read, and its page is made from what it writes."""

import json
from pathlib import Path

import pytest

from bench.languages import table
from bench.languages.experiments import EXPERIMENTS, Experiment, config_of
from bench.languages.measure import Job, in_language, measure
from seqloom.config.schema.corpora import LanguagesConfig
from seqloom.config.schema.tags import expand_corpora
from toy_languages import WORDS, write_languages

TINY = [
    *(f"model.{side}={{kind='transformer', width=8, layers=2, feedforward=8, attention={{heads=2}}}}"
      for side in ("encoder", "decoder")),
    "training.steps=2",
    "training.schedule={kind='constant'}",
    "training.evaluate_every=2",
    "training.evaluate_examples=4",
    "training.compile=false",
    "text.tokenizer.size=110",
    "decoding.max_length=5",
]  # fmt: skip
every_experiment = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)


@every_experiment
def test_every_experiment_is_a_recipe_on_its_pairs(experiment: Experiment, tmp_path: Path) -> None:
    config = config_of(experiment, tmp_path, tmp_path / "few", [])
    names = [getattr(corpus, "name", None) for corpus in expand_corpora(config.data.train)]
    assert sorted(map(str, names)) == sorted(experiment.trained)
    (test,) = config.data.test
    assert isinstance(test, LanguagesConfig)
    assert test.pairs == tuple(experiment.tests)


def test_no_two_experiments_are_the_same(tmp_path: Path) -> None:
    configs = [config_of(one, tmp_path, tmp_path / "few", []) for one in EXPERIMENTS]
    assert all(one != other for n, one in enumerate(configs) for other in configs[:n])


def test_a_result_holds_every_pair_in_every_way_and_becomes_a_page(tmp_path: Path) -> None:
    folder = write_languages(tmp_path / "data", ["train", "val", "test_2016_flickr"], lines=60)
    for name in ("centred", "few-and-french"):
        measure(Job(name, 1, tmp_path, tmp_path / "work", folder, tuple(TINY)))
    results = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("*.json"))]
    assert set(results[0]["pairs"]["de-fr"]) == {"directly", "through English"}
    assert set(results[0]["pairs"]["en-de"]) == {"directly"}
    assert set(results[1]["pairs"]) == {"en-de"}
    assert not list((tmp_path / "work").iterdir())
    page = table.page(results)
    assert "| one pair alone: de→fr, fr→de | – | – |" in page
    assert page.count("never meet; through English |") == 1
    assert "and all en→fr, temperature 5 | " in page


def test_the_language_of_an_output_is_the_one_that_knows_most_of_its_words() -> None:
    words = {language: set(known) for language, known in WORDS.items()}
    outputs = ["hund läuft hier", "dog läuft", "dog runs here", "the"]
    assert in_language(outputs, "de", words) == 75.0
    assert in_language(["dog runs"], "de", words) == 0.0

"""The experiments of the multilingual benchmark, their results and the page."""

import json
from pathlib import Path

import pytest

from bench.languages.experiments import EXPERIMENTS, Experiment, config_of
from bench.languages.measure import Job, measure, share_in_language
from bench.languages.page import page
from seqloom.config.schema.corpora import LanguagesConfig
from seqloom.config.schema.tags import expand_corpora
from support.toy_languages import WORDS, write_languages

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


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_an_experiment_trains_and_tests_its_pairs(experiment: Experiment, tmp_path: Path) -> None:
    config = config_of(experiment, tmp_path, tmp_path / "small", [])
    names = [getattr(corpus, "name", None) for corpus in expand_corpora(config.data.train)]
    assert sorted(map(str, names)) == sorted(experiment.training_pairs)
    (test,) = config.data.test
    assert isinstance(test, LanguagesConfig)
    assert test.pairs == tuple(experiment.tests)


def test_all_experiments_differ(tmp_path: Path) -> None:
    configs = [
        config_of(experiment, tmp_path, tmp_path / "small", []) for experiment in EXPERIMENTS
    ]
    assert all(
        config != earlier for index, config in enumerate(configs) for earlier in configs[:index]
    )


@pytest.mark.slow
def test_a_result_has_all_pairs_and_routes_and_appears_on_the_page(tmp_path: Path) -> None:
    folder = write_languages(tmp_path / "data", ["train", "val", "test_2016_flickr"], lines=60)
    for name in ("centred", "few-and-french"):
        measure(Job(name, 1, tmp_path, tmp_path / "work", folder, tuple(TINY)))
    results = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("*.json"))]
    assert set(results[0]["pairs"]["de-fr"]) == {"directly", "through English"}
    assert set(results[0]["pairs"]["en-de"]) == {"directly"}
    assert set(results[1]["pairs"]) == {"en-de"}
    assert not list((tmp_path / "work").iterdir())
    text = page(results)
    assert "| bilingual models: de→fr, fr→de | – | – |" in text
    assert text.count("no German–French data; through English |") == 1
    assert "and all en→fr, temperature 5 | " in text


def test_an_output_is_in_the_language_whose_vocabulary_has_most_of_its_words() -> None:
    vocabularies = {language: set(words) for language, words in WORDS.items()}
    outputs = ["hund läuft hier", "dog läuft", "dog runs here", "the"]
    assert share_in_language(outputs, "de", vocabularies) == 75.0
    assert share_in_language(["dog runs"], "de", vocabularies) == 0.0

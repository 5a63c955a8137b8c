"""Outputs with a glossary: every search generates the required phrases."""

from collections import Counter
from copy import copy
from pathlib import Path

import pytest

import seqloom
from seqloom.config.schema.decoding import (
    BeamConfig,
    DecodingConfig,
    ExhaustiveConfig,
    GreedyConfig,
    MinimumBayesRiskConfig,
    SampleConfig,
)
from seqloom.config.schema.task import LabelsConfig
from seqloom.core.errors import ConfigError
from seqloom.inference.options import PredictionOptions
from seqloom.inference.run import Run, load
from seqloom.inference.target_language import TargetLanguages
from seqloom.inference.texts.input_reports import report_messages
from seqloom.text.glossary import Glossary, count_phrases
from support.sentence_runs import SENTENCES
from support.tiny_runs import tiny_config

pytestmark = pytest.mark.slow

SEARCHES: list[DecodingConfig] = [
    GreedyConfig(),
    BeamConfig(width=1),
    BeamConfig(width=4),
    BeamConfig(width=3, finished=1, no_repeat_ngram=2, min_length=3),
    SampleConfig(samples=3, seed=1, temperature=3.0),
    MinimumBayesRiskConfig(samples=2, beam=2),
]
GLOSSARIES: list[dict[str, str]] = [
    {"cat": "roter mann", "runs": "hund", "here": "hund"},
    {"dog": "läuft", "runs": "läuft hier", "big": "sitzt.", "sits": "katzen"},
]


@pytest.fixture(scope="module")
def run(sentence_run: Path) -> Run:
    return load(sentence_run)


@pytest.fixture(scope="module", params=["attention", "plain"])
def letters(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run for the four letters a to d, small enough for exhaustive search."""
    plain = ["model.decoder.attention={kind='none'}"]
    settings = plain if request.param == "plain" else []
    folder = tmp_path_factory.mktemp("letters") / "run"
    seqloom.train(tiny_config("training.steps=4", *settings), folder)
    return load(folder)


def expected_counts(source: str, glossary: dict[str, str]) -> Counter[str]:
    words = source.lower().replace(".", "").split()
    return Counter(target for word in words if (target := glossary.get(word)) is not None)


@pytest.mark.parametrize("decoding", SEARCHES, ids=lambda each: each.kind)
@pytest.mark.parametrize("glossary", GLOSSARIES, ids=["overlap-free", "overlapping"])
def test_every_search_generates_each_phrase_exactly_as_often_as_required(
    run: Run, decoding: DecodingConfig, glossary: dict[str, str]
) -> None:
    n_best = 2 if decoding in SEARCHES[2:] else 1
    outputs = run.translate_n_best(SENTENCES, n_best, decoding=decoding, glossary=glossary)
    for source, predictions in zip(SENTENCES, outputs, strict=True):
        expected = expected_counts(source, glossary)
        for prediction in predictions:
            assert count_phrases(prediction.text, expected) == expected, prediction.text
            assert prediction.warnings == ()


@pytest.mark.parametrize("text", ["ab", "cd"])
@pytest.mark.parametrize("decoding", [ExhaustiveConfig(max_length=5), BeamConfig(max_length=5)])
def test_exhaustive_search_and_characters_generate_the_phrase(
    letters: Run, decoding: DecodingConfig, text: str
) -> None:
    for target in ("a", "dc", "abcd"):
        [output] = letters.translate([text], decoding=decoding, glossary={text: target})
        assert count_phrases(output.text, [target]) == {target: 1}, output.text


@pytest.mark.parametrize("decoding", SEARCHES, ids=lambda each: each.kind)
def test_a_glossary_without_a_matching_phrase_changes_nothing(
    run: Run, decoding: DecodingConfig
) -> None:
    plain = run.translate(SENTENCES, decoding=decoding, attention=False)
    assert plain == run.translate(
        SENTENCES, decoding=decoding, attention=False, glossary={"bird": "vogel"}
    )


def test_an_output_that_contains_its_phrase_already_is_unchanged(run: Run) -> None:
    [plain] = run.translate([SENTENCES[0]], attention=False)
    words = plain.text.rstrip(".").split()
    phrase = next(word for word in words if words.count(word) == 1)
    glossary = {"dog": phrase}
    assert run.translate([SENTENCES[0]], attention=False, glossary=glossary) == [plain]


def test_sentences_and_copied_parts_keep_their_phrases(run: Run) -> None:
    text = "Dog runs here. See https://x.org/dog now! Big cat sits."
    [output] = run.translate([text], glossary={"dog": "katze", "sits": "läuft"})
    assert "https://x.org/dog" in output.text
    first, rest = output.text.split("https://x.org/dog")
    assert count_phrases(first, ["katze"]) == {"katze": 1}
    assert count_phrases(rest, ["läuft"]) == {"läuft": 1}


def test_a_prefix_stays_in_front_of_the_phrase(run: Run) -> None:
    [output] = run.translate([SENTENCES[0]], prefixes=["Groß"], glossary={"dog": "katze"})
    assert output.text.startswith("Groß")
    assert count_phrases(output.text, ["katze"]) == {"katze": 1}


def messages_about(run: Run, source: str, glossary: dict[str, str], **options: int) -> str:
    decoding = GreedyConfig(**options)
    [output] = run.translate([source], decoding=decoding, glossary=glossary)
    assert output.warnings
    assert len(report_messages([output], "character", "line")) >= 1
    return " ".join(output.warnings)


def test_a_phrase_that_cannot_be_forced_is_reported(run: Run) -> None:
    assert "vocabulary" in messages_about(run, "Dog runs.", {"dog": "犬 Ω"})
    long_phrase = "katze sitzt hier rot groß mann"
    limits = messages_about(run, "Dog runs.", {"dog": long_phrase}, max_length=6)
    assert "decoding.max_length" in limits
    assert "copied" in messages_about(run, "Big cat sits ΩΩ.", {"ΩΩ": "mann"})


def test_pivot_languages_and_other_tasks_are_refused(run: Run) -> None:
    options = PredictionOptions(to=["en", "fr"], glossary=Glossary.of({"a": "b"}))
    other = copy(run)
    other.languages = TargetLanguages("run", ("<2en>", "<2fr>"), tag_is_in_source=True)
    with pytest.raises(ConfigError, match="pivot languages"):
        other.predict(["a"], options)
    other.config = run.config.model_copy(update={"task": LabelsConfig()})
    with pytest.raises(ConfigError, match="needs a translation run, and this run is for labels"):
        other.predict(["a"], options)

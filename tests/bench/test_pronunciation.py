"""The pronunciation benchmark: tagged data, results and the page."""

import gzip
from pathlib import Path

import pytest

from bench.pronunciation.languages import LANGUAGES, file_name, write_tagged
from bench.pronunciation.measure import ALL, Job, config_of, measure
from bench.pronunciation.page import page

RESULTS = Path(__file__).parents[2] / "docs" / "results"
TINY = (
    *("model.encoder.width=8", "model.decoder.width=8", "training.steps=3"),
    *("training.evaluate_every=3", "training.schedule.warmup=1", "training.batch_tokens=256"),
    *("training.evaluate_examples=4", "decoding.kind=greedy", "decoding.max_length=4"),
)


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """A few words of each of the 15 languages, in the files of SIGMORPHON 2020."""
    folder = tmp_path / "words"
    folder.mkdir()
    for language in LANGUAGES:
        for split, letters in (("train", "abcdefgh"), ("dev", "ab"), ("test", "ab")):
            lines = [
                f"{first}{second}\t{first} {second}\n" for first in letters for second in letters
            ]
            with gzip.open(folder / file_name(language, split), "wt", encoding="utf-8") as file:
                file.write("".join(lines))
    return folder


@pytest.mark.slow
def test_the_page_has_single_models_ensembles_and_the_model_for_all(
    words: Path, tmp_path: Path
) -> None:
    out, work = tmp_path / "out", tmp_path / "work"
    out.mkdir()
    write_tagged(words, work / "tagged")
    for seed in (1, 2, None):
        measure(Job("ice", seed, out, work, words, TINY))
    measure(Job(ALL, 1, out, work, work / "tagged", TINY))
    text = page(out)
    assert text is not None
    rows = text.splitlines()
    assert "| one model per language | their ensembles | one model for all |" in text
    (icelandic,) = [row for row in rows if row.startswith("| Icelandic ")]
    (greek,) = [row for row in rows if row.startswith("| Greek ")]
    assert icelandic.count(" / ") == 3
    assert greek.count("–") == 2
    assert "– (1 of 15) | – (1 of 15) | **" in text


def test_a_tag_before_each_word_names_its_language(words: Path, tmp_path: Path) -> None:
    write_tagged(words, tmp_path / "tagged")
    first = (tmp_path / "tagged" / "ice_test.tsv").read_text(encoding="utf-8").splitlines()[0]
    assert first == "<ice> aa\ta a"
    config = config_of(Job(ALL, 3, tmp_path, tmp_path, tmp_path / "tagged", ()))
    assert set(config.text.tags) == {f"<{language}>" for language in LANGUAGES}
    assert config.training.seed == 3


def test_the_page_of_pronunciation_equals_the_rendered_results() -> None:
    written = (RESULTS / "pronunciation.md").read_text(encoding="utf-8")
    assert written == page(RESULTS / "pronunciation")

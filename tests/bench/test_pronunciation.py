"""The study of pronunciation: tagged data, models of one and of all languages, and its table."""

import gzip
from pathlib import Path

import pytest

from bench.measure import Context, config_of, measure
from bench.studies.pronunciation import ALL, DATA, LANGUAGES, file_name, prepare, table
from bench.study import Job, load_study

STUDY = load_study("pronunciation")
CHANGE = STUDY.changes["unchanged"]
TINY = (
    *("model.encoder.width=8", "model.decoder.width=8", "training.steps=3"),
    *("training.evaluate_every=3", "training.schedule.warmup=1", "training.batch_tokens=256"),
    *("training.evaluate_examples=4", "decoding.kind=greedy", "decoding.max_length=4"),
)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """A few words of each of the 15 languages, in the files of SIGMORPHON 2020, and tagged."""
    folder = tmp_path / DATA
    folder.mkdir()
    for language in LANGUAGES:
        for split, letters in (("train", "abcdefgh"), ("dev", "ab"), ("test", "ab")):
            lines = [f"{one}{two}\t{one} {two}\n" for one in letters for two in letters]
            with gzip.open(folder / file_name(language, split), "wt", encoding="utf-8") as file:
                file.write("".join(lines))
    context = Context(tmp_path, tmp_path / "work", TINY)
    prepare(context)
    return context


@pytest.mark.slow
def test_the_table_has_single_models_ensembles_and_the_model_for_all(context: Context) -> None:
    jobs = [Job(STUDY, STUDY.recipes["ice"], CHANGE, seed) for seed in (1, 2, None)]
    jobs.append(Job(STUDY, STUDY.recipes[ALL], CHANGE, 1))
    rows = table(STUDY, [measure(job, context) for job in jobs]).splitlines()
    assert "| one model per language | their ensembles | one model for all |" in rows[2]
    (icelandic,) = [row for row in rows if row.startswith("| Icelandic ")]
    (greek,) = [row for row in rows if row.startswith("| Greek ")]
    assert icelandic.count(" / ") == 3
    assert greek.count("–") == 2
    assert "– (1 of 15) | – (1 of 15) | **" in rows[-1]


def test_a_tag_before_each_word_names_its_language(context: Context) -> None:
    lines = (context.work / "tagged" / "ice_test.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "<ice> aa\ta a"
    config = config_of(Job(STUDY, STUDY.recipes[ALL], CHANGE, 3), context)
    assert set(config.text.tags) == {f"<{language}>" for language in LANGUAGES}
    assert config.training.seed == 3

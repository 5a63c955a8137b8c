"""Declared studies: their jobs, the runner, the store, and the tables of the pages."""

import argparse
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import pytest

from bench import __main__ as command_line
from bench import measure, runner, store, study, tables
from bench.measure import Context, config_of
from bench.programs import PROGRAMS
from bench.studies.languages import share_in_language
from bench.studies.recipes import expected_line, main_score, measured_line, task_results, tasks
from bench.study import Job, list_jobs, load_study, study_names
from seqloom.config.loading.bundled import bundled_recipes
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.names import ScoreName
from support.toy_languages import WORDS

ALL = [name for name in study_names() if name != "alignment"]
NO_CONFIG = {("iwslt14-lowres-de-en", "parent")}
"""Needs sacremoses and writes a corpus."""
TINY = """
help = "a study for tests"
seeds = 2
decode = ["greedy"]

[recipes.letters]
recipe = "letters.toml"

[changes.base]
ensemble = true
[changes.wider]
settings = ["model.decoder.width=12"]
[changes.tuned]
settings = ["training.steps=2"]
start = "base"

[decodings.greedy]
settings = ["decoding={kind='greedy'}"]

[tables.all]
columns = [["steps", "steps"], ["seeds", "count"], ["exact", "mean", "exact match"], ["difference", "difference", "exact match", "base"]]
"""
LETTERS = """
[data]
train = { kind = "synthetic", task = "copy", examples = 60, symbols = 4, min_length = 1, max_length = 3 }
dev = { kind = "synthetic", task = "copy", examples = 8, symbols = 4, min_length = 1, max_length = 3 }
test = { kind = "synthetic", task = "copy", examples = 8, symbols = 4, min_length = 1, max_length = 3 }
[text]
tokenizer = { kind = "characters" }
shared = true
[model]
encoder = { kind = "recurrent", width = 8 }
decoder = { kind = "recurrent", width = 8 }
[training]
steps = 3
batch_tokens = 64
schedule = { kind = "constant" }
evaluate_every = 1
checkpoint_every = 3
"""


def context(folder: Path) -> Context:
    return Context(folder / "data", folder / "work")


@pytest.mark.parametrize("name", ALL)
def test_the_jobs_of_a_study_have_different_configurations(name: str, tmp_path: Path) -> None:
    known: dict[str, list[Any]] = {}
    for job in list_jobs(load_study(name), [1]):
        if job.key[:2] in NO_CONFIG or job.change.start is not None:
            continue
        config = config_of(job, context(tmp_path))
        assert config.training.seed == 1
        earlier = known.setdefault(f"{job.recipe.name}", [])
        assert config not in earlier, f"{job.label} equals an earlier change"
        earlier.append(config)


@pytest.mark.parametrize("name", study_names())
def test_results_belong_to_declared_jobs_and_have_different_labels(name: str) -> None:
    declared = load_study(name)
    jobs = list_jobs(declared, range(1, 7))
    alone = [job.label for job in jobs if "family" not in job.recipe.facts]
    assert len(set(alone)) == len(alone)
    keys = {job.key for job in jobs}
    records = store.read(name) or []
    assert {store.key_of(each) for each in records} <= keys
    assert [store.key_of(each) for each in records] == [
        store.key_of(each) for each in sorted(records, key=store._order)
    ]
    for record in records:
        assert {"machine", "torch", "scores", "signatures"} <= set(record)
        assert "/home" not in json.dumps(record)


@pytest.mark.parametrize("page", tables.pages(), ids=lambda path: path.stem)
def test_the_figures_of_a_page_are_the_stored_ones(page: Path) -> None:
    """If this fails, run `python -m bench tables`."""
    text = page.read_text(encoding="utf-8")
    assert tables.update(text) == text


def test_a_changed_result_changes_the_page(tmp_path: Path) -> None:
    records = store.read("transfer")
    for record in records:
        record["steps"] = 4321
    store.write("transfer", records, tmp_path)
    text = "<!-- figures: transfer systems menyo20k-yo-en -->\nold\n<!-- end of figures -->"
    assert tables.update(text, ["tricks"], tmp_path) == text
    assert tables.update(text, ["transfer"], tmp_path).count("| 4,321 |") == 3


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of studies that has only `tiny`."""
    (tmp_path / "letters.toml").write_text(LETTERS, encoding="utf-8")
    studies = tmp_path / "studies"
    studies.mkdir()
    (studies / "tiny.toml").write_text(TINY, encoding="utf-8")
    monkeypatch.setattr(study, "FOLDER", studies)
    monkeypatch.setattr(measure, "RECIPES", tmp_path)
    return tmp_path


def options(folder: Path, *arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=folder / "out")
    runner.add_options(parser, load_study("tiny"))
    return parser.parse_args(arguments)


def run_here(job: Job, given: argparse.Namespace) -> bool:
    """Measure a job in this process, not in a new one."""
    seed = "ensemble" if job.seed is None else str(job.seed)
    given.one = [job.recipe.name, job.change.name, seed]
    runner.run_one(load_study("tiny"), given)
    return True


@pytest.mark.slow
def test_a_study_is_trained_decoded_combined_and_stored(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    order: list[str] = []

    def run_job(job: Job, given: argparse.Namespace) -> bool:
        order.append(job.label)
        return run_here(job, given)

    monkeypatch.setattr(runner, "run_job", run_job)
    runner.run(load_study("tiny"), options(tiny))
    assert len(set(order)) == len(order) == 7
    assert order[-1] == "letters.base.ensemble"
    assert order.index("letters.base.seed2") < order.index("letters.tuned.seed1")
    records = store.read("tiny", tiny / "out")
    assert [store.key_of(each)[1:] for each in records] == [
        *(("base", 1), ("base", 2), ("base", None)),
        *(("tuned", 1), ("tuned", 2), ("wider", 1), ("wider", 2)),
    ]
    by_key = {store.key_of(each)[1:]: each for each in records}
    assert by_key["base", None]["seeds"] == [1, 2]
    assert by_key["base", None]["parameters"] == 2 * by_key["base", 1]["parameters"]
    assert by_key["wider", 1]["parameters"] > by_key["base", 1]["parameters"]
    assert (by_key["base", 1]["steps"], by_key["tuned", 1]["steps"]) == (3, 2)
    assert "exact match" in by_key["base", 1]["scores"]
    assert "BLEU" in by_key["wider", 1]["decodings"]["greedy"]["test"]
    kept = {path.name for path in (tiny / "out" / "tiny-runs").iterdir()}
    assert kept == {"letters.base.seed1", "letters.base.seed2"}, "runs that others need"
    table = tables.render("tiny", ["all", "letters"], tiny / "out")
    assert "| base | 3 | 2 | " in table
    assert "| tuned | 2 | 2 | " in table
    monkeypatch.setattr(runner, "run_job", lambda job, given: pytest.fail(job.label))
    runner.run(load_study("tiny"), options(tiny))
    capsys.readouterr()
    runner.run(load_study("tiny"), options(tiny, "--list", "--only", "wider", "--seeds", "2-3"))
    stored, missing = capsys.readouterr().out.splitlines()
    assert stored.split() == ["letters.wider.seed2", "stored"]
    assert missing.split() == ["letters.wider.seed3"]


def test_a_selected_change_needs_the_run_that_it_starts_from(tiny: Path) -> None:
    jobs = list_jobs(load_study("tiny"), [1])
    chosen = [job.label for job in runner.select_jobs(jobs, ["tuned"])]
    assert chosen == ["letters.base.seed1", "letters.tuned.seed1"]
    assert [job.label for job in runner.select_jobs(jobs, ["letters.wider"])] == [
        "letters.wider.seed1"
    ]


def test_missing_data_is_reported_with_the_reason(tmp_path: Path) -> None:
    job = list_jobs(load_study("languages"), [1])[0]
    assert runner.missing_data(job, None) == "it requires --data FOLDER"
    assert "there is no folder" in str(runner.missing_data(job, tmp_path))
    (tmp_path / "multi30k").mkdir()
    assert runner.missing_data(job, tmp_path) is None


def test_processes_add_records_in_turn(tmp_path: Path) -> None:
    records = [{"recipe": "r", "change": "c", "seed": seed, "value": 0} for seed in range(9, 0, -1)]
    with ThreadPoolExecutor(9) as pool:
        list(pool.map(lambda record: store.add("s", record, tmp_path), records))
    store.add("s", {**records[0], "value": 1}, tmp_path)
    stored = store.read("s", tmp_path)
    assert [each["seed"] for each in stored] == list(range(1, 10))
    assert [each["value"] for each in stored] == [0] * 8 + [1]


def test_every_bundled_recipe_is_measured_with_one_of_its_scores() -> None:
    recipes = load_study("recipes").recipes
    assert set(bundled_recipes()) <= set(recipes)
    for recipe in recipes.values():
        settings = load_recipe(recipe.recipe, recipe.settings).config.task
        computed, scores = set(getattr(settings, "scores", ())), recipe.facts.get("scores", ())
        shown = {score for score in scores if score in get_args(ScoreName)}
        assert not computed or not shown or shown & computed, recipe.name


def record(recipe: str, seed: int = 1, **scores: float) -> dict[str, Any]:
    named = {name.replace("_", " "): value for name, value in scores.items()}
    return {
        "recipe": recipe,
        "change": "unchanged",
        "seed": seed,
        "scores": named,
        "signatures": {"accuracy": "signature"} if "accuracy" in named else {},
        "lower_is_better": [name for name in named if name.endswith("rate")],
        "seconds": 60.4,
        "steps": 2000,
        "parameters": 1_234_567,
        "machine": "NVIDIA H200",
        "torch": "2.11",
        "python": "3.11",
    }


def test_recipe_headers_have_percentages_and_the_direction_of_the_score(tmp_path: Path) -> None:
    recipes = load_study("recipes")
    errors = record("cmudict-g2p", phoneme_error_rate=6.0, word_error_rate=30.0)
    assert main_score(recipes.recipes["cmudict-g2p"], errors) == "word error rate"
    assert expected_line(recipes, errors, tmp_path) == "word error rate 30.6 % or less"
    assert measured_line(recipes, errors).startswith("word error rate 30.0 % on the test split, ")
    accurate = record("language-id", accuracy=99.2)
    assert expected_line(recipes, accurate, tmp_path) == "accuracy 98.8 % or more"
    others = [record("language-id", seed, accuracy=value) for seed, value in ((1, 97.5), (2, 98.0))]
    store.write("seeds", others, tmp_path)
    assert expected_line(recipes, accurate, tmp_path) == "accuracy 97.1 % or more"


def test_a_task_of_several_recipes_is_shown_as_their_mean_when_all_are_measured() -> None:
    recipes = load_study("recipes")
    names = recipes.recipes["eth-ucy"].facts["mean_of"]
    results = [record(name, ADE=0.5 + number / 10, FDE=1) for number, name in enumerate(names)]
    assert not task_results(recipes, results[:-1])
    (row,) = [line for line in tasks(recipes, results).splitlines() if "eth-ucy" in line]
    assert "ade; fde | **0.7; 1** |" in row
    assert "| 302 s, NVIDIA H200 |" in row


def test_numbers_are_formatted_for_tables() -> None:
    assert [tables.format_score(value) for value in (99.26, 1.4712, 0.0981)] == [
        *("99.3", "1.47", "0.0981")
    ]
    assert tables.format_spread([40.0, 42.0]) == "41.0 ± 1.4"
    assert tables.format_spread([40.0]) == "40.0"
    assert tables.format_difference([42.0, 43.0], [41.0]) == "+1.5"


def test_an_output_is_in_the_language_whose_vocabulary_has_most_of_its_words() -> None:
    vocabularies = {language: set(words) for language, words in WORDS.items()}
    outputs = ["hund läuft hier", "dog läuft", "dog runs here", "the"]
    assert share_in_language(outputs, "de", vocabularies) == 75.0
    assert share_in_language(["dog runs"], "de", vocabularies) == 0.0


@pytest.mark.parametrize("name", [*study_names(), *PROGRAMS])
def test_every_study_and_program_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        command_line.main([name, "--help"])
    assert ending.value.code == 0
    assert f"usage: python -m bench {name}" in capsys.readouterr().out


def test_all_studies_and_programs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    command_line.main([])
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name in (*study_names(), *PROGRAMS))
    with pytest.raises(SystemExit, match="there is no study or program trick"):
        command_line.main(["trick"])

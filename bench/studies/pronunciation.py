"""Data and tables of the study of pronunciation: 15 languages of SIGMORPHON 2020."""

import gzip
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.measure import Context
from bench.store import Record
from bench.study import RECIPES, Job, Study, load_study
from bench.tables import markdown
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.data import DataConfig

ALL = "all"
"""The model of all languages. Its data have a tag before each word, which names the language."""
DATA = "sigmorphon2020-g2p"
LANGUAGES = {
    name: recipe.facts["title"]
    for name, recipe in load_study("pronunciation").recipes.items()
    if name != ALL
}
WORDS, PHONES = "word error rate", "phoneme error rate"
Column = dict[str, list[dict[str, float]]]
"""The scores of each language, one dict per seed."""


def file_name(language: str, split: str) -> str:
    return f"{language}_{split}.tsv.gz"


def prepare(context: Context) -> None:
    """Write one file of all languages for each split, and one test file per language."""
    output = context.work / "tagged"
    output.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev", "test"):
        lines = {name: read_tagged(context.data / DATA, name, split) for name in LANGUAGES}
        text = "".join(line for each in lines.values() for line in each)
        (output / f"{split}.tsv").write_text(text, encoding="utf-8")
        if split == "test":
            for name, each in lines.items():
                (output / f"{name}_test.tsv").write_text("".join(each), encoding="utf-8")


def read_tagged(folder: Path, language: str, split: str) -> list[str]:
    """The lines of a file with the language tag before each word."""
    with gzip.open(folder / file_name(language, split), "rt", encoding="utf-8") as file:
        return [f"<{language}> {line}" for line in file]


def recipe_source(job: Job, context: Context) -> tuple[Any, list[str]]:
    """The bundled recipe for one language, or the recipe of all languages."""
    name = job.recipe.name
    if name == ALL:
        tags = [f"<{language}>" for language in LANGUAGES]
        settings = [f"data.folder={context.work.absolute() / 'tagged'}", f"text.tags={tags}"]
        return RECIPES / job.recipe.recipe, settings
    splits = ("train", "dev", "test")
    paths = [f"data.{split}.path={file_name(name, split)}" for split in splits]
    return job.recipe.recipe, [f"data.folder={context.data_folder(job)}", *paths]


def test_sets(job: Job, context: Context) -> Mapping[str, DataConfig | None]:
    """Each language that the model was trained on."""
    if job.recipe.name != ALL:
        return {job.recipe.name: None}
    source, settings = recipe_source(job, context)
    return {
        name: load_recipe(source, [*settings, f"data.test.path={name}_test.tsv"]).config.data
        for name in LANGUAGES
    }


def columns_of(records: Sequence[Record]) -> dict[str, Column]:
    """The scores by kind of model, then by language."""
    names = {
        (False, False): "one model per language",
        (False, True): "their ensembles",
        (True, False): "one model for all",
        (True, True): "its ensemble",
    }
    columns: dict[str, Column] = {name: {} for name in names.values()}
    for record in records:
        column = columns[names[record["recipe"] == ALL, record["seed"] is None]]
        for language in LANGUAGES:
            scores = {key: record["scores"].get(f"{language} {key}") for key in (WORDS, PHONES)}
            if None not in scores.values():
                column.setdefault(language, []).append(scores)
    return {name: column for name, column in columns.items() if column}


def mean_of(scores: Sequence[Mapping[str, float]], key: str) -> float:
    return statistics.mean(each[key] for each in scores)


def cell(column: Column, language: str) -> str:
    scores = column.get(language)
    return f"{mean_of(scores, WORDS):.1f} / {mean_of(scores, PHONES):.1f}" if scores else "–"


def average(column: Column) -> str:
    """The mean over all languages, or how many are measured if some are missing."""
    if set(column) != set(LANGUAGES):
        return f"– ({len(column)} of {len(LANGUAGES)})"
    return " / ".join(
        f"**{statistics.mean(mean_of(scores, key) for scores in column.values()):.2f}**"
        for key in (WORDS, PHONES)
    )


def table(study: Study, records: Sequence[Record]) -> str:
    columns = columns_of(records)
    rows = [
        [title, *(cell(column, name) for column in columns.values())]
        for name, title in LANGUAGES.items()
    ]
    rows.append(["mean", *map(average, columns.values())])
    seeds = sorted({each["seed"] for each in records if each["seed"] is not None})
    lines = [f"Seeds: {', '.join(map(str, seeds))}.", "", markdown(["language", *columns], rows)]
    return "\n".join(lines)


def facts(study: Study, records: Sequence[Record]) -> str:
    """Size, training time and machine of each kind of model."""
    lines = []
    for name, is_joint in (("one model per language", False), ("one model for all", True)):
        runs = [each for each in records if (each["recipe"] == ALL) == is_joint and each["seed"]]
        if runs:
            first = runs[0]
            seconds = statistics.mean(run["seconds"] for run in runs)
            sizes = [run["parameters"] / 1e6 for run in runs]
            lines.append(
                f"- {name}: {min(sizes):.1f} to {max(sizes):.1f} M parameters, {first['steps']:,} "
                f"steps, at most {seconds:.0f} s (runs share one {first['machine']}), torch "
                f"{first['torch']}, seqloom {first['seqloom']}"
            )
    return "\n".join(lines)

"""Training data and test sets of the study of fine-tuning."""

from collections.abc import Mapping
from typing import Any

from bench.measure import Context, recipe_tables
from bench.study import Job
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.data import DataConfig

RECIPES = {"multi30k": "multi30k-de-en", "tatoeba": "tatoeba-de-en-transformer"}


def recipe_source(job: Job, context: Context) -> tuple[Any, list[str]]:
    """The recipe with the corpora of the change. The dev split is that of the last corpus."""
    corpora = job.change.facts.get("corpora", ["multi30k"])
    sections = {name: recipe_tables(recipe)["data"] for name, recipe in RECIPES.items()}
    if "pairs" in job.change.facts:
        sections["multi30k"]["train"]["last_line"] = job.change.facts["pairs"]
    data = {**sections[corpora[-1]], "folder": str(context.data_folder(job))}
    data.pop("expected", None)
    data["train"] = [sections[name]["train"] for name in corpora]
    if job.change.start is not None:
        return {"data": data}, list(job.change.settings)
    return {**recipe_tables(job.recipe.recipe), "data": data}, list(job.change.settings)


def test_sets(job: Job, context: Context) -> Mapping[str, DataConfig]:
    folder = [f"data.folder={context.data_folder(job)}"]
    return {
        "Multi30k": load_recipe(RECIPES["multi30k"], folder).config.data,
        "Tatoeba": load_recipe(RECIPES["tatoeba"]).config.data,
    }

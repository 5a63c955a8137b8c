"""Data of the study of transfer: small corpora, their parents' mixtures, tokenised Tatoeba."""

import os
import sys
from collections.abc import Mapping
from typing import Any

from bench.measure import Context, recipe_tables
from bench.moses import moses_tokenise
from bench.study import Job, Recipe
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.corpora import BundledConfig
from seqloom.config.schema.data import DataConfig
from seqloom.data.readers.bundled import read_bundled

PAIRS = (("de", "en"), ("en", "de"), ("en", "fr"), ("fr", "en"))


def recipe_source(job: Job, context: Context) -> tuple[Any, list[str]]:
    """`alone` has the small corpus, `child` also its tag, `parent` the mixture of its family."""
    if job.change.name == "child":
        return {"data": small_data(job.recipe, context)}, []
    if job.change.name == "parent":
        data = parent_data(job, context)
    else:
        data = small_data(job.recipe, context, is_tagged=False)
    return {**recipe_tables(job.recipe.recipe), "data": data}, list(job.change.settings)


def small_data(recipe: Recipe, context: Context, is_tagged: bool = True) -> dict[str, Any]:
    """The [data] section of a small corpus, with its language tag if it has one."""
    data = recipe_tables(recipe.recipe)["data"]
    del data["expected"]
    tag = recipe.facts.get("tag")
    if is_tagged and tag is not None:
        for split in ("train", "dev", "test"):
            data[split] = {**data[split], "tag": tag, "name": recipe.name}
    return {**data, "folder": str((context.data / str(recipe.data)).absolute())}


def parent_data(job: Job, context: Context) -> dict[str, Any]:
    """The small corpora of a family and bundled sentences."""
    family = job.recipe.facts["family"]
    recipes = [each for each in job.study.recipes.values() if each.facts["family"] == family]
    sections = [small_data(each, context) for each in recipes]
    if family == "iwslt":
        extra = [write_tokenised_tatoeba(context)]
    else:
        extra = [
            {
                "kind": "bundled",
                "source": one,
                "target": two,
                "tag": f"<2{two}>",
                "name": f"{one}-{two}",
            }
            for one, two in PAIRS
        ]
    return {
        **sections[0],
        "train": [*(section["train"] for section in sections), *extra],
        "dev": [section["dev"] for section in sections],
        "test": [section["test"] for section in sections],
        "temperature": job.study.facts["temperature"],
    }


def write_tokenised_tatoeba(context: Context) -> dict[str, Any]:
    """Write German and English Tatoeba sentences in the form of the IWSLT corpus."""
    path = context.work.absolute() / "tatoeba.tok.lc.de-en.tsv"
    if not path.exists():
        examples = list(read_bundled(BundledConfig(source="de", target="en"), "train"))
        german = moses_tokenise([str(example.source) for example in examples], "de")
        english = moses_tokenise([str(example.references[0]) for example in examples], "en")
        if german is None or english is None:
            sys.exit("iwslt14-lowres-de-en requires sacremoses: pip install sacremoses")
        lines = [f"{left}\t{right}\n" for left, right in zip(german, english, strict=True)]
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text("".join(lines), encoding="utf-8")
        temporary.rename(path)
    return {"kind": "tsv", "path": str(path)}


def test_sets(job: Job, context: Context) -> Mapping[str, DataConfig]:
    """The small corpus, also for a parent that was trained on several."""
    data = small_data(job.recipe, context, is_tagged=job.change.name != "alone")
    return {"": load_recipe({**recipe_tables(job.recipe.recipe), "data": data}).config.data}

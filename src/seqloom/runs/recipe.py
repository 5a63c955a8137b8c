"""Loads recipes, including those that fine-tune another run.

This module does not import torch.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqloom.config.loading.fine_tuning import ParentRun, complete_from_parent, parent_path
from seqloom.config.loading.loader import (
    RECIPE_FILE,
    ResolvedRecipe,
    load_run_recipe,
    read_tables,
)
from seqloom.config.schema.task import ForecastConfig
from seqloom.core.errors import NotFoundError
from seqloom.data.recipe import MAX_COUNTED, count_pairs
from seqloom.data.recipe import load_recipe as load_ordinary_recipe
from seqloom.runs.archive import open_run
from seqloom.runs.integrity import EVENT_LOG


def load_recipe(
    source: str | Path | Mapping[str, Any],
    overrides: Sequence[str] = (),
    name: str | None = None,
    parent: str | Path | None = None,
) -> ResolvedRecipe:
    """Load and check a recipe.

    If the recipe has neither [model] nor preset, its number of training pairs determines the
    preset. If it fine-tunes another run, that run determines the model and the vocabulary.

    source:    the path of a TOML file or of a run folder, the name of a bundled recipe such as
               "demo", or the tables of a recipe as a dictionary
    overrides: settings to change, of the form "training.steps=500"
    name:      name of the recipe in error messages
    parent:    run folder or packed run to fine-tune. Default: the setting training.start.run
    """
    is_run = not isinstance(source, Mapping) and (Path(source) / RECIPE_FILE).is_file()
    if parent is None and is_run:
        return load_ordinary_recipe(source, overrides, name)  # a run stores its complete recipe
    recipe = read_tables(source, name)
    if parent is not None:
        overrides = [f"training.start.run={json.dumps(str(parent))}", *overrides]
    path = parent_path(recipe, overrides)
    if path is None:
        return load_ordinary_recipe(source, overrides, name)
    parent_run = read_parent(path)
    draft = complete_from_parent(recipe, overrides, parent_run, None)
    if isinstance(draft.config.task, ForecastConfig):
        return draft  # windows of a series are not pairs
    pairs = count_pairs(draft.config.data)
    counted = None if pairs >= MAX_COUNTED else pairs
    return complete_from_parent(recipe, overrides, parent_run, counted)


def read_parent(run: str) -> ParentRun:
    """Read the recipe and the number of training examples of a run that will be fine-tuned."""
    folder = open_run(Path(run))
    if not (folder / RECIPE_FILE).is_file():
        raise NotFoundError(
            f"{run}: no such run. Give --from (training.start.run in a recipe) a folder that "
            "`seqloom train` wrote, or a file that `seqloom pack` wrote."
        )
    return ParentRun(run, load_run_recipe(folder / RECIPE_FILE).config, training_examples(folder))


def training_examples(folder: Path) -> int | None:
    """Return the number of training examples of a run, as its event log states it.

    Returns None if the event log does not contain this number.
    """
    for event in read_events(folder):
        if event.get("event") == "start" and isinstance(event.get("examples"), int):
            return int(event["examples"])
    return None


def read_events(folder: Path) -> list[dict[str, Any]]:
    """Return the events in the event log of a run. Damaged lines are left out."""
    try:
        lines = (folder / EVENT_LOG).read_bytes().splitlines()
    except OSError:
        return []
    events = []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            events.append(event)
    return events

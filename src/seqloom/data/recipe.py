"""Loads a recipe and, if it has no model, chooses a preset by the number of its training pairs."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from seqloom.config.loading.loader import ResolvedRecipe
from seqloom.config.loading.loader import load_recipe as load_complete_recipe
from seqloom.config.loading.presets import PRESET_LIMITS
from seqloom.config.schema.data import DataConfig

MAX_COUNTED = int(PRESET_LIMITS[-2][1]) + 1
"""Counting stops at this number of pairs, because more pairs do not change the preset."""


def load_recipe(
    source: str | Path | Mapping[str, Any], overrides: Sequence[str] = (), name: str | None = None
) -> ResolvedRecipe:
    """Load and check a recipe. If it has neither [model] nor preset, count its training pairs and
    use the preset that suits this number.

    source:    the path of a TOML file or of a run folder, the name of a bundled recipe such as
               "demo", or the tables of a recipe as a dictionary
    overrides: settings to change, of the form "training.steps=500"
    name:      name of the recipe in error messages
    """
    return load_complete_recipe(source, overrides, name, count_pairs)


def count_pairs(data: DataConfig) -> int:
    """Count the training pairs of a recipe, up to MAX_COUNTED.

    Invalid lines and the replayed data of a parent do not count.
    """
    from seqloom.data.readers.splits import read_split  # imports torch, which takes seconds

    skipping = data.model_copy(update={"invalid_lines": "skip", "replay": None})
    return sum(1 for _ in islice(read_split(skipping, "train"), MAX_COUNTED))

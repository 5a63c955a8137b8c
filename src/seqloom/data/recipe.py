"""Loads a recipe.

If the recipe sets neither a model nor a preset, the number of its training pairs selects a preset.
"""

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
COUNT_FILE = "pairs"


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
    """Count the training pairs of a recipe, up to MAX_COUNTED. The count of large files is cached.

    Invalid lines do not count. In fine-tuning, pairs that are repeated from the training data of
    the original run (`data.replay`) do not count either.
    """
    # These modules import libraries that take seconds to load.
    from seqloom.data.corpus.digests import MIN_CACHED_BYTES
    from seqloom.data.corpus.disk_cache import cached_folder
    from seqloom.data.preparation.request import fingerprint
    from seqloom.data.readers.splits import read_split, split_files

    counted = data.model_copy(update={"invalid_lines": "skip", "replay": None})

    def count() -> int:
        return sum(1 for _ in islice(read_split(counted, "train"), MAX_COUNTED))

    def fill(folder: Path) -> None:
        (folder / COUNT_FILE).write_text(str(count()))

    if sum(path.stat().st_size for path in split_files(data, "train")) < MIN_CACHED_BYTES:
        return count()
    folder = cached_folder("pair-counts", fingerprint(counted, "train"), fill)
    return int((folder / COUNT_FILE).read_text())

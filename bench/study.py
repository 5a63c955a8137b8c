"""Studies: recipes x changes x seeds, declared in the TOML files of bench/studies.

    seeds = 3
    decode = ["greedy", "beam 5"]      decodings of the test split, besides the recipe's own

    [recipes.NAME]
    recipe = "demo"                    a bundled recipe, or a file in bench/recipes. Default: NAME
    data = "multi30k"                  sub-folder of --data
    settings = ["model.tie=all"]       as for --set
    changes = ["base"]                 the changes that are applied to it. Default: all

    [changes.NAME]
    settings = ["training.r_drop=5.0"]
    start = "parent"                   training continues from the run of this change
    ensemble = true                    also score the ensemble of all seeds
    decode = ["greedy"]                replaces the decodings of the study

    [decodings.NAME]
    settings = ["decoding.width=10"]

    [tables.NAME]
    head = "training"                  heading of the first column
    columns = [["BLEU", "mean", "bleu"], …]     see `Column` in tables.py

A module of the same name (bench/studies/NAME.py) can replace the functions of `measure.py` and has
the tables that are not lists of changes. All other keys are facts for tables and modules.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parent / "studies"
RECIPES = Path(__file__).parent / "recipes"
"""Recipes that are not bundled with seqloom."""
SIGNS = {"+ ": "with ", "- ": "without "}


@dataclass(frozen=True)
class Recipe:
    name: str
    recipe: str
    data: str | None = None
    settings: Sequence[str] = ()
    changes: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    name: str
    settings: Sequence[str] = ()
    start: str | None = None
    ensemble: bool = False
    decode: Sequence[str] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name in tables."""
        return str(self.facts.get("title", self.name))


@dataclass(frozen=True)
class Study:
    name: str
    seeds: int
    recipes: Mapping[str, Recipe]
    changes: Mapping[str, Change]
    decodings: Mapping[str, Mapping[str, Any]]
    decode: Sequence[str]
    tables: Mapping[str, Any]
    facts: Mapping[str, Any]

    def find(self, name: str) -> Any:
        """A function or constant of the module of the study. None if it has none."""
        module = self._module()
        return None if module is None else getattr(module, name, None)

    def hook(self, default: Callable[..., Any]) -> Callable[..., Any]:
        """The function of the module of the study that replaces a default one."""
        return self.find(default.__name__) or default

    def _module(self) -> ModuleType | None:
        name = f"bench.studies.{self.name.replace('-', '_')}"
        return import_module(name) if find_spec(name) else None

    def is_kept(self, change: Change) -> bool:
        """True if later jobs need the runs of a change."""
        starts = {each.start for each in self.changes.values()}
        return change.ensemble or change.name in starts or bool(change.facts.get("keep"))


@dataclass(frozen=True)
class Job:
    """One measurement. The seed is None for the ensemble of all seeds."""

    study: Study
    recipe: Recipe
    change: Change
    seed: int | None

    @property
    def key(self) -> tuple[str, str, int | None]:
        return self.recipe.name, self.change.name, self.seed

    @property
    def label(self) -> str:
        return f"{self.run_name(self.change, self.seed)}"

    def run_name(self, change: Change, seed: int | None) -> str:
        """The name of a run folder. Recipes of one family share the runs that others start from."""
        recipe = self.recipe.name
        if change.name in {each.start for each in self.study.changes.values()}:
            recipe = self.recipe.facts.get("family", recipe)
        name = change.name
        for sign, word in SIGNS.items():
            name = name.replace(sign, word)
        parts = (re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") for part in (recipe, name))
        return ".".join([*parts, "ensemble" if seed is None else f"seed{seed}"])

    @property
    def stage(self) -> int:
        """Jobs of a stage need only jobs of earlier stages."""
        if self.seed is None:
            return 2
        return int(self.change.start is not None or bool(self.change.facts.get("last")))


def study_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_study(name: str) -> Study:
    tables = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    changes = {
        key: _build(Change, key, values)
        for key, values in tables.pop("changes", {"unchanged": {}}).items()
    }
    recipes = {
        key: _build(Recipe, key, {"recipe": key, "changes": list(changes), **values})
        for key, values in tables.pop("recipes").items()
    }
    decodings = {key: {"settings": [], **each} for key, each in tables.pop("decodings", {}).items()}
    return Study(
        name,
        tables.pop("seeds", 1),
        recipes,
        changes,
        decodings,
        tables.pop("decode", ()),
        tables.pop("tables", {}),
        tables,
    )


def _build(kind: type[Any], name: str, values: Mapping[str, Any]) -> Any:
    fields = set(kind.__dataclass_fields__) - {"name", "facts"}
    facts = {key: value for key, value in values.items() if key not in fields}
    known = {key: value for key, value in values.items() if key in fields}
    return kind(name=name, facts=facts, **known)


def list_jobs(study: Study, seeds: Sequence[int]) -> list[Job]:
    """All jobs, those of the first seed first, so that one result of each change is ready early."""
    pairs = [
        (recipe, study.changes[change])
        for recipe in study.recipes.values()
        for change in recipe.changes
    ]
    jobs = [Job(study, recipe, change, seed) for seed in seeds for recipe, change in pairs]
    if len(seeds) > 1:
        jobs += [Job(study, recipe, change, None) for recipe, change in pairs if change.ensemble]
    return jobs

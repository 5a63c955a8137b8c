"""Completes the recipe of a fine-tuning with the settings of the run that it starts from.

That run is called the parent. The sections [task], [text], [model], [decoding] and [engine] are
copied from the recipe of the parent. The settings in [training] are derived from those of the
parent and from the number of training pairs. If the recipe of the fine-tuning itself contains
settings in [training], [decoding] or [engine], these take precedence.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from seqloom.config.loading.fields import format_path, list_setting_refs
from seqloom.config.loading.loader import (
    RecipeTables,
    ResolvedRecipe,
    load_recipe,
    written_path,
)
from seqloom.config.loading.overrides import apply_overrides
from seqloom.config.loading.presets import KEY as PRESET
from seqloom.config.loading.presets import Tables, merge_tables
from seqloom.config.loading.toml import format_recipe, format_value, parse_toml
from seqloom.config.schema.corpora import ImportedConfig
from seqloom.config.schema.data import ParentDataConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.section import Section
from seqloom.core.errors import ConfigError

KEPT = ("task", "text", "model")
"""Sections that the weights depend on. A fine-tuning must not change them, except `MAY_DIFFER`."""
MAY_DIFFER = re.compile(
    r"task\.scores|text\.sampling(\..*)?|text\.new_tags(\[.*)?|model\..*dropout"
)
"""Pattern of the settings in the sections `KEPT` that a recipe may change. The parent's weights
still fit the model after such a change."""
MIN_STEPS = 1000
"""Minimum of the derived number of steps. If the training of the parent took fewer steps, the
minimum is that number."""
MIN_RATE_SHARE = 0.2
"""Minimum of the derived learning rate, as a share of the parent's learning rate."""
IMPORTED_RATE = 2e-4
"""Learning rate for an imported model. Its original learning rate is not known."""
IMPORTED_EPOCHS = 5
"""Number of epochs for an imported model."""
TOKENS_PER_PAIR = 30
"""Assumed number of tokens of the longer side of a pair, to convert epochs into steps."""
WARMUP_DIVISOR = 20
"""The number of warm-up steps is the number of training steps divided by this number."""
EVALUATIONS = 10
"""Number of evaluations, without the one before the first step."""


@dataclass(frozen=True)
class ParentRun:
    """The run that fine-tuning starts from.

    run:    its path, as the user gave it
    config: its recipe
    pairs:  number of its training examples; None if its event log does not contain this number
    """

    run: str
    config: RunConfig
    pairs: int | None

    @property
    def is_imported(self) -> bool:
        """True if `seqloom import` read the model from another format."""
        return any(isinstance(corpus, ImportedConfig) for corpus in self.config.data.train)


def parent_path(recipe: RecipeTables, overrides: Sequence[str]) -> str | None:
    """Return the setting training.start.run of a recipe; None if it is not set."""
    value: Any = apply_overrides(recipe.tables, overrides).tables
    for key in ("training", "start", "run"):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def complete_from_parent(
    recipe: RecipeTables, overrides: Sequence[str], parent: ParentRun, pairs: int | None
) -> ResolvedRecipe:
    """Return the complete recipe of a fine-tuning, with the settings that the parent provides.

    parent: the run that fine-tuning starts from
    pairs:  number of training pairs of the recipe; None if they are not counted yet

    Raises ConfigError if the recipe is not valid, uses a preset, has another kind of data than the
    parent, or changes settings that must stay as in the parent, such as the size of the model.
    """
    tables = recipe.tables
    if PRESET in tables or any(text.partition("=")[0].strip() == PRESET for text in overrides):
        raise ConfigError(
            f"{recipe.name}: a fine-tuned model keeps the settings of its parent {parent.run}, so "
            f"it cannot use a preset; remove {PRESET}"
        )
    inherited = _inherited(parent)
    derived = derive_training(parent, pairs, _given_steps(tables, overrides))
    base = {**inherited, "training": {**inherited["training"], **derived}}
    own = {key: value for key, value in tables.items() if key != "data"}
    merged = merge_tables(base, own)
    merged["data"] = _with_parent_data(tables.get("data", {}), inherited["data"], parent, recipe)
    resolved = load_recipe(merged, overrides, recipe.name)
    _check_same_data_kind(resolved.config, parent, recipe.name)
    _check_kept(resolved.config, base, parent, recipe.name)
    resolved = replace(resolved, origins=_origins(resolved, tables))
    note = _choice_note(resolved, parent, pairs)
    return replace(resolved, notes=(*note, *resolved.notes))


def _with_parent_data(data: Any, inherited: Tables, parent: ParentRun, recipe: RecipeTables) -> Any:
    """Return the data section of a recipe, with the data of the parent run added as data.parent.

    The parent is the run that fine-tuning starts from. If the recipe itself has settings in
    data.parent, these take precedence. Raises a ConfigError if data.parent.train in the recipe is
    not equal to the training corpora of the parent.
    """
    if not isinstance(data, dict):
        return data  # reported when the recipe is checked
    own = data.get("parent", {})
    if isinstance(own, dict) and own.get("train", inherited["train"]) != inherited["train"]:
        raise ConfigError(
            f"{recipe.name}: data.parent does not describe the data of {parent.run}. Remove "
            "data.parent; fine-tuning copies it from the parent"
        )
    return {**data, "parent": merge_tables(inherited, own)}


def _inherited(parent: ParentRun) -> Tables:
    """Return the settings that a fine-tuning inherits from its parent, as TOML tables.

    The parent is the run that the fine-tuning starts from. Settings that apply only to the training
    of the parent are left out, such as training.start.
    Tags that the parent added to its vocabulary (text.new_tags) become normal tags (text.tags).
    """
    tables = parse_toml(format_recipe(parent.config).encode())
    text, training, data = tables["text"], tables["training"], tables["data"]
    new_tags = [new["tag"] for new in text.pop("new_tags", [])]
    text["tags"] = [*text.get("tags", []), *new_tags]
    for key in ("start", "freeze", "minimum_risk"):
        training.pop(key, None)
    training["stopping"].pop("max_minutes", None)
    tables["data"] = {key: data[key] for key in ParentDataConfig.model_fields if key in data}
    return tables


def _given_steps(tables: Tables, overrides: Sequence[str]) -> int | None:
    """Return training.steps if the recipe or an override sets it, otherwise None."""
    training = apply_overrides(tables, overrides).tables.get("training")
    steps = training.get("steps") if isinstance(training, dict) else None
    return steps if isinstance(steps, int) and steps > 0 else None


def derive_training(parent: ParentRun, pairs: int | None, given_steps: int | None) -> Tables:
    """Derive learning rate, schedule, steps and evaluations from the parent and the data.

    The learning rate is that of the parent if there are at least half as many pairs as the parent
    had. With fewer pairs it falls in proportion, down to `MIN_RATE_SHARE` of the parent's rate,
    because a high rate on few pairs overwrites what the parent has learned.

    The number of steps is proportional to the number of pairs, so that each pair is used as often
    as in the training of the parent. It is at least `MIN_STEPS`, but never more than the parent's
    number of steps.

    For an imported model, the learning rate is `IMPORTED_RATE`. Training takes `IMPORTED_EPOCHS`
    epochs, but at least `MIN_STEPS` steps.

    pairs:       number of training pairs of the fine-tuning; None if it is not known
    given_steps: number of steps that the user has chosen; None to derive it
    """
    settings = parent.config.training
    if parent.is_imported:
        rate = IMPORTED_RATE
        tokens = IMPORTED_EPOCHS * (pairs or 0) * TOKENS_PER_PAIR
        derived = max(round(tokens / settings.batch_tokens), MIN_STEPS)
    else:
        share = 1.0 if pairs is None or not parent.pairs else min(1.0, pairs / parent.pairs)
        rate = settings.optimizer.learning_rate * min(1.0, max(2 * share, MIN_RATE_SHARE))
        derived = max(round(settings.steps * share), min(MIN_STEPS, settings.steps))
    steps = given_steps or derived
    every = max(steps // EVALUATIONS, 1)
    return {
        "steps": steps,
        "optimizer": {**settings.optimizer.model_dump(), "learning_rate": rate},
        "schedule": {"kind": "cosine", "warmup": min(max(steps // WARMUP_DIVISOR, 1), steps - 1)},
        "evaluate_every": every,
        "checkpoint_every": every,
    }


def _choice_note(resolved: ResolvedRecipe, parent: ParentRun, pairs: int | None) -> tuple[str, ...]:
    """Return a tuple of one message: the training settings that were derived from the parent run.

    If the user has set all these settings in the recipe or with --set, the tuple is empty.
    """
    training = resolved.config.training
    values = {
        "training.steps": training.steps,
        "training.schedule.warmup": training.schedule.warmup,
        "training.optimizer.learning_rate": training.optimizer.learning_rate,
        "training.evaluate_every": training.evaluate_every,
    }
    chosen = [
        f"{key} = {value:.3g}" if isinstance(value, float) else f"{key} = {value}"
        for key, value in values.items()
        if resolved.origins.get(key) == "parent"
    ]
    if not chosen:
        return ()
    before = parent.config.training
    counted = "" if pairs is None else f", and from {pairs:,} training pairs"
    origin = (
        f"for the imported model {parent.run}"
        if parent.is_imported
        else f"from the {before.steps:,} steps and the learning rate "
        f"{before.optimizer.learning_rate:.3g} of {parent.run}"
    )
    return (
        f"fine-tuning uses {', '.join(chosen)}, chosen {origin}{counted}; to choose other values, "
        "set them in the recipe or with --set",
    )


def _check_same_data_kind(config: RunConfig, parent: ParentRun, name: str) -> None:
    """Raise a ConfigError unless the recipe and the parent read the same kind of data.

    The kind is the modality of the sources, and whether the data is one long text.
    """
    theirs = parent.config.data
    is_same = config.modality == parent.config.modality
    if not is_same or config.data.is_long_text != theirs.is_long_text:
        kinds = ", ".join(sorted({corpus.kind for corpus in theirs.train}))
        raise ConfigError(
            f"{name}: data.train must be of the same kind as the data of {parent.run}, which is "
            f"{kinds}"
        )


def _check_kept(config: RunConfig, base: Tables, parent: ParentRun, name: str) -> None:
    """Raise a ConfigError if the recipe changes settings that must stay as in the parent run.

    These are the settings in [task], [text] and [model], except a few such as dropout
    (`MAY_DIFFER`). The message lists the settings that differ.

    base: the tables that the recipe inherits from the parent, the run that fine-tuning starts from
    name: name of the recipe in the message
    """
    expected = {**base, "data": parse_toml(format_recipe(config).encode())["data"]}
    expected["training"] = {**expected["training"], "start": {"run": parent.run}}
    reference = load_recipe(expected, (), parent.run).config
    differences = []
    for section in KEPT:
        before = flatten(getattr(reference, section), section)
        now = flatten(getattr(config, section), section)
        differing = [
            key
            for key in sorted(before.keys() | now.keys())
            if before.get(key) != now.get(key) and not MAY_DIFFER.fullmatch(key)
        ]
        # Tables of different kinds have different settings. Only their kinds are listed.
        kinds = [key.removesuffix("kind") for key in differing if key.endswith(".kind")]
        differences += [
            f"  {key}: {_shown(before, key)} in the parent, {_shown(now, key)} in the recipe"
            for key in differing
            if not any(key.startswith(kind) and key != f"{kind}kind" for kind in kinds)
        ]
    if differences:
        raise ConfigError(
            f"{name}: fine-tuning keeps the model and the vocabulary of {parent.run}, but these "
            "settings differ:\n"
            + "\n".join(differences)
            + "\nRemove them from the recipe, or train without --from."
        )


def _shown(values: dict[str, object], key: str) -> str:
    return format_value(values[key]) if key in values else "not set"


def flatten(section: Section, name: str) -> dict[str, object]:
    """Map the path of every setting of a section, such as "model.tie", to its value."""
    flat: dict[str, object] = {}
    for ref in list_setting_refs(section, (name,)):
        flat[format_path(ref.path)] = getattr(ref.section, ref.name)
    return flat


def _origins(resolved: ResolvedRecipe, tables: Tables) -> dict[str, Any]:
    """Return a dictionary that maps the key of each setting to the origin of its value.

    Settings of the parent, the run that fine-tuning starts from, have the origin "recipe" in
    `resolved`, because they were merged into the recipe before it was loaded. This function
    corrects their origin to "parent".

    tables: the tables of the recipe, without the parent's settings
    """
    refs = list_setting_refs(resolved.config)
    return {
        key: "parent" if origin == "recipe" and not written_path(ref.path, tables)[1] else origin
        for (key, origin), ref in zip(resolved.origins.items(), refs, strict=True)
    }

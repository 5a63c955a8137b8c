"""Applies the options --set, --beam and --engine to recipes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seqloom.cli.output import print_warning
from seqloom.core.errors import ConfigError

if TYPE_CHECKING:
    from seqloom.config.loading.loader import ResolvedRecipe
    from seqloom.config.schema.decoding import DecodingConfig
    from seqloom.config.schema.names import EngineKind
    from seqloom.config.schema.recipe import RunConfig
    from seqloom.inference.run import Run

EXAMPLES = {
    "decoding": "decoding.max_length=60",
    "engine": "engine.precision=float32",
    "data": "data.folder=/path/to/data",
}
"""An example of a setting, for each section that can be changed after training."""

BEAM_KEYS = ("decoding", "decoding.kind", "decoding.width")
"""Settings that --beam overrides."""


MODEL_SETTINGS = re.compile(
    r"model\.(encoder|decoder)\.(self_)?attention\.(selection|tolerance|score\.(scale|gamma))"
)
"""Settings of the model that can be changed after training: the weights have the same names, shapes
and meaning with every value."""


def resolve_recipe(
    name: str, settings: Sequence[str] | None, parent: Path | None = None
) -> ResolvedRecipe:
    """Read a recipe file or a bundled recipe, and apply --set.

    Prints a warning about each automatic change, for example a chosen preset.

    parent: the run of --from, for fine-tuning. It provides the settings that the recipe leaves out
    """
    from seqloom.runs.recipe import load_recipe

    resolved = load_recipe(name, settings or (), parent=parent)
    for note in resolved.notes:
        print_warning(note)
    return resolved


def load_run(folders: Sequence[Path], settings: Sequence[str] | None) -> tuple[Run, list[str]]:
    """Load a run, or an ensemble of several runs, and apply the --set values for the model.

    Returns the run and the other --set values. The caller applies these with `change_recipe`.

    settings: the values of --set
    """
    from seqloom.inference.run import load

    of_model, others = split_model_settings(settings)
    return load(folders, of_model), others


def split_model_settings(settings: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Split the values of --set into those of the section `model` and those of other sections.

    Only some settings of a trained model can be changed, because the others would not fit its
    weights. Raises one ConfigError that lists all settings that cannot be changed.
    """
    of_model = [each for each in settings or () if _section(each) == "model"]
    rejected = [each for each in of_model if not MODEL_SETTINGS.fullmatch(_key(each))]
    if rejected:
        listed = "\n".join(f"--set {each}: the model is already trained" for each in rejected)
        raise ConfigError(
            f"{listed}. Only model settings that fit the trained weights can be changed: "
            "attention.selection, attention.tolerance, attention.score.scale and "
            "attention.score.gamma of model.encoder and model.decoder, for example model.decoder.attention.selection=argmax."
        )
    return of_model, [each for each in settings or () if _section(each) != "model"]


def change_decoding(
    config: RunConfig, settings: Sequence[str] | None, beam: int | None = None
) -> DecodingConfig:
    """Return the decoding section of a trained run's recipe, changed by --set and --beam."""
    return change_recipe(config, settings, beam=beam, sections=("decoding",)).decoding


def change_recipe(
    config: RunConfig,
    settings: Sequence[str] | None,
    *,
    sections: Sequence[str],
    beam: int | None = None,
    engine: EngineKind | None = None,
) -> RunConfig:
    """Return the recipe of a trained run, changed by --set, --beam and --engine.

    config:   the recipe in the run folder
    settings: the values of --set
    sections: the sections that `settings` may change. Raises ConfigError for other sections.
    beam:     the value of --beam, which takes precedence over `settings`
    engine:   the value of --engine, which takes precedence over `settings`
    """
    from seqloom.config.loading.loader import load_recipe
    from seqloom.config.loading.toml import format_recipe, parse_toml

    settings = [*(settings or ()), *([] if engine is None else [f"engine.kind={engine}"])]
    for setting in settings:
        if _section(setting) not in sections:
            examples = " or ".join(EXAMPLES[section] for section in sections)
            raise ConfigError(
                f"--set {setting}: the model is already trained. Only settings of "
                f"{' and '.join(sections)} can be changed, for example {examples}."
            )
    tables = parse_toml(format_recipe(config).encode())
    changed = load_recipe(tables, settings, "the run's recipe").config
    if beam is None:
        return changed
    beam_settings = ["decoding.kind=beam", f"decoding.width={beam}"]
    with_beam = load_recipe(tables, [*settings, *beam_settings], "the run's recipe").config
    for setting in settings:
        if _key(setting) in BEAM_KEYS and changed.decoding != with_beam.decoding:
            print_warning(f"--beam {beam} overrides --set {setting}. Remove one of them.")
    return with_beam


def _key(setting: str) -> str:
    return setting.partition("=")[0].strip()


def _section(setting: str) -> str:
    return _key(setting).partition(".")[0]

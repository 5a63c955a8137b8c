"""Applies the options --set, --beam and --engine to recipes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from seqloom.cli.output import print_warning
from seqloom.core.errors import ConfigError

if TYPE_CHECKING:
    from seqloom.config.loading.loader import ResolvedRecipe
    from seqloom.config.schema.decoding import DecodingConfig
    from seqloom.config.schema.names import EngineKind
    from seqloom.config.schema.recipe import RunConfig

EXAMPLES = {
    "decoding": "decoding.max_length=60",
    "engine": "engine.precision=float32",
    "data": "data.folder=/path/to/data",
}
"""An example of a setting, for each section that can be changed after training."""

BEAM_KEYS = ("decoding", "decoding.kind", "decoding.width")
"""Settings that --beam overrides."""


def resolve_recipe(name: str, settings: Sequence[str] | None) -> ResolvedRecipe:
    """Read a recipe file or a bundled recipe, apply --set, and print warnings about settings."""
    from seqloom.data.recipe import load_recipe

    resolved = load_recipe(name, settings or ())
    for note in resolved.notes:
        print_warning(note)
    return resolved


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
        if _key(setting).partition(".")[0] not in sections:
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

"""A trained run's recipe, changed by options: how to decode, and what to score."""

from collections.abc import Sequence

from seqloom.cli.output import warn
from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import format_recipe, parse_toml
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import ConfigError

EXAMPLES = {
    "decoding": "decoding.max_length=60",
    "engine": "engine.precision=float32",
    "data": "data.folder=/where/the/data/are",
}

BEAM = ("decoding", "decoding.kind", "decoding.width")
"""What --beam changes too."""


def changed_decoding(
    config: RunConfig, overrides: Sequence[str], beam: int | None = None
) -> DecodingConfig:
    """The decoding of a run, after --set and --beam."""
    return changed(config, overrides, beam, ("decoding",)).decoding


def changed(
    config: RunConfig, overrides: Sequence[str], beam: int | None, sections: Sequence[str]
) -> RunConfig:
    """The recipe after --set, which may touch these sections alone, and --beam."""
    foreign = [text for text in overrides if _key(text).partition(".")[0] not in sections]
    if foreign:
        examples = " or ".join(EXAMPLES[section] for section in sections)
        raise ConfigError(
            f"--set {foreign[0]}: the model is trained; only settings of "
            f"{' and '.join(sections)} can be changed now, for example {examples}"
        )
    tables = parse_toml(format_recipe(config).encode())
    given = load_recipe(tables, overrides, "the run's recipe").config
    if beam is None:
        return given
    wanted = ["decoding.kind=beam", f"decoding.width={beam}"]
    result = load_recipe(tables, [*overrides, *wanted], "the run's recipe").config
    for text in overrides:
        if _key(text) in BEAM and given.decoding != result.decoding:
            warn(f"--beam {beam} wins over --set {text}; leave out one of the two")
    return result


def _key(text: str) -> str:
    return text.partition("=")[0].strip()

"""How to decode: what the run's recipe says, changed by options."""

from collections.abc import Sequence

from seqloom.config.decoding import BeamConfig, DecodingConfig, SampleConfig
from seqloom.config.load import dump, resolve
from seqloom.config.run import RunConfig
from seqloom.config.toml import parse
from seqloom.core.errors import ConfigError


def changed_decoding(
    config: RunConfig, overrides: Sequence[str], beam: int | None = None
) -> DecodingConfig:
    """The decoding of a run, after --set and --beam."""
    foreign = [text for text in overrides if not text.startswith("decoding.")]
    if foreign:
        raise ConfigError(
            f"--set {foreign[0]}: the model is trained; only settings of decoding can be changed "
            "now, for example decoding.max_length=60"
        )
    wanted = [] if beam is None else ["decoding.kind=beam", f"decoding.width={beam}"]
    tables = parse(dump(config).encode())
    return resolve(tables, [*overrides, *wanted], "the decoding").config.decoding


def refuse_too_many(decoding: DecodingConfig, n_best: int) -> None:
    """A search finds as many outputs as it is wide, and no more."""
    if isinstance(decoding, BeamConfig) and decoding.width < n_best:
        raise ConfigError(
            f"--n-best {n_best} needs a beam at least as wide, not {decoding.width}; "
            f"add --beam {n_best}"
        )
    if isinstance(decoding, SampleConfig) and decoding.samples < n_best:
        raise ConfigError(
            f"--n-best {n_best} needs as many samples, not {decoding.samples}; "
            f"add --set decoding.samples={n_best}"
        )
    if decoding.kind == "greedy" and n_best > 1:
        raise ConfigError(f"greedy search finds one output, not {n_best}; add --beam {n_best}")

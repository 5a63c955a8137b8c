"""Chooses the decoding configuration of a request.

This is the decoding configuration of the run, changed by the fields of the request.
"""

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig
from seqloom.inference.options import beam_config
from seqloom.inference.run import Run
from seqloom.serving.errors import invalid_field


def choose_decoding(
    run: Run,
    beam: int | None,
    n_best: int,
    length_penalty: float | None = None,
    length_counts_end: bool | None = None,
) -> DecodingConfig:
    """Return the run's decoding configuration with the requested beam width and length
    normalisation.

    If the request has no beam width and the run's beam is narrower than `n_best`, the beam width is
    set to `n_best`.
    """
    decoding = run.config.decoding
    if beam is not None:
        if beam < n_best:
            raise invalid_field(
                "n_best", f"{n_best} outputs need a beam of {n_best} or more, not {beam}"
            )
        decoding = beam_config(decoding, beam)
    elif n_best > (beam_width(decoding) or n_best):
        decoding = beam_config(decoding, n_best)
    if length_penalty is not None:
        decoding = decoding.model_copy(update={"length_penalty": length_penalty})
    if length_counts_end is not None:
        decoding = decoding.model_copy(update={"length_counts_end": length_counts_end})
    return decoding


def beam_width(decoding: DecodingConfig) -> int | None:
    """Return the beam width: 1 for greedy search, None for search algorithms without a beam."""
    match decoding:
        case BeamConfig(width=width):
            return width
        case GreedyConfig():
            return 1
        case _:
            return None

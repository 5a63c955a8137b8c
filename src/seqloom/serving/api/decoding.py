"""Chooses the decoding configuration of a request.

This is the decoding configuration of the run, changed by the options of the request.
"""

from dataclasses import replace

from seqloom.config.schema.decoding import DecodingConfig
from seqloom.inference.options import PredictionOptions
from seqloom.inference.run import Run
from seqloom.inference.search_settings import resolve_decoding
from seqloom.serving.errors import invalid_field


def choose_decoding(run: Run, options: PredictionOptions) -> DecodingConfig:
    """Return the run's decoding configuration, changed by the options of a request.

    If the request has no beam width and the run's beam is narrower than `n_best`, the beam width is
    set to `n_best`.
    """
    n_best = options.n_best
    if options.beam is None and n_best > (run.config.decoding.beam_width or n_best):
        options = replace(options, beam=n_best)
    if options.beam is not None and options.beam < n_best:
        raise invalid_field(
            "n_best", f"{n_best} outputs need a beam of {n_best} or more, not {options.beam}"
        )
    return resolve_decoding(run.config.decoding, options)

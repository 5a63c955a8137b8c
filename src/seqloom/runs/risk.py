"""Minimum-Bayes-risk decoding: of many outputs the one that is most like all the others.

    argmax_h 1/(n-1) Σ_{h' ≠ h} utility(h, h')

The most probable output is often an odd one; what many likely outputs agree on seldom is. This
compares whole texts, so it is no search: it chooses among what searches have found.
"""

from collections.abc import Sequence
from dataclasses import replace

from seqloom.config.decoding import (
    BeamConfig,
    DrawingConfig,
    MinimumBayesRiskConfig,
    RulesConfig,
    SampleConfig,
    SearchConfig,
)
from seqloom.metrics.utility import expected
from seqloom.runs.prediction import Prediction


def searches_for(config: MinimumBayesRiskConfig) -> list[tuple[SearchConfig, int]]:
    """The searches that find the candidates, and how many of them each should find.

    The beam's come first: among equals its best is chosen.
    """
    searches: list[tuple[SearchConfig, int]] = []
    if config.beam:
        rules = config.model_dump(include={*RulesConfig.model_fields, "length_exponent"})
        searches.append((BeamConfig(width=config.beam, **rules), config.beam))
    if config.samples:
        draws = config.model_dump(include={*DrawingConfig.model_fields})
        searches.append((SampleConfig(samples=config.samples, **draws), config.samples))
    return searches


def by_expected_utility(
    candidates: Sequence[Prediction], config: MinimumBayesRiskConfig
) -> list[Prediction]:
    """Each text once, its expected utility as its score, the highest first."""
    scores = expected([one.text for one in candidates], config.utility)
    first = {one.text: place for place, one in reversed(list(enumerate(candidates)))}
    order = sorted(first.values(), key=lambda place: (-scores[place], place))
    return [replace(candidates[place], score=scores[place]) for place in order]

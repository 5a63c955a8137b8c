"""Minimum Bayes risk decoding: choose the candidate that is most similar to the other candidates.

    argmax_h 1/(n-1) Σ_{h' ≠ h} utility(h, h')

Here h and h' are candidates, and n is the number of candidates. utility(h, h') measures how similar
the text h is to the text h'. The most probable output is often atypical, whereas a candidate that
resembles many other candidates is typical. The comparison needs whole texts, so the candidates must
be produced first, by sampling or beam search.
"""

from collections.abc import Sequence

from seqloom.config.schema.decoding import (
    BeamConfig,
    MinimumBayesRiskConfig,
    SampleConfig,
    SamplingRulesConfig,
    SearchConfig,
    SearchRulesConfig,
)
from seqloom.metrics.mbr_utility import expected_utility


def candidate_searches(config: MinimumBayesRiskConfig) -> list[tuple[SearchConfig, int]]:
    """Return the searches that produce candidates for minimum Bayes risk decoding.

    Each search comes with its number of candidates. Beam search comes before sampling. Therefore,
    of two candidates with equal utility, the one from beam search is ranked higher.
    """
    searches: list[tuple[SearchConfig, int]] = []
    if config.beam:
        rules = config.model_dump(
            include={*SearchRulesConfig.model_fields, "length_penalty"} - {"kind"}
        )
        searches.append((BeamConfig(width=config.beam, **rules), config.beam))
    if config.samples:
        sampling = config.model_dump(include={*SamplingRulesConfig.model_fields} - {"kind"})
        searches.append((SampleConfig(samples=config.samples, **sampling), config.samples))
    return searches


def rank_by_expected_utility(
    texts: Sequence[str], config: MinimumBayesRiskConfig
) -> list[tuple[int, float]]:
    """Return the index and the expected utility of each candidate, the highest utility first.

    The expected utility of a candidate is its mean similarity to the other candidates. Of
    candidates with the same text, only the first is returned.

    texts: the text of each candidate
    """
    scores = expected_utility(texts, config.utility)
    first = {text: index for index, text in reversed(list(enumerate(texts)))}
    order = sorted(first.values(), key=lambda index: (-scores[index], index))
    return [(index, scores[index]) for index in order]

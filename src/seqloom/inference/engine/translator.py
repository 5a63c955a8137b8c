"""Search with CTranslate2.

Greedy and beam search in CTranslate2 follow the same algorithm as in seqloom. A hypothesis that
ends with END is saved and not extended. The search stops once a given number of hypotheses is
saved. Hypotheses are ranked by log p / length^length_penalty. There are four differences:

- Extending a hypothesis. With a beam of width k, seqloom considers the k best tokens, and END may
  be one of them. CTranslate2 considers END and the k best other tokens, as seqloom does with
  `decoding.extra_candidate`. This rarely changes the result.
- Length of a hypothesis. CTranslate2 always counts END. If the settings say that END does not
  count, CTranslate2 returns all saved hypotheses, and seqloom ranks them again.
- Length limits and forbidden tokens. CTranslate2 has one length limit for the whole batch, and it
  renormalises probabilities when it forbids tokens. Therefore CTranslate2 gets the largest limit
  and no forbidden tokens, and seqloom checks the outputs afterwards. If an output exceeds the limit
  of its source, seqloom cuts it in greedy search and drops it in beam search. If too few outputs
  remain for a source, or if one of them contains a forbidden token, torch decodes this source.
- Unfinished hypotheses. With `decoding.rank_unfinished`, seqloom ranks hypotheses that reach the
  limit among the finished ones. CTranslate2 cannot do this. If a hypothesis that CTranslate2 saved
  for a source exceeds the limit, torch decodes this source.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from seqloom.config.schema.decoding import BeamConfig, SearchConfig
from seqloom.decoding.build import build_normalisation, build_rules
from seqloom.decoding.hypothesis import Hypothesis, LengthNormalisation
from seqloom.decoding.search import SearchRequest
from seqloom.inference.engine.convert import (
    Precision,
    embedders,
    stored_positions,
    vocabulary_size,
)
from seqloom.inference.engine.package import ctranslate2
from seqloom.inference.options import Probabilities
from seqloom.models.seq2seq import Model
from seqloom.tasks.task import ModelInput
from seqloom.text.vocabulary import END

TINY_PENALTY = 1e-9
"""This value replaces a length penalty of 0, because with 0 CTranslate2 stops its search earlier
than seqloom does."""

SearchResults = list[list[Hypothesis] | None]
"""The hypotheses of each input; None for an input that torch has to decode."""


@dataclass(frozen=True)
class CTranslate2Engine:
    """A loaded CTranslate2 model.

    translator:        a ctranslate2.Translator
    token_names:       for each token id, its name in the vocabulary of CTranslate2
    max_source_length: maximum number of source tokens, END included
    max_target_length: maximum number of target tokens, END included
    """

    translator: Any
    token_names: Sequence[str]
    max_source_length: int
    max_target_length: int

    @classmethod
    def load(cls, folder: Path, model: Model, precision: Precision) -> "CTranslate2Engine":
        source, target = embedders(model)
        largest = max(vocabulary_size(source), vocabulary_size(target))
        return cls(
            translator=ctranslate2().Translator(
                str(folder),
                device="cpu",
                compute_type=precision,
                intra_threads=torch.get_num_threads(),
            ),
            token_names=[str(id_) for id_ in range(largest)],
            max_source_length=stored_positions(source),
            max_target_length=stored_positions(target),
        )

    def search(
        self,
        batch: Sequence[ModelInput],
        request: SearchRequest,
        decoding: SearchConfig,
        probabilities: Probabilities,
    ) -> SearchResults:
        """Return a list with the n best hypotheses of each input.

        The entry of an input is None if CTranslate2 cannot decode this input as seqloom does. The
        caller then decodes it with torch.

        If `probabilities` is "none", the score of a greedy output is NaN.
        """
        searched: SearchResults = [None] * len(batch)
        rows = [
            row
            for row, one in enumerate(batch)
            if not one.prefix
            and one.source_tokens  # CTranslate2 does not decode an empty source
            and len(one.source_tokens) + 1 <= self.max_source_length
            and request.max_lengths[row] <= self.max_target_length
        ]
        if not rows:
            return searched
        sources = [self._source_names(batch[row].source_tokens) for row in rows]
        limits = [request.max_lengths[row] for row in rows]
        return_scores = probabilities != "none" or not _is_greedy(decoding)
        ranks_again = ranks_differently(decoding)
        needs_all = ranks_again or _ranks_unfinished(decoding)
        results = self.translator.translate_batch(
            sources,
            max_decoding_length=max(limits),
            return_scores=return_scores,  # without scores, greedy search needs no softmax
            **_options(decoding, max_saved(decoding) if needs_all else request.n_best),
        )
        forbidden = set(build_rules(decoding).excluded_tokens)
        normalisation = build_normalisation(decoding)
        for row, limit, result in zip(rows, limits, results, strict=True):
            outputs = [[int(name) for name in output] for output in result.hypotheses]
            # In greedy search, tokens after the limit do not influence the tokens before it.
            can_cut = _is_greedy(decoding) and limit < self.max_target_length
            if can_cut:
                outputs = [output[:limit] for output in outputs]
            scores = result.scores if return_scores else [math.nan] * len(outputs)
            hypotheses = [
                _hypothesis(output, score, normalisation)
                for output, score in zip(outputs, scores, strict=True)
                if can_cut or (output[-1] == END and len(output) <= limit)
            ]
            if _ranks_unfinished(decoding) and len(hypotheses) < len(outputs):
                continue
            if ranks_again:
                hypotheses = _rank_without_end(hypotheses, scores)
            best = hypotheses[: request.n_best]
            has_forbidden = any(not forbidden.isdisjoint(one.tokens) for one in best)
            if len(best) == request.n_best and not has_forbidden:
                searched[row] = best
        if probabilities == "none":
            return searched
        return self._with_token_scores(batch, searched, normalisation, probabilities == "tokens")

    def _with_token_scores(
        self,
        batch: Sequence[ModelInput],
        searched: SearchResults,
        normalisation: LengthNormalisation,
        all_outputs: bool,
    ) -> SearchResults:
        """Add token log-probabilities to hypotheses, and compute the hypothesis scores from them.

        all_outputs: if False, change only unfinished hypotheses, which do not end with END
        """

        def needs_scores(hypothesis: Hypothesis) -> bool:
            return all_outputs or not hypothesis.finished

        pairs = [
            (one.source_tokens, hypothesis.tokens)
            for one, hypotheses in zip(batch, searched, strict=True)
            for hypothesis in hypotheses or ()
            if needs_scores(hypothesis)
        ]
        scored = iter(self.score(pairs))

        def add_scores(hypothesis: Hypothesis) -> Hypothesis:
            if not needs_scores(hypothesis):
                return hypothesis
            log_probabilities = next(scored)[: len(hypothesis.tokens) + hypothesis.finished]
            score = normalisation.score(
                sum(log_probabilities), len(log_probabilities), hypothesis.finished
            )
            return replace(hypothesis, log_probabilities=log_probabilities, score=score)

        return [None if each is None else [add_scores(one) for one in each] for each in searched]

    def score(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> list[tuple[float, ...]]:
        """Return the log-probabilities of the target tokens and of END for each pair.

        pairs: (source, target) token ids
        """
        if not pairs:
            return []
        results = self.translator.score_batch(
            [self._source_names(source) for source, _ in pairs],
            [[self.token_names[token] for token in target] for _, target in pairs],
            max_input_length=0,
        )
        return [tuple(result.log_probs) for result in results]

    def _source_names(self, source: Sequence[int]) -> list[str]:
        """Return the source tokens, followed by END, as names in the vocabulary of CTranslate2."""
        names = self.token_names
        return [*[names[token] for token in source], names[END]]


def _is_greedy(decoding: SearchConfig) -> bool:
    return not isinstance(decoding, BeamConfig) or decoding.width == 1


def _ranks_unfinished(decoding: SearchConfig) -> bool:
    return (
        not _is_greedy(decoding) and isinstance(decoding, BeamConfig) and decoding.rank_unfinished
    )


def _hypothesis(
    output: Sequence[int], score: float, normalisation: LengthNormalisation
) -> Hypothesis:
    """Build a hypothesis from an output of CTranslate2.

    score: score from CTranslate2, which counts END in the length. If `normalisation` does not count
           END, this function computes the score again, with the length without END
    """
    finished = output[-1] == END
    if finished and not normalisation.counts_end:
        log_probability = score * len(output) ** normalisation.penalty
        score = normalisation.score(log_probability, len(output), finished)
    return Hypothesis(tuple(output[:-1] if finished else output), finished, (), score, None)


def max_saved(decoding: SearchConfig) -> int:
    """Return the number of finished hypotheses after which CTranslate2 stops its search."""
    return (decoding.finished or decoding.width) if isinstance(decoding, BeamConfig) else 1


def ranks_differently(decoding: SearchConfig) -> bool:
    """Return True if seqloom may rank hypotheses differently from CTranslate2.

    CTranslate2 divides log p by a length that includes END. If the settings exclude END from the
    length, the two rankings can differ. They cannot differ if the search stops at the first
    finished hypothesis, because all compared hypotheses then have the same length.
    """
    is_normalised = decoding.length_penalty > 0 and not decoding.length_counts_end
    return is_normalised and not _is_greedy(decoding) and max_saved(decoding) > 1


def _rank_without_end(
    hypotheses: Sequence[Hypothesis], scores: Sequence[float]
) -> list[Hypothesis]:
    """Return the hypotheses that are certainly the best, sorted by a score that ignores END.

    Each hypothesis has two scores. s divides log p by a length that includes END. s' divides log p
    by a length without END. log p is negative, so s' <= s.

    CTranslate2 returned the hypotheses with the highest s. All hypotheses that it did not return
    have s <= min(scores), and therefore s' <= min(scores). So a returned hypothesis with
    s' >= min(scores) is at least as good as all of them. The other returned hypotheses are dropped.

    hypotheses: returned hypotheses, with s' as their score
    scores:     s of all returned hypotheses
    """
    best = [one for one in hypotheses if one.score >= min(scores)]
    return sorted(best, key=lambda one: one.score, reverse=True)


def _options(decoding: SearchConfig, n_best: int) -> dict[str, Any]:
    """Return the CTranslate2 options for this search."""
    beam = decoding if isinstance(decoding, BeamConfig) else BeamConfig(width=1)
    return {
        "beam_size": beam.width,
        "patience": (beam.finished or beam.width) / beam.width,
        "num_hypotheses": n_best,
        "length_penalty": decoding.length_penalty or TINY_PENALTY,
        "return_end_token": True,
        "max_input_length": 0,
        "min_decoding_length": 0,
    }

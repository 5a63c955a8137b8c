"""Outputs searched for by CTranslate2, such as our own search finds them.

Its greedy search is ours. So is its beam: the best candidates of all hypotheses, those with END
saved and not extended, until as many are saved as `finished` says, ranked by log p /
length^exponent with END counted. In one point it is wider: we take the k best tokens of a
hypothesis, END among them; it takes the k best beside END. That rarely matters.

Two of our rules it does not know: a length limit of its own for each source, and tokens that are
never put out although they keep their probability. So it searches without them, and answers only
where neither was touched: all outputs that are wanted ended within their limit and hold no
forbidden token. What it leaves open is searched by torch. A greedy output is simply cut off at
its limit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from seqloom.config.decoding import BeamConfig, SearchConfig
from seqloom.decoding.build import build_rules
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import Request, normalise
from seqloom.models.seq2seq import Model
from seqloom.runs.engine.convert import (
    Precision,
    embedders,
    stored_positions,
    vocabulary_size,
)
from seqloom.runs.engine.package import ctranslate2
from seqloom.runs.wish import Probabilities
from seqloom.tasks.task import ModelInput
from seqloom.text.vocabulary import END

ALMOST_ZERO = 1e-9
"""A length penalty of exactly 0 would end its search before ours ends."""

Found = list[list[Hypothesis] | None]
"""For each source its hypotheses; None where CTranslate2 cannot tell."""


@dataclass(frozen=True)
class CTranslate2Engine:
    """A converted model, loaded.

    translator:     CTranslate2's own object
    names:          what each id is called there
    longest_source: tokens that it can read, END included
    longest_target: tokens that it can put out, END included
    """

    translator: Any
    names: Sequence[str]
    longest_source: int
    longest_target: int

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
            names=[str(id_) for id_ in range(largest)],
            longest_source=stored_positions(source),
            longest_target=stored_positions(target),
        )

    def search(
        self,
        batch: Sequence[ModelInput],
        request: Request,
        decoding: SearchConfig,
        probabilities: Probabilities,
    ) -> Found:
        """The n best of each source; a greedy output has a score only if it is asked for."""
        found: Found = [None] * len(batch)
        places = [
            place
            for place, one in enumerate(batch)
            if not one.prefix
            and one.source  # END alone it answers with nothing, without asking the model
            and len(one.source) + 1 <= self.longest_source
            and request.max_lengths[place] <= self.longest_target
        ]
        if not places:
            return found
        sources = [self._named(batch[place].source or ()) for place in places]
        limits = [request.max_lengths[place] for place in places]
        scored = probabilities != "unasked" or not _greedy(decoding)
        results = self.translator.translate_batch(
            sources,
            max_decoding_length=max(limits),
            return_scores=scored,  # its greedy search needs no softmax, unless for this
            **_options(decoding, request.n_best),
        )
        never = set(build_rules(decoding).never)
        for place, limit, result in zip(places, limits, results, strict=True):
            outputs = [[int(name) for name in output] for output in result.hypotheses]
            if len(outputs) < request.n_best:
                continue
            if _greedy(decoding) and limit < self.longest_target:
                # Without other hypotheses, whatever comes after the limit changes nothing before.
                outputs = [output[:limit] for output in outputs]
            elif any(output[-1] != END or len(output) > limit for output in outputs):
                continue
            if all(never.isdisjoint(output) for output in outputs):
                scores = result.scores if scored else [math.nan] * len(outputs)
                found[place] = list(map(_hypothesis, outputs, scores))
        if probabilities == "unasked":
            return found
        return self._with_steps(batch, found, decoding.length_exponent, probabilities == "steps")

    def _with_steps(
        self, batch: Sequence[ModelInput], found: Found, exponent: float, everywhere: bool
    ) -> Found:
        """Each token with its log-probability: everywhere, or where an output was cut off."""

        def wanted(hypothesis: Hypothesis) -> bool:
            return everywhere or not hypothesis.finished

        pairs = [
            (one.source or (), hypothesis.tokens)
            for one, hypotheses in zip(batch, found, strict=True)
            for hypothesis in hypotheses or ()
            if wanted(hypothesis)
        ]
        scored = iter(self.score(pairs))

        def scoring(hypothesis: Hypothesis) -> Hypothesis:
            if not wanted(hypothesis):
                return hypothesis
            own = next(scored)[: len(hypothesis.tokens) + hypothesis.finished]
            score = normalise(sum(own), len(own), exponent)
            return replace(hypothesis, log_probabilities=own, score=score)

        return [None if each is None else [scoring(one) for one in each] for each in found]

    def score(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> list[tuple[float, ...]]:
        """Of each source and target the log-probabilities of the target's tokens and its END."""
        if not pairs:
            return []
        results = self.translator.score_batch(
            [self._named(source) for source, _ in pairs],
            [[self.names[token] for token in target] for _, target in pairs],
            max_input_length=0,
        )
        return [tuple(result.log_probs) for result in results]

    def _named(self, source: Sequence[int]) -> list[str]:
        """The names of a source's tokens, and of END."""
        names = self.names
        return [*[names[token] for token in source], names[END]]


def _greedy(decoding: SearchConfig) -> bool:
    return not isinstance(decoding, BeamConfig) or decoding.width == 1


def _hypothesis(output: Sequence[int], score: float) -> Hypothesis:
    finished = output[-1] == END
    return Hypothesis(tuple(output[:-1] if finished else output), finished, (), score, None)


def _options(decoding: SearchConfig, n_best: int) -> dict[str, Any]:
    """What makes its search ours."""
    beam = decoding if isinstance(decoding, BeamConfig) else BeamConfig(width=1)
    return {
        "beam_size": beam.width,
        "patience": (beam.finished or beam.width) / beam.width,
        "num_hypotheses": n_best,
        "length_penalty": decoding.length_exponent or ALMOST_ZERO,
        "return_end_token": True,
        "max_input_length": 0,
        "min_decoding_length": 0,
    }

"""How long inputs and outputs may be."""

from collections.abc import Sequence
from dataclasses import replace

from seqloom.config.decoding import SearchConfig
from seqloom.core.errors import DataError
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import LONGEST, default_max_length
from seqloom.decoding.search import normalise
from seqloom.models.seq2seq import Model
from seqloom.tasks.task import ModelInput

SOME = 32
"""Tokens that there is always room for behind a given beginning."""

ENDLESS = 2**31
"""Tokens that no output reaches."""


def output_limit(one: ModelInput, decoding: SearchConfig, model: Model, newline: int | None) -> int:
    """How long this output may get, its given beginning and END included.

    newline: the end of a line, for a model of running text: it knows no END, so only this limit
    stops it
    """
    size = len(one.prefix if one.source is None else one.source)
    limit = default_max_length(size, decoding)
    if one.max_length is not None:
        limit = one.max_length
    elif decoding.max_length is None:  # a given beginning must not eat up the room for the rest
        limit = max(limit, len(one.prefix) + (SOME if newline is None else LONGEST))
    longest = model.max_target_length
    return limit if longest is None else min(limit, longest)


def without_end(decoding: SearchConfig) -> SearchConfig:
    """The same search, in which nothing ends: for models of running text, which never saw an END."""
    return decoding.model_copy(update={"min_length": ENDLESS})


def first_line(
    hypothesis: Hypothesis, one: ModelInput, newline: int, exponent: float
) -> Hypothesis:
    """The output up to the end of its first line, which is its END; as it is if there is none.

    What was given as its beginning may have many lines.
    """
    if newline not in hypothesis.tokens[len(one.prefix) :]:
        return hypothesis
    place = hypothesis.tokens.index(newline, len(one.prefix))
    steps = hypothesis.log_probabilities[: place + 1]
    return replace(
        hypothesis,
        tokens=hypothesis.tokens[:place],
        finished=True,
        log_probabilities=steps,
        score=normalise(sum(steps), len(steps), exponent),
    )


def refuse_over(limit: int | None, lengths: Sequence[int], first: int, words: str) -> None:
    """Name every line that has more tokens than the limit, the first being line first + 1."""
    if limit is None:
        return
    problems = [
        f"  line {number}: {length} tokens"
        for number, length in enumerate(lengths, start=first + 1)
        if length > limit
    ]
    if problems:
        raise DataError("\n".join([words, *problems]))

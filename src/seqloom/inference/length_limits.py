"""Length limits of inputs and outputs."""

from collections.abc import Sequence
from dataclasses import replace

from seqloom.config.schema.decoding import SearchConfig
from seqloom.core.errors import DataError
from seqloom.decoding.hypothesis import Hypothesis, LengthNormalisation
from seqloom.decoding.rules import MAX_DEFAULT_LENGTH, default_max_length
from seqloom.models.seq2seq import Model
from seqloom.tasks.task import ModelInput

MIN_NEW_TOKENS = 32
"""The default length limit allows at least this number of tokens after a prefix."""
NEVER = 2**31
"""A minimum output length that no output can reach, so that END is forbidden at every step."""


def output_limit(
    model_input: ModelInput, decoding: SearchConfig, model: Model, newline: int | None
) -> int:
    """Return the maximum number of output tokens. The prefix and END count as output tokens.

    newline: id of the newline token if the model was trained on a long text. The default limit then
             allows more tokens after the prefix. None for other models
    """
    length = model_input.source_length
    limit = default_max_length(len(model_input.prefix) if length is None else length, decoding)
    if model_input.max_length is not None:
        limit = model_input.max_length
    elif decoding.max_length is None:
        new_tokens = MIN_NEW_TOKENS if newline is None else MAX_DEFAULT_LENGTH
        limit = max(limit, len(model_input.prefix) + new_tokens)
    longest = model.max_target_length
    return limit if longest is None else min(limit, longest)


def without_end(decoding: SearchConfig) -> SearchConfig:
    """Return the search options, changed so that the search never generates END.

    A model that was trained on one long text needs this, because the text contains no END.
    """
    return decoding.model_copy(update={"min_length": NEVER})


def cut_at_newline(
    hypothesis: Hypothesis,
    model_input: ModelInput,
    newline: int,
    normalisation: LengthNormalisation,
) -> Hypothesis:
    """Cut a hypothesis before the first newline after its prefix. The newline is treated as END.

    A hypothesis without a newline is returned unchanged.
    """
    prefix_length = len(model_input.prefix)
    if newline not in hypothesis.tokens[prefix_length:]:
        return hypothesis
    position = hypothesis.tokens.index(newline, prefix_length)
    log_probabilities = hypothesis.log_probabilities[: position + 1]
    return replace(
        hypothesis,
        tokens=hypothesis.tokens[:position],
        finished=True,
        log_probabilities=log_probabilities,
        score=normalisation.score(sum(log_probabilities), len(log_probabilities), True),
    )


def check_lengths(limit: int | None, lengths: Sequence[int], first: int, message: str) -> None:
    """Raise a DataError that lists every line with more than `limit` tokens.

    limit:   maximum number of tokens; None for no limit
    lengths: number of tokens of each line
    first:   number of lines that precede these lines in the whole text. It is added to the line
             numbers in the error message.
    message: first line of the error
    """
    if limit is None:
        return
    problems = [
        f"  line {number}: {length} tokens"
        for number, length in enumerate(lengths, start=first + 1)
        if length > limit
    ]
    if problems:
        raise DataError("\n".join([message, *problems]))
